"""Rows of text in columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

__all__ = ["in_columns"]


def in_columns(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> Iterator[str]:
    """The rows as lines; columns named in `right` are numbers and end below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            f"{cell:>{width}}" if at in right else f"{cell:{width}}"
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()
