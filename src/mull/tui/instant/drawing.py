"""Draws the prompt and what is typed at it, as the editor will, and takes it off again."""

from __future__ import annotations

import os
import select

from mull.tui.instant.rows import OPENING, PROMPT, TALLEST_INPUT, Rows
from mull.tui.screen.depth import colour_depth, environment_background, read_background
from mull.tui.screen.ground import THEMES, prompt_codes
from mull.tui.screen.terminal import reflows

TYPE_CHECKING = False  # without importing typing, so that the first prompt is fast
if TYPE_CHECKING:
    from mull.tui.screen.depth import Depth

__all__ = ["Drawing"]

_NARROWEST, _LOWEST = 12, 4
"""Columns and rows of the smallest window that is drawn in."""
_AROUND = 2
"""Rows that are not input: the blank one above, the status below."""
_BEGIN, _END = "\x1b[?2026h\x1b[?7l", "\x1b[?7h\x1b[?2026l"
"""Shown in one step, where terminals can; no row runs over the edge."""


class Drawing:
    """A prompt on a screen in a theme. Only a built-in theme is known so early, so that with
    another one nothing is drawn.
    """

    def __init__(self, screen: int, theme: str) -> None:
        self.depth: Depth = colour_depth(os.environ, is_terminal=True)
        self._screen = screen
        self._theme = theme
        self._reflows = reflows(os.environ)
        self._is_hidden = theme not in THEMES
        self._drawn: Rows | None = None
        """What is on the screen; the cursor is behind its text."""
        self._looked = ("", b"")

    @property
    def is_drawn(self) -> bool:
        """Whether it is on the screen."""
        return self._drawn is not None

    def show(self, text: str, reply: bytes) -> None:
        """Draw the prompt with this text, in colours for the background that the terminal
        replied.
        """
        columns, lines = os.get_terminal_size(self._screen)
        is_same = self._drawn is not None and self._drawn.columns == columns
        if self._is_hidden or (is_same and self._looked == (text, reply)):
            return
        rows = Rows(text, columns) if columns >= _NARROWEST and lines >= _LOWEST else None
        if rows is None or len(rows.rows) > min(lines - _AROUND, TALLEST_INPUT):
            if not is_same:
                self.hide()
            return
        self.write(_BEGIN + self._to_origin(columns) + self._encoded(rows, reply) + _END)
        self._drawn, self._looked = rows, (text, reply)

    def hide(self) -> None:
        """Take it off, and draw nothing more."""
        self._is_hidden = True
        if self._drawn is not None:
            self.write(f"{self.leave()}\x1b[J")

    def leave(self) -> str:
        """Leave the prompt to whoever draws next; returns how the cursor gets to its beginning."""
        drawn, self._is_hidden = self._drawn, True
        if drawn is None:
            return ""
        origin = self._to_origin(os.get_terminal_size(self._screen).columns)
        self._drawn = None
        return origin

    def write(self, text: str) -> None:
        """Write all of it."""
        data = text.encode()
        while data:
            try:
                data = data[os.write(self._screen, data) :]
            except BlockingIOError:
                select.select([], [self._screen], [])

    def _to_origin(self, columns: int) -> str:
        if self._drawn is None:
            return "\r"
        return f"\r\x1b[{self._drawn.height_above(columns, reflows=self._reflows)}A"

    def _encoded(self, rows: Rows, reply: bytes) -> str:
        background = read_background(reply) or environment_background(os.environ)
        mark, status = prompt_codes(self._theme, background, self.depth)
        plain = "\x1b[m" if mark else ""
        first, *others = rows.rows
        first = f"{mark}{PROMPT}{plain}{first.removeprefix(PROMPT)}"
        drawn = ("", first, *others, f"{status}{OPENING}{plain}")
        # each row is cleared before it is written: clearing behind a full one would take its end
        text = "\r\n".join(f"\x1b[K{row}" for row in drawn)
        return f"{text}\x1b[J\x1b[A\x1b[{rows.column + 1}G"
