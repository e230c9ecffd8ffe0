"""The viewer at the terminal: on the alternate screen, with its own keys.

The conversation continues behind it and is drawn when the viewer is closed. The scrollback is not
touched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from prompt_toolkit.application import Application
from prompt_toolkit.application.run_in_terminal import in_terminal
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import FormattedTextControl, Layout, Window

from mull.tui.conversation.sections import Look
from mull.tui.screen.bottom import fragments
from mull.tui.screen.keyboard import ESC_WAITS, Keyboard
from mull.tui.screen.keys import LONE_ESC
from mull.tui.screen.viewer import Document, Viewer
from mull.tui.text.lines import Line, Span

if TYPE_CHECKING:
    from prompt_toolkit.input import Input

    from mull.tui.screen.depth import Depth
    from mull.tui.screen.theme import Theme

__all__ = ["view_documents"]

_LIVE = 0.25
"""Seconds between checks for documents that may grow."""


async def view_documents(
    viewer: Viewer,
    documents: Callable[[], Sequence[Document]],
    theme: Theme,
    depth: Depth,
    *,
    over: Application[Any],
    began: Callable[[], None],
    waiting: Callable[[], bool],
) -> None:
    """Show the viewer over an application until it is closed. `began` is called when that gets no
    keys any more; `waiting` says that a question is pending.
    """
    keyboard = over.input
    assert isinstance(keyboard, Keyboard)
    with keyboard.shared() as keys:
        async with in_terminal():
            began()
            await _Reading(viewer, documents, theme, depth, over, keys, waiting).run()


class _Reading:
    def __init__(
        self,
        viewer: Viewer,
        documents: Callable[[], Sequence[Document]],
        theme: Theme,
        depth: Depth,
        over: Application[Any],
        keyboard: Input,
        waiting: Callable[[], bool],
    ) -> None:
        self._viewer = viewer
        self._documents = documents
        self._theme = theme
        self._depth: Depth = depth
        self._waiting = waiting
        self._typed: str | None = None  # the search text, while it is typed
        self._missing = ""
        control = FormattedTextControl(self._fragments, focusable=True, show_cursor=False)
        self._app: Application[None] = Application(
            layout=Layout(Window(control, always_hide_cursor=True, wrap_lines=False)),
            key_bindings=self._bindings(),
            full_screen=True,
            enable_page_navigation_bindings=False,
            input=keyboard,
            output=over.output,
            color_depth=over.color_depth,
        )
        self._app.ttimeoutlen = self._app.timeoutlen = ESC_WAITS

    async def run(self) -> None:
        self._fragments()  # keys that came before the first drawing need to know the rows
        live = asyncio.get_running_loop().create_task(self._follow())
        try:
            await self._app.run_async(handle_sigint=False, set_exception_handler=False)
        finally:
            live.cancel()

    async def _follow(self) -> None:
        """Draw what has grown."""
        seen: object = None
        while True:
            documents = self._documents()
            now = ([document.version for document in documents], self._waiting())
            if now != seen:
                seen = now
                self._viewer.update(documents)
                self._app.invalidate()
            await asyncio.sleep(_LIVE)

    def _fragments(self) -> Any:
        size = self._app.output.get_size()
        lines = self._viewer.lines(Look(self._theme, size.columns, "full"), size.rows)
        said = self._said()
        return fragments([*lines[:-1], said or lines[-1]], self._depth)

    def _said(self) -> Line | None:
        """The message in the last row that replaces the position."""
        if self._typed is not None:
            return (Span(f"/{self._typed}", self._theme.accent), Span("▏", self._theme.accent))
        if self._missing:
            return (Span(f"Not found: {self._missing}", self._theme.warning),)
        if self._waiting():
            return (
                Span(
                    "mull has a question: press q to close this and answer it.", self._theme.warning
                ),
            )
        return None

    def _bindings(self) -> KeyBindings:
        keys, viewer = KeyBindings(), self._viewer
        typing = Condition(lambda: self._typed is not None)
        moves: dict[tuple[str, ...], Callable[[], object]] = {
            ("up", "k"): lambda: viewer.scroll(-1),
            ("down", "j"): lambda: viewer.scroll(1),
            ("pageup", "b", "c-b"): lambda: viewer.page(-1),
            ("pagedown", " ", "c-f"): lambda: viewer.page(1),
            ("c-u",): lambda: viewer.page(-0.5),
            ("c-d",): lambda: viewer.page(0.5),
            ("home", "g"): lambda: viewer.go(to_end=False),
            ("end", "G"): lambda: viewer.go(to_end=True),
            ("tab", "]", "right"): lambda: viewer.jump(1),
            ("s-tab", "[", "left"): lambda: viewer.jump(-1),
            ("enter",): viewer.toggle,
            ("a",): viewer.toggle_all,
            ("n",): lambda: self._search(viewer.found),
            ("N",): lambda: self._search(viewer.found, backwards=True),
            ("/",): self._begin_search,
            ("q", LONE_ESC, "c-c", "c-t", "c-o", "v"): self._app_exit,
        }
        for pressed, do in moves.items():
            for key in pressed:
                keys.add(key, filter=~typing)(self._caller(do))
        keys.add("<any>", filter=typing)(self._type)
        keys.add("backspace", filter=typing)(lambda _: self._rub())
        keys.add("enter", filter=typing)(lambda _: self._end_search())
        for key in (LONE_ESC, "c-c"):
            keys.add(key, filter=typing)(lambda _: self._leave_search())
        return keys

    def _caller(self, do: Callable[[], object]) -> Callable[[KeyPressEvent], None]:
        def call(_: KeyPressEvent) -> None:
            self._missing = ""
            do()

        return call

    def _app_exit(self) -> None:
        if not self._app.is_done:
            self._app.exit()

    def _begin_search(self) -> None:
        self._typed = ""

    def _type(self, event: KeyPressEvent) -> None:
        if self._typed is not None and event.data.isprintable():
            self._typed += event.data

    def _rub(self) -> None:
        self._typed = self._typed[:-1] if self._typed else None

    def _leave_search(self) -> None:
        self._typed = None

    def _end_search(self) -> None:
        text, self._typed = self._typed or "", None
        self._search(text or self._viewer.found)

    def _search(self, text: str, *, backwards: bool = False) -> None:
        if text and not self._viewer.search(text, backwards=backwards):
            self._missing = text
