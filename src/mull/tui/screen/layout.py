"""What is below the conversation: a question, the input line, completions, the status."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from prompt_toolkit.filters import Condition
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    SearchBufferControl,
    Window,
)
from prompt_toolkit.layout.processors import ConditionalProcessor, PasswordProcessor

from mull.tui.instant.rows import NEXT, PROMPT, TALLEST_INPUT
from mull.tui.screen.bottom import fragments
from mull.tui.screen.theme import Theme
from mull.tui.text.lines import PLAIN, Line, Span, line_width
from mull.tui.text.width import cell_width

if TYPE_CHECKING:
    from prompt_toolkit.buffer import Buffer, CompletionState

    from mull.tui.screen.app import TerminalFront

__all__ = ["lay_out"]

_MENU_ROWS = 8
_SEARCH = "search: "


def lay_out(front: TerminalFront, region: Window, found: SearchBufferControl) -> Layout:
    """The region of the conversation with everything below it; the input has the focus."""
    asking, buffer = front.asking, front.buffer
    typing = Window(
        BufferControl(
            buffer,
            input_processors=[
                ConditionalProcessor(PasswordProcessor(), Condition(lambda: asking.wants_secret))
            ],
            search_buffer_control=found,
            preview_search=True,
        ),
        height=lambda: Dimension(min=1, max=front.typed_rows if asking.is_open else TALLEST_INPUT),
        wrap_lines=True,
        dont_extend_height=True,
        get_line_prefix=lambda line, wrap: _prompt(front, is_first=not (line or wrap)),
        always_hide_cursor=Condition(lambda: asking.is_open and not asking.is_in_text),
    )
    searching = Window(
        found, height=1, get_line_prefix=lambda line, wrap: _prefix(front, _SEARCH, found=True)
    )

    def drawn(lines: Callable[[], Sequence[Line]]) -> Window:
        control = FormattedTextControl(lambda: fragments(lines(), front.depth))
        return Window(control, dont_extend_height=True, always_hide_cursor=True)

    def shown(window: Window, when: Callable[[], bool]) -> ConditionalContainer:
        return ConditionalContainer(window, Condition(when))

    parts = [
        region,
        shown(drawn(lambda: front.drawing.above), lambda: bool(front.drawing.above)),
        shown(typing, lambda: not asking.is_open or front.drawing.prompt is not None),
        shown(drawn(lambda: front.drawing.below), lambda: bool(front.drawing.below)),
        shown(searching, front.searches),
        shown(
            drawn(lambda: _menu(buffer, front.theme)),
            lambda: buffer.complete_state is not None and asking.picker is None,
        ),
        drawn(lambda: [front.status_line()]),
    ]
    return Layout(HSplit(parts), typing)


def _prompt(front: TerminalFront, *, is_first: bool) -> Any:
    """What is before the first row of the input, and before each further one."""
    asked = front.drawing.prompt
    if asked is None:
        return _prefix(front, PROMPT if is_first else NEXT)
    return fragments([asked if is_first else (Span(" " * line_width(asked), PLAIN),)], front.depth)


def _prefix(front: TerminalFront, mark: str, *, found: bool = False) -> Any:
    style = front.theme.accent if found else front.theme.user_mark
    return fragments([(Span(mark, style),)], front.depth)


def _menu(buffer: Buffer, theme: Theme) -> list[Line]:
    state: CompletionState | None = buffer.complete_state
    if state is None:
        return []
    here = state.complete_index or 0
    first = max(0, min(here - _MENU_ROWS // 2, len(state.completions) - _MENU_ROWS))
    rows = state.completions[first : first + _MENU_ROWS]
    wide = max((cell_width(one.display_text) for one in rows), default=0) + 2
    lines: list[Line] = []
    for at, one in enumerate(rows, first):
        style = theme.accent if at == here else theme.text  # what Enter accepts
        gap = " " * (wide - cell_width(one.display_text))
        name = Span(f"  {one.display_text}{gap}", style)
        lines.append((name, Span(one.display_meta_text, theme.faint)))
    rest = len(state.completions) - len(rows)
    return [*lines, (Span(f"  {rest} more", theme.faint),)] if rest else lines
