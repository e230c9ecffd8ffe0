"""A code block: each line is given out as it ends.

It is indented by two columns, with its language above. A line that is too long continues after a
mark.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

from mull.markdown.events import CodeLine, CodePart, Content
from mull.markdown.highlight import Highlighter
from mull.tui.screen.theme import Theme
from mull.tui.text.lines import BLANK, Line, Span, line_width
from mull.tui.text.wrap import chopped, wrapped

__all__ = ["CodeLines"]

_INDENT, _GOES_ON = "  ", "↪ "


class CodeLines:
    """Code in lines; `info` is the info string of its fence, the language first."""

    def __init__(self, info: str, theme: Theme, width: int) -> None:
        self._theme = theme
        self._width = width
        self._done: list[Line] = []
        self._highlighter = Highlighter(info)
        self._long = ""  # the last row of a line that is too long to hold back
        self._goes_on = False  # whether rows of that line are already written
        if info:
            indent = Span(_INDENT, theme.note)
            self._done += [(indent, *row) for row in wrapped(info, theme.note, width - 2)]

    def put(self, content: Content) -> None:
        """Add code."""
        if isinstance(content, CodeLine):
            self._line(content.text)
            return
        assert isinstance(content, CodePart)
        *rows, last = chopped([Span(self._long + content.text, self._theme.code_block)], self._room)
        self._draw(rows)
        self._long = "".join(span.text for span in last)
        if content.is_last:
            self._end_long()

    def take(self) -> list[Line]:
        """The finished lines."""
        done, self._done = self._done, []
        return done

    def finish(self) -> list[Line]:
        """The remaining lines."""
        if self._long:
            self._end_long()
        return self.take()

    def resize(self, width: int) -> None:
        """Another width for what follows."""
        self._width = width

    def fork(self) -> CodeLines:
        """An independent copy."""
        twin = copy(self)
        twin._done, twin._highlighter = self._done[:], copy(self._highlighter)
        return twin

    @property
    def _room(self) -> int:
        return max(self._width - len(_INDENT + _GOES_ON), 2)

    def _line(self, text: str) -> None:
        spans = [
            Span(run, getattr(self._theme, role)) for run, role in self._highlighter.line(text)
        ]
        if not spans:
            self._done.append(BLANK)
        elif line_width(spans) <= self._width - len(_INDENT):
            self._done.append((Span(_INDENT, self._theme.code_block), *spans))
        else:
            self._draw(chopped(spans, self._room))
            self._goes_on = False

    def _end_long(self) -> None:
        self._draw([(Span(self._long, self._theme.code_block),)])
        self._long, self._goes_on = "", False

    def _draw(self, rows: Iterable[Line]) -> None:
        for row in rows:
            mark = _INDENT + (_GOES_ON if self._goes_on and not self._theme.words else "")
            self._done.append((Span(mark, self._theme.faint), *row))
            self._goes_on = True
