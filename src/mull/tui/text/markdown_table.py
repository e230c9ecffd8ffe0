"""Tables: columns side by side, or rows one below the other if columns do not fit.

The column widths are determined by the header and the first `SAMPLE` rows, or by the end of the
table. Until then the table is open and can still change; after that rows are given out one by one,
and a cell longer than its column wraps.
"""

from __future__ import annotations

from copy import copy
from typing import TypeAlias

from mull.markdown.events import Content, Piece, Row, Table
from mull.tui.screen.theme import Theme
from mull.tui.text.lines import BLANK, Line, Span, Style, line_width
from mull.tui.text.markdown_text import Looks
from mull.tui.text.wrap import Wrapper

__all__ = ["SAMPLE", "TableLines"]

SAMPLE = 20
_GAP = 2
_NARROWEST = 6
_UNBOUND = 1_000_000

_Cell: TypeAlias = list[Piece]


class TableLines:
    """A table, starting with its header."""

    def __init__(self, table: Table, theme: Theme, looks: Looks, width: int) -> None:
        self._aligned = table.aligned
        self._theme = theme
        self._looks = looks
        self._width = width
        self._header = table.header
        self._waiting: list[list[_Cell]] = []
        self._columns: list[int] | None = None
        self._done: list[Line] = []
        self._has_record = False

    def put(self, content: Content) -> None:
        """Add a row."""
        assert isinstance(content, Row)
        self._waiting.append(content.cells)
        if self._columns is not None:
            self._draw()
        elif len(self._waiting) >= SAMPLE:
            self._settle()

    def take(self) -> list[Line]:
        """The finished lines."""
        done, self._done = self._done, []
        return done

    def finish(self) -> list[Line]:
        """The remaining lines."""
        if self._columns is None:
            self._settle()
        return self.take()

    def resize(self, width: int) -> None:
        """Another width, unless columns are already written: those stay aligned as far as
        possible.
        """
        self._width = width
        if self._columns is not None:
            self._columns = self._fit(self._columns)

    def fork(self) -> TableLines:
        """An independent copy."""
        twin = copy(self)
        twin._waiting, twin._done = self._waiting[:], self._done[:]
        return twin

    def _settle(self) -> None:
        rows = [self._header, *self._waiting]
        texts = [
            [self._lines(cell, self._theme.text, _UNBOUND) for cell in column]
            for column in zip(*rows, strict=True)
        ]
        natural = [max(line_width(line) for cell in c for line in cell or [()]) for c in texts]
        self._columns = self._fit(natural)
        if self._columns:
            bold = self._theme.text._replace(bold=True)
            self._done += self._row(self._header, bold, self._columns)
            rule = (" " * _GAP).join("─" * column for column in self._columns)
            self._done.append((Span(rule, self._theme.faint),))
        self._draw()

    def _fit(self, natural: list[int]) -> list[int]:
        """Widths that fit together: small columns in full, large ones share the rest.

        An empty list means that columns do not fit, or that the output is for a screen reader.
        """
        if self._theme.words:
            return []
        columns = [max(1, width) for width in natural]
        room = self._width - _GAP * (len(columns) - 1)
        if sum(columns) <= room:
            return columns
        open_, share = len(columns), room // len(columns)
        for width in sorted(columns):
            share = room // open_
            if width > share:
                break
            room -= width
            open_ -= 1
        if share < _NARROWEST:
            return []
        return [min(width, share) for width in columns]

    def _draw(self) -> None:
        for cells in self._waiting:
            if self._columns:
                self._done += self._row(cells, self._theme.text, self._columns)
            else:
                self._done += self._record(cells)
        self._waiting.clear()

    def _row(self, cells: list[_Cell], style: Style, columns: list[int]) -> list[Line]:
        blocks = [
            self._lines(cell, style, width) for cell, width in zip(cells, columns, strict=True)
        ]
        height = max(1, *map(len, blocks))
        return [
            self._beside([block[n] if n < len(block) else () for block in blocks], columns)
            for n in range(height)
        ]

    def _beside(self, parts: list[Line], columns: list[int]) -> Line:
        """The same line of each cell, side by side."""
        spans: list[Span] = []
        owed = 0
        for part, width, side in zip(parts, columns, self._aligned, strict=True):
            spare = width - line_width(part)
            before = {"<": 0, ">": spare}.get(side, spare // 2)
            if part:
                spans += [Span(" " * (owed + before), self._theme.text)] if owed + before else []
                spans += part
                owed = 0
                spare -= before
            owed += spare + _GAP
        return tuple(spans)

    def _record(self, cells: list[_Cell]) -> list[Line]:
        """A row as lines of its own, each cell after the name of its column."""
        lines: list[Line] = [BLANK] if self._has_record else []
        self._has_record = True
        for name, cell in zip(self._header, cells, strict=True):
            wrapper = Wrapper(self._width)
            self._looks.put(name, self._theme.note, wrapper)
            wrapper.add(": " if name else "", self._theme.note)
            self._looks.put(cell, self._theme.text, wrapper)
            lines += wrapper.finish()
        return lines

    def _lines(self, cell: _Cell, style: Style, width: int) -> list[Line]:
        wrapper = Wrapper(width)
        self._looks.put(cell, style, wrapper)
        return wrapper.finish()
