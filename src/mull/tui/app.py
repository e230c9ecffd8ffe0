"""The terminal as people use it: an input line below a conversation that scrolls away above it.

prompt_toolkit edits the line and draws the region at the bottom; everything else it is told. Keys
that mean something to the conversation are bound here and do nothing but call it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
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
from prompt_toolkit.output import ColorDepth

from mull.tui.front import Item, Question
from mull.tui.lines import Line, Span
from mull.tui.picker import Picker
from mull.tui.screen import InlineScreen, fragments
from mull.tui.theme import Theme

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.history import History
    from prompt_toolkit.output import Output

    from mull.tui.look import Surroundings
    from mull.tui.painter import Frame
    from mull.tui.talk import Talk

__all__ = ["TerminalFront"]

_DEPTHS = {
    "truecolor": ColorDepth.DEPTH_24_BIT,
    "256": ColorDepth.DEPTH_8_BIT,
    "16": ColorDepth.DEPTH_4_BIT,
    "mono": ColorDepth.DEPTH_1_BIT,
    "none": ColorDepth.DEPTH_1_BIT,
}
_MENU_ROWS = 8
_TWICE = 2.0
"""Seconds in which a second Ctrl-C quits."""


class TerminalFront:
    """A terminal whose lower end can be drawn again."""

    redraws = True

    def __init__(
        self,
        around: Surroundings,
        theme: Theme,
        *,
        frame: Callable[[], Frame],
        status: Callable[[], Line],
        completer: Completer | None = None,
        history: History | None = None,
    ) -> None:
        self.theme = theme
        self._around = around
        self._status = status
        self._screen = InlineScreen(around.depth, frame)
        self._talk: Talk | None = None
        self._question: Question | None = None
        self._picker: Picker | None = None
        self._answer: asyncio.Future[Any] | None = None
        self._written: str | None = None
        self._leaving = 0.0
        self.buffer = Buffer(
            multiline=True,
            history=history,
            completer=completer,
            complete_while_typing=Condition(self._completes_by_itself),
        )
        self.buffer.on_text_changed += self._typed
        self.app: Application[None] = Application(
            layout=self._layout(),
            key_bindings=self._bindings(),
            color_depth=_DEPTHS[around.depth],
            output=_output(),
            erase_when_done=True,
            min_redraw_interval=0.02,
        )
        self.app.ttimeoutlen = 0.05
        self.app.timeoutlen = 0.3
        self._screen.app = self.app

    @property
    def width(self) -> int:
        """The columns that a line may take."""
        return self._screen.width

    def refresh(self) -> None:
        """Draw what has changed, soon."""
        self._screen.refresh()

    def clear(self) -> None:
        """Begin anew at the top of the screen."""
        self._screen.clear()

    def put(self, text: str) -> None:
        """Put text into the input line, before what stands there."""
        rest = self.buffer.text
        self.buffer.text = f"{text}\n{rest}" if rest else text
        self.buffer.cursor_position = len(text)

    def leave(self) -> None:
        """End the program."""
        self._screen.flush()
        if self.app.is_running:
            self.app.exit()

    def set_theme(self, name: str) -> None:
        """Use another theme.

        Raises:
            ConfigError: there is none of this name.
        """
        self.theme = self._around.theme(name)

    async def run(
        self, talk: Talk, begin: Callable[[], Coroutine[Any, Any, None]], typed: bytes = b""
    ) -> None:
        """Read keys until somebody leaves; `typed` was pressed before."""
        self._talk = talk
        self.buffer.insert_text(typed.decode(errors="ignore").replace("\r", "\n"))
        await self.app.run_async(pre_run=lambda: talk.start(begin))

    async def ask(self, question: Question) -> tuple[str, str]:
        """Wait for the key of a choice, and for the text that some choices want."""
        self._question = question
        try:
            key = await self._wait()
            choice = next(one for one in question.choices if one.key == key)
            if not choice.wants_text:
                return key, ""
            self._question, self._written = None, self.buffer.text
            self.buffer.text = ""
            return key, await self._wait()
        finally:
            self._question = None
            if self._written is not None:
                self.buffer.text, self._written = self._written, None
            self._screen.refresh()

    async def pick(self, title: str, items: Sequence[Item], found: str = "") -> str | None:
        """Let one of the items be searched and chosen."""
        before = self.buffer.text
        self._picker = Picker(title, items)
        self.buffer.text = found
        self._picker.search(found)
        try:
            picked: str | None = await self._wait()
            return picked
        finally:
            self._picker = None
            self.buffer.text = before
            self._screen.refresh()

    async def _wait(self) -> Any:
        self._answer = asyncio.get_running_loop().create_future()
        self._screen.refresh()
        try:
            return await self._answer
        finally:
            self._answer = None

    def _give(self, answer: Any) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)

    def _typed(self, _: Buffer) -> None:
        if self._picker is not None:
            self._picker.search(self.buffer.text)

    def _completes_by_itself(self) -> bool:
        return self.buffer.text.startswith("/") and self._picker is None

    # what is drawn

    def _layout(self) -> Layout:
        found = SearchBufferControl()
        typing = Window(
            BufferControl(self.buffer, search_buffer_control=found),
            height=Dimension(min=1, max=12),
            wrap_lines=True,
            dont_extend_height=True,
            get_line_prefix=self._prefix,
        )
        below = [
            ConditionalContainer(Window(found, height=1), Condition(lambda: self._searches(found))),
            ConditionalContainer(self._drawn(self._menu), Condition(self._has_menu)),
            self._drawn(self._status_lines),
        ]
        question = ConditionalContainer(
            self._drawn(self._asked), Condition(lambda: bool(self._question or self._picker))
        )
        shown = ConditionalContainer(typing, Condition(lambda: self._question is None))
        self._search = found
        return Layout(HSplit([self._screen.region, question, shown, *below]), typing)

    def _searches(self, found: SearchBufferControl) -> bool:
        return self.app.layout.current_control is found

    def _drawn(self, lines: Callable[[], Sequence[Line]]) -> Window:
        control = FormattedTextControl(lambda: fragments(lines(), self._screen.depth))
        return Window(control, dont_extend_height=True, always_hide_cursor=True)

    def _prefix(self, line: int, wrap: int) -> Any:
        mark = "› " if line == 0 and wrap == 0 else "  "
        return fragments([(Span(mark, self.theme.user_mark),)], self._screen.depth)

    def _status_lines(self) -> Sequence[Line]:
        return [self._status()]

    def _asked(self) -> Sequence[Line]:
        if self._picker is not None:
            return self._picker.lines(self.theme, self.width)
        if self._question is None:
            return []
        spans = [Span(f"{self._question.title}  ", self.theme.warning)]
        for choice in self._question.choices:
            spans += [
                Span(f"[{choice.key}]", self.theme.accent),
                Span(f" {choice.word}  ", self.theme.text),
            ]
        return [tuple(spans)]

    def _has_menu(self) -> bool:
        return self.buffer.complete_state is not None and self._picker is None

    def _menu(self) -> Sequence[Line]:
        state = self.buffer.complete_state
        if state is None:
            return []
        here = state.complete_index or 0
        first = max(0, min(here - _MENU_ROWS // 2, len(state.completions) - _MENU_ROWS))
        rows = state.completions[first : first + _MENU_ROWS]
        wide = max(len(one.display_text) for one in rows) + 2 if rows else 0
        lines: list[Line] = []
        for at, one in enumerate(rows, first):
            style = self.theme.accent if at == state.complete_index else self.theme.text
            name = Span(f"  {one.display_text:<{wide}}", style)
            lines.append((name, Span(one.display_meta_text, self.theme.faint)))
        return lines

    # what keys do

    def _bindings(self) -> KeyBindings:
        from mull.tui.keys import KEYS

        keys = KeyBindings()
        asking = Condition(lambda: self._question is not None)
        picking = Condition(lambda: self._picker is not None)
        searching = Condition(lambda: self._searches(self._search))
        free = ~asking & ~picking & ~searching
        for key in KEYS:
            if key.action and key.action != "complete":
                keys.add(*key.pressed, filter=free, eager=key.action != "stop")(
                    self._call(key.action)
                )
        keys.add("<any>", filter=asking)(self._choose)
        for pressed in ("escape", "c-c"):
            keys.add(pressed, filter=asking | picking)(self._decline)
        keys.add("enter", filter=picking)(
            lambda _: self._give(self._picker and self._picker.chosen)
        )
        for pressed, steps in (("up", -1), ("down", 1), ("pageup", -8), ("pagedown", 8)):
            keys.add(pressed, filter=picking)(self._mover(steps))
        keys.add("tab", filter=free)(self._complete)
        return keys

    def _call(self, action: str) -> Callable[[KeyPressEvent], None]:
        own = getattr(self, f"_on_{action}")

        def pressed(event: KeyPressEvent) -> None:
            if self._talk is not None:
                own(self._talk)

        return pressed

    def _on_newline(self, talk: Talk) -> None:
        self.buffer.insert_text("\n")

    def _on_enter(self, talk: Talk) -> None:
        text = self.buffer.text
        if text.endswith("\\"):  # as in a shell: the line goes on
            self.buffer.delete_before_cursor()
            self.buffer.insert_text("\n")
        elif self._answer is not None:  # a choice wants some words
            self._give(text)
        elif text.strip():
            self.buffer.append_to_history()
            self.buffer.reset()
            talk.enter(text)

    def _on_stop(self, talk: Talk) -> None:
        talk.stop()

    def _on_interrupt(self, talk: Talk) -> None:
        if talk.stop():
            return
        if self.buffer.text:
            self.buffer.append_to_history()
            self.buffer.reset()
            return
        now = asyncio.get_running_loop().time()
        if now - self._leaving < _TWICE:
            self.leave()
        else:
            self._leaving = now
            talk.tell("Ctrl-C once more quits.")

    def _on_end(self, talk: Talk) -> None:
        if not self.buffer.text:
            self.leave()

    def _on_view(self, talk: Talk) -> None:
        talk.cycle_view()

    def _on_level(self, talk: Talk) -> None:
        talk.next_level()

    def _on_answer(self, talk: Talk) -> None:
        talk.answer_now()

    def _on_edit(self, talk: Talk) -> None:
        self.buffer.open_in_editor()

    def _on_redraw(self, talk: Talk) -> None:
        talk.redraw()

    def _mover(self, steps: int) -> Callable[[KeyPressEvent], None]:
        def move(_: KeyPressEvent) -> None:
            if self._picker is not None:
                self._picker.move(steps)

        return move

    def _choose(self, event: KeyPressEvent) -> None:
        if self._question is None:
            return
        pressed = event.data.lower()
        if any(choice.key == pressed for choice in self._question.choices):
            self._give(pressed)

    def _decline(self, _: KeyPressEvent) -> None:
        """Leaving a question is its last choice, and picks nothing."""
        self._give(self._question.choices[-1].key if self._question else None)

    def _complete(self, _: KeyPressEvent) -> None:
        if self.buffer.complete_state:
            self.buffer.complete_next()
        else:
            self.buffer.start_completion(select_first=False, insert_common_part=True)


def _output() -> Output:
    """The terminal, without asking it where its cursor is: the region is always at the bottom."""
    import sys

    from prompt_toolkit.output.vt100 import Vt100_Output

    output = Vt100_Output.from_pty(sys.stdout)
    output.enable_cpr = False
    return output
