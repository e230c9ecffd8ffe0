"""Markdown read while it streams.

`feed` reads a piece; the text has no control characters but newline and tab. `take` gives what can
no longer change, `rest` what comes after it as it looks now, and `close` all that is left. What
`take` and `close` give together is the same however the text was cut, and the cost of all calls
grows with the text and not with its square: what can be open is bounded, in lines that are held
back (`LONG_LINE`) and in marks that wait for their end (`inline.REACH`).
"""

from __future__ import annotations

from mull.markdown.blocks import Blocks
from mull.markdown.events import Event

__all__ = ["LONG_LINE", "Reader", "read"]

LONG_LINE = 4000
"""A longer line is given out before its end; it is text or code, never a row of a table."""
_LEADING, _ENOUGH = " \t>*+-#0123456789.)", 100
"""Indents and marks of a line, and how much text after them is enough to know it by."""


class Reader:
    """One Markdown text as it arrives."""

    def __init__(self) -> None:
        self._blocks = Blocks()
        self._partial = ""  # the line that has no end yet
        self._in_long = False  # whether its first part is read already

    def feed(self, text: str) -> None:
        """The next piece of the text."""
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

    def take(self) -> list[Event]:
        """What became final since the last time."""
        return self._blocks.take()

    def rest(self) -> list[Event]:
        """What comes after that, with all that is open taken for closed."""
        return self._blocks.rest(self._partial)

    def close(self) -> list[Event]:
        """The text is over: all that is left."""
        if self._partial or self._in_long:
            self._end_line()
        self._partial = ""
        return self._blocks.close()

    def _end_line(self) -> None:
        if self._in_long:
            self._blocks.end_line()
            self._in_long = False
        elif _is_long(self._partial):
            self._blocks.more(self._partial)
            self._blocks.end_line()
        else:
            self._blocks.line(self._partial)


def _is_long(line: str) -> bool:
    """Whether it is read before its end: when enough has come to tell what it begins with."""
    if len(line) <= LONG_LINE:
        return False
    blanks = line.count(" ") + line.count("\t")
    return len(line.lstrip(_LEADING)) > _ENOUGH or len(line) - blanks > LONG_LINE


def read(text: str) -> list[Event]:
    """A whole Markdown text."""
    reader = Reader()
    reader.feed(text)
    return reader.close()
