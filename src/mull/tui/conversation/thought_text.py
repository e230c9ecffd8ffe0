"""The text of thinking laid out in lines, without blank lines around it.

Raw thinking is not Markdown and is left alone. Summaries have titles in bold, which are shown.
"""

from __future__ import annotations

from mull.markdown.events import BOLD, ITALIC, STRIKE, Piece
from mull.markdown.inline import InlineParser
from mull.tui.screen.theme import Theme
from mull.tui.text.lines import Line
from mull.tui.text.markdown_text import Looks
from mull.tui.text.wrap import TAB, Wrapper

__all__ = ["ThoughtText"]

_SHOWN = BOLD | ITALIC | STRIKE


class ThoughtText:
    """Text in, lines out, as soon as they can no longer change."""

    def __init__(self, theme: Theme, width: int, *, marked: bool) -> None:
        self._style = theme.thinking
        self._looks = Looks(theme)
        self._inline = InlineParser() if marked else None
        self._wrapper = Wrapper(width)
        self._began = False
        self._indent: str | None = ""  # leading whitespace of a line; None once the line has text
        self._blank = False

    def add(self, text: str) -> None:
        """Add text, however it was split."""
        first, *rest = text.replace("\t", " " * TAB).split("\n")
        self._say(first)
        for line in rest:
            if self._indent is not None:
                self._blank = self._began
            self._indent = ""
            self._say(line)

    def take(self) -> list[Line]:
        """The finished lines."""
        if self._inline is not None:
            self._set(self._inline.take(), self._wrapper)
        return self._wrapper.take()

    def finish(self) -> list[Line]:
        """The remaining lines."""
        if self._inline is not None:
            self._set(self._inline.finish(), self._wrapper)
        return self._wrapper.finish()

    @property
    def row(self) -> Line:
        """The part of the open line that no later text can move."""
        return self._wrapper.row

    def turn_over(self, width: int) -> None:
        """Leave the open line as it is and continue in another, of another width."""
        self._wrapper.turn_over(width)

    def sketch(self) -> list[Line]:
        """What is not given out yet, as it looks now."""
        wrapper = self._wrapper.fork()
        if self._inline is not None:
            self._set(self._inline.fork().finish(guess=True), wrapper)
        return wrapper.finish()

    def _say(self, text: str) -> None:
        if self._indent is not None:
            text = self._indent + text
            self._indent = text
            if not text.strip():
                return
            if self._began:
                self._put("\n")
            if self._blank:
                self._put("\n")
            self._began, self._blank, self._indent = True, False, None
        self._put(text)

    def _put(self, text: str) -> None:
        if self._inline is not None:
            self._inline.feed(text)
        else:
            self._set([Piece(text, 0)], self._wrapper)

    def _set(self, pieces: list[Piece], wrapper: Wrapper) -> None:
        shown = [Piece(text, flags & _SHOWN) for text, flags, _ in pieces]
        self._looks.put(shown, self._style, wrapper, indents=True)
