"""The rows of the prompt, as the editor will draw them: a blank one, the input, the status."""

from __future__ import annotations

from mull.tui.text.width import cell_width

__all__ = ["NEXT", "OPENING", "PROMPT", "TALLEST_INPUT", "Rows"]

PROMPT, NEXT = "❯ ", "  "
"""What stands before the input, and before each of its further rows."""
OPENING = "opening …"
"""The status until a session is open."""
TALLEST_INPUT = 12
"""Most rows of input on the screen."""


class Rows:
    """A text at a width: its `rows`, their `widths`, and the column of the cursor behind it."""

    def __init__(self, text: str, columns: int) -> None:
        self.rows: list[str] = []
        self.widths: list[int] = []
        self.columns = columns
        self.column = 0
        for line in text.split("\n"):
            self._wrap(line)

    def _wrap(self, line: str) -> None:
        row, at = NEXT if self.rows else PROMPT, len(PROMPT)
        for letter in (*line, ""):  # the last is the place for the cursor
            width = cell_width(letter) if letter else 1
            if at + width > self.columns:
                self._end(row, at)
                row, at = NEXT, len(NEXT)
            row += letter
            at += width if letter else 0
        self._end(row, at)

    def _end(self, row: str, width: int) -> None:
        self.rows.append(row)
        self.widths.append(width)
        self.column = width

    def height_above(self, columns: int, *, reflows: bool) -> int:
        """The rows above that of the cursor in a window that has this width by now; the blank row
        is one of them.
        """
        if not reflows:
            return len(self.rows)
        return (
            1 + sum(max(1, -(-one // columns)) for one in self.widths[:-1]) + self.column // columns
        )
