"""What a command shows: titles, text that wraps, columns that fit, in the theme's roles.

Nothing is wider than the page. The last column of a table wraps below itself, and goes below its
row where too little is left for it; the others are cut.
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
"""Cells below which the last column gets lines of its own."""


class Page:
    """Lines in the making."""

    def __init__(self, theme: Theme, width: int) -> None:
        self.theme = theme
        self.width = max(width, 20)
        self.lines: list[Line] = []

    @property
    def plain(self) -> bool:
        """Whether charts must do without colours and signs: nothing else tells parts apart."""
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
        """Text that wraps; `mark` stands before its first line and is never wrapped."""
        style = self.theme.text if style is None else style
        mark = " " * indent + mark
        below = " " * cell_width(mark)
        rows = wrapped(neutralise(text), style, self.width - len(below)) or [()]
        for number, row in enumerate(rows):
            before = below if number else mark
            self.lines.append((Span(before, style), *row) if before else row)

    def note(self, text: str, *, warning: bool = False, indent: int = 2) -> None:
        """A remark with its mark: ⚠ for what is worth attention, a dot for the rest."""
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
        """Rows in columns; `right` are the numbers of those that end in line.

        The column `give` is cut where there is too little room, by default the widest.
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
        """What each column takes; one is cut if they leave the last one nothing."""
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
    """The line without spaces at its end."""
    kept = [span for span in spans if span.text]
    while kept and not kept[-1].text.strip():
        kept.pop()
    if kept:
        kept[-1] = kept[-1]._replace(text=kept[-1].text.rstrip())
    return tuple(kept)
