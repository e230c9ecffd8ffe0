"""Markdown drawn while it streams.

`feed` keeps a piece and does nothing else. `commit` gives the lines that can no longer change: they
go to the scrollback and are never drawn again. `open_lines` gives the rest as it looks now, to be
drawn over at the next repaint. All text that was fed comes out of `commit` and `close` together,
the same however it was cut, and the cost of all calls grows with the text and not with its square:
what can be open is bounded, in lines that are held back (`LONG_LINE`), in marks that wait for
their end and in rows of a table.
"""

from __future__ import annotations

from mull.tui.screen.theme import Theme
from mull.tui.text.lines import Line
from mull.tui.text.markdown_blocks import Blocks
from mull.tui.text.safe import Inbox

__all__ = ["LEAST_WIDTH", "LONG_LINE", "MarkdownStream", "markdown_lines"]

LONG_LINE = 4000
"""A line of more characters is drawn before its end; it is text or code, never a table's row."""
LEAST_WIDTH = 10
_LEADING, _ENOUGH = " \t>*+-#0123456789.)", 100
"""Indents and marks of a line, and how much text after them is enough to know it by."""


class MarkdownStream:
    """One Markdown text as it arrives."""

    def __init__(self, theme: Theme, width: int) -> None:
        self._blocks = Blocks(theme, max(width, LEAST_WIDTH))
        self._inbox = Inbox()
        self._partial = ""  # the line that has no end yet
        self._in_long = False  # whether its first part is drawn already

    def feed(self, text: str) -> None:
        """The next piece of the text."""
        self._inbox.add(text)

    def commit(self) -> list[Line]:
        """The lines that became final since the last time."""
        self._read(self._inbox.take())
        return self._blocks.take()

    def open_lines(self) -> list[Line]:
        """What comes after the committed lines, as it looks now."""
        self._read(self._inbox.take())
        return self._blocks.sketch(self._partial)

    def close(self) -> list[Line]:
        """The text is over: all the lines that are left."""
        self._read(self._inbox.take(final=True))
        if self._in_long:
            self._blocks.end_line()
        elif self._partial:
            self._whole(self._partial)
        self._partial, self._in_long = "", False
        return self._blocks.close()

    def resize(self, width: int) -> None:
        """Another width for the lines that are not committed yet."""
        self._blocks.resize(max(width, LEAST_WIDTH))

    def _read(self, text: str) -> None:
        if not text:
            return
        first, *rest = text.split("\n")
        if self._in_long:
            self._blocks.go_on(first)
        else:
            self._partial += first
        for line in rest:
            self._end_line()
            self._partial = line
        if not self._in_long and _is_long(self._partial):
            self._blocks.more(self._partial)
            self._partial, self._in_long = "", True

    def _end_line(self) -> None:
        if self._in_long:
            self._blocks.end_line()
            self._in_long = False
        else:
            self._whole(self._partial)

    def _whole(self, line: str) -> None:
        if _is_long(line):
            self._blocks.more(line)
            self._blocks.end_line()
        else:
            self._blocks.line(line)


def _is_long(line: str) -> bool:
    """Whether it is drawn before its end: when enough has come to tell what it begins with."""
    if len(line) <= LONG_LINE:
        return False
    blanks = line.count(" ") + line.count("\t")
    return len(line.lstrip(_LEADING)) > _ENOUGH or len(line) - blanks > LONG_LINE


def markdown_lines(text: str, theme: Theme, width: int) -> list[Line]:
    """A whole Markdown text."""
    stream = MarkdownStream(theme, width)
    stream.feed(text)
    return stream.close()
