"""The part of a terminal that `mull ask` draws on: an answer as Markdown, and a progress line.

Final lines are written once; lines that may still change are below them and are overwritten. If
escape sequences are not allowed, or another program has the terminal, only final lines are written.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TextIO

from mull.tui.conversation.status import SPINNER
from mull.tui.screen.depth import Depth, colour_depth, environment_background
from mull.tui.screen.theme import Theme, theme_for
from mull.tui.text.lines import Line, Span
from mull.tui.text.markdown import MarkdownStream
from mull.tui.text.safe import Drawn, draw_on
from mull.tui.text.sgr import encode
from mull.tui.text.width import cell_width, fitted

if TYPE_CHECKING:
    from mull.tui.screen.glance import Glance

__all__ = ["Board"]

_PAUSE = 0.05
"""Seconds between two redraws of the open lines."""


class Board:
    """One terminal; `stream` writes to it."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._screen = _descriptor(stream)
        self._depth: Depth = colour_depth(os.environ, is_terminal=True)
        self._theme: Theme = theme_for("auto", environment_background(os.environ), self._depth)
        self._text: MarkdownStream | None = None
        self._live: Sequence[Line] = ()
        self._drawn = 0.0
        self._word = ""
        self._since = clock()

    def take_look(self, glance: Glance) -> None:
        """Use the detected appearance of the terminal."""
        self._depth, self._theme = glance.depth, glance.theme

    @property
    def is_open(self) -> bool:
        """Whether an answer is being drawn."""
        return self._text is not None

    def add(self, text: str) -> None:
        """Add a chunk of the answer."""
        if self._text is None:
            self._text = MarkdownStream(self._theme, self._width)
        self._text.feed(text)
        if self._clock() - self._drawn >= _PAUSE:
            self._draw()

    def end(self) -> None:
        """The answer, or the wait, has ended."""
        text, self._text, self._word = self._text, None, ""
        self._write([*text.commit(), *text.close()] if text is not None else [], [])

    def wait(self, word: str) -> None:
        """Show that something is being waited for, with a word for it; empty for nothing."""
        if word != self._word:
            self._word, self._since = word, self._clock()
            if not word:
                self._draw()

    def tick(self) -> None:
        """Time has passed."""
        if self._text is not None or self._word:
            self._draw()

    def step_aside(self) -> None:
        """Make room for other output; the progress line reappears below it."""
        self._write([], [])

    def forget(self) -> None:
        """Another program has written since: do not overwrite what was drawn."""
        self._live = ()

    def _draw(self) -> None:
        self._drawn = self._clock()
        if self._text is not None:
            self._text.resize(self._width)
            self._write(self._text.commit(), self._text.open_lines())
        elif self._word:
            self._write([], [self._waiting()])
        elif self._live:
            self._write([], [])

    def _waiting(self) -> Line:
        seconds = self._clock() - self._since
        sign = SPINNER[int(self._clock() * 8) % len(SPINNER)]
        text = fitted(f"{self._word} {int(seconds)} s · Ctrl-C interrupts", self._width - 3)
        return (Span(f"{sign} ", self._theme.accent), Span(text, self._theme.faint))

    def _write(self, final: Sequence[Line], live: Sequence[Line]) -> None:
        live = live[-max(self._rows - 1, 1) :] if self._can_move else ()
        if not final and live == self._live:
            return
        above = self._erased()
        self._live = live
        draw_on(self._stream, Drawn(above + encode([*final, *live], self._depth)))

    def _erased(self) -> str:
        """The sequence that removes the open lines, even if the window has changed since."""
        if not self._live or not self._can_move:
            return ""
        columns = self._width
        rows = sum(max(1, -(-_width(line) // columns)) for line in self._live)
        return (
            "\x1b[F\x1b[2K" * rows
        )  # clearing the rest of a screen at once may copy it into the scrollback

    @property
    def _can_move(self) -> bool:
        """Whether lines can be overwritten: escape sequences are allowed, and the terminal is
        ours.
        """
        if self._depth == "none" or self._screen is None:
            return False
        try:
            return os.tcgetpgrp(self._screen) == os.getpgrp()
        except OSError:
            return False

    @property
    def _width(self) -> int:
        return self._size()[0] or 80

    @property
    def _rows(self) -> int:
        return self._size()[1] or 24

    def _size(self) -> tuple[int, int]:
        try:
            return os.get_terminal_size(self._screen) if self._screen is not None else (80, 24)
        except OSError:
            return 80, 24


def _width(line: Line) -> int:
    return sum(cell_width(text) for text, _ in line)


def _descriptor(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError):
        return None
