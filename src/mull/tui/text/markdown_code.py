"""A block of code: each line is given out as it ends.

It stands two columns in, with its language above it. A line that is too long goes on after a mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mull.tui.screen.theme import Theme
from mull.tui.text.highlight import Highlighter
from mull.tui.text.lines import BLANK, Line, Span, line_width
from mull.tui.text.wrap import chopped, expanded, wrapped

__all__ = ["CodeBlock"]

_INDENT, _GOES_ON = "  ", "↪ "


class CodeBlock:
    """Code; `info` is what stands beside its fence, the language first, and `fence` what opened it,
    "" where indentation makes it code."""

    def __init__(self, info: str, theme: Theme, width: int, fence: str = "") -> None:
        self.fence = fence
        self._theme = theme
        self._width = width
        self._done: list[Line] = []
        self._highlighter = Highlighter(_language(info), theme)
        self._long = ""  # the last row of a line that is too long to be held back
        self._goes_on = False  # whether rows of that line are out already
        if info:
            indent = Span(_INDENT, theme.note)
            self._done += [(indent, *row) for row in wrapped(info, theme.note, width - 2)]

    def line(self, text: str) -> None:
        """A whole line of the code."""
        spans = self._highlighter.line(expanded(text))
        if not spans:
            self._done.append(BLANK)
        elif line_width(spans) <= self._width - len(_INDENT):
            self._done.append((Span(_INDENT, self._theme.code_block), *spans))
        else:
            self._draw(chopped(spans, self._room))
            self._goes_on = False

    def more(self, text: str) -> None:
        """A piece of a very long line, which is shown plain."""
        *rows, last = chopped([Span(self._long + text, self._theme.code_block)], self._room)
        self._draw(rows)
        self._long = "".join(span.text for span in last)

    def end_line(self) -> None:
        """The very long line is over."""
        self._draw([(Span(self._long, self._theme.code_block),)])
        self._long, self._goes_on = "", False

    def take(self) -> list[Line]:
        """The lines that are done."""
        done, self._done = self._done, []
        return done

    def finish(self, *, sketch: bool = False) -> list[Line]:
        """The rest of the lines."""
        if self._long:
            self.end_line()
        return self.take()

    def resize(self, width: int) -> None:
        """Another width for what follows."""
        self._width = width

    def fork(self) -> CodeBlock:
        """A copy that can go on without this one."""
        twin = CodeBlock("", self._theme, self._width, self.fence)
        twin._done = self._done[:]
        twin._long, twin._goes_on = self._long, self._goes_on
        twin._highlighter = self._highlighter.fork()
        return twin

    @property
    def _room(self) -> int:
        return max(self._width - len(_INDENT + _GOES_ON), 2)

    def _draw(self, rows: Iterable[Line]) -> None:
        for row in rows:
            mark = _INDENT + _GOES_ON if self._goes_on else _INDENT
            self._done.append((Span(mark, self._theme.faint), *row))
            self._goes_on = True


def _language(info: str) -> str:
    found = re.match(r"[\w+#-]+", info)
    return found[0] if found else ""
