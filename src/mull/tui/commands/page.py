"""The output of a command: titles, wrapping text, aligned columns, in the theme's roles.

Nothing is wider than the page. The last column of a table wraps within itself, and moves below its
row if there is too little room; the other columns are cut.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mull.tui.screen.theme import Theme
from mull.tui.text.lines import Line, Span, Style
from mull.tui.text.safe import neutralise
from mull.tui.text.width import cell_width, fitted
from mull.tui.text.wrap import wrapped

__all__ = ["Page"]

_GAP = "  "
_LEAST_REST = 18
"""Minimum width of the last column; below it, the column gets its own lines."""


class Page:
    """The lines of a page."""

    def __init__(self, theme: Theme, width: int) -> None:
        self.theme = theme
        self.width = max(width, 20)
        self.lines: list[Line] = []

    @property
    def plain(self) -> bool:
        """Whether charts must work without colours and symbols."""
        return self.theme.marks

    def title(self, text: str) -> None:
        """A heading, with a blank line before it unless it is the first."""
        if self.lines:
            self.blank()
        self.text(text, self.theme.heading)

    def blank(self) -> None:
        """An empty line."""
        self.lines.append(())

    def line(self, *spans: Span) -> None:
        """A line that is known to fit."""
        self.lines.append(spans)

    def text(self, text: str, style: Style | None = None, indent: int = 0, mark: str = "") -> None:
        """Text that wraps; `mark` precedes its first line and never wraps. A symbol is left
        out where words replace symbols.
        """
        style = self.theme.text if style is None else style
        if self.theme.words and not mark.isascii():
            mark = ""
        mark = " " * indent + mark
        below = " " * cell_width(mark)
        rows = wrapped(neutralise(text), style, self.width - len(below)) or [()]
        for number, row in enumerate(rows):
            before = below if number else mark
            self.lines.append((Span(before, style), *row) if before else row)

    def note(self, text: str, *, warning: bool = False, indent: int = 2) -> None:
        """A remark with its mark: ⚠ for warnings, a dot for the rest."""
        style = self.theme.warning if warning else self.theme.note
        warns, notes = ("Warning: ", "- ") if self.theme.words else ("⚠ ", "· ")
        self.text(text, style, indent, warns if warning else notes)

    def table(
        self,
        rows: Sequence[Sequence[str]],
        styles: Sequence[Style],
        *,
        right: Collection[int] = (),
        heads: Sequence[str] = (),
        indent: int = 2,
        give: int | None = None,
    ) -> None:
        """Rows in columns; `right` lists the right-aligned columns.

        The column `give` is cut if there is too little room, by default the widest.
        """
        safe = [[" ".join(neutralise(cell).split()) for cell in row] for row in rows]
        shown = [list(heads), *safe] if heads else safe
        if not shown:
            return
        widths = self._widths(shown, indent, give)
        for number, row in enumerate(shown):
            is_head = number == 0 and bool(heads)
            used = [self.theme.faint] * len(row) if is_head else styles
            self._row(row, widths, used, right, indent)

    def _widths(self, rows: Sequence[Sequence[str]], indent: int, give: int | None) -> list[int]:
        """The width of each column; one is cut if the last would get no room."""
        wanted = [max(map(cell_width, column)) for column in zip(*rows, strict=True)]
        room = self.width - indent - len(_GAP) * (len(wanted) - 1)
        over = sum(wanted) - wanted[-1] + min(wanted[-1], _LEAST_REST) - room
        if over > 0 and len(wanted) > 1:
            if give is None:
                give = max(range(len(wanted) - 1), key=wanted.__getitem__)
            wanted[give] = max(wanted[give] - over, 8)
        return wanted

    def _row(
        self,
        row: Sequence[str],
        widths: Sequence[int],
        styles: Sequence[Style],
        right: Collection[int],
        indent: int,
    ) -> None:
        last = len(row) - 1
        spans = [Span(" " * indent, self.theme.text)]
        for at, cell in enumerate(row[:last]):
            told = fitted(cell, widths[at])
            fill = " " * (widths[at] - cell_width(told))
            spans.append(Span(f"{fill}{told}" if at in right else f"{told}{fill}", styles[at]))
            spans.append(Span(_GAP, self.theme.text))
        left = self.width - sum(cell_width(span.text) for span in spans)
        cell = row[last]
        if last in right:
            cell = " " * (min(widths[last], left) - cell_width(cell)) + cell
        if left < min(cell_width(cell), _LEAST_REST):
            self.lines.append(_trimmed(spans))
            self.text(cell.strip(), styles[last], indent + 2)
            return
        first, *more = wrapped(cell, styles[last], max(left, 1)) or [()]
        if last in right and not more:
            first = (Span(cell, styles[last]),)
        self.lines.append(_trimmed([*spans, *first]))
        below = Span(" " * (self.width - left), self.theme.text)
        self.lines += [(below, *line) for line in more]


def _trimmed(spans: Sequence[Span]) -> Line:
    """The line without trailing spaces."""
    kept = [span for span in spans if span.text]
    while kept and not kept[-1].text.strip():
        kept.pop()
    if kept:
        kept[-1] = kept[-1]._replace(text=kept[-1].text.rstrip())
    return tuple(kept)
