"""Draws the cells of a terminal as an SVG that needs nothing else: a window, shades, words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from typing import NamedTuple

from tools.pictures.screen import Cell

__all__ = ["DARK", "LIGHT", "Look", "picture"]

COLUMN, LINE, SIZE = 8.4, 20, 14
MARGIN, BAR, LIFT = 20, 34, 4
_FONT = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"


class Look(NamedTuple):
    """The colours of a terminal's window, as `rrggbb`."""

    text: str
    back: str
    faint: str
    bar: str
    edge: str
    dots: str


DARK = Look("cdd3e0", "16181d", "8d95a5", "22252c", "2f333c", "4b515e")
LIGHT = Look("24292f", "ffffff", "6a737d", "f0f2f5", "d0d7de", "c3c9d1")


def picture(rows: Sequence[Sequence[Cell]], look: Look = DARK, title: str = "") -> str:
    """The SVG of a terminal that shows these rows."""
    width = round(max(map(len, rows)) * COLUMN + 2 * MARGIN)
    height = _top(len(rows)) + MARGIN - LIFT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
        f' height="{height}" font-family="{_FONT}" font-size="{SIZE}" fill="#{look.text}">',
        f"<title>{escape(title)}</title>",
        *_window(width, height, look),
    ]
    for number, row in enumerate(rows):
        parts += _shades(row, _top(number))
        parts += _words(row, _top(number), look)
    return "\n".join([*parts, "</svg>", ""])


def _top(row: int) -> int:
    return BAR + MARGIN - LIFT + row * LINE


def _window(width: int, height: int, look: Look) -> Iterator[str]:
    yield (
        f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="10"'
        f' fill="#{look.back}" stroke="#{look.edge}"/>'
    )
    round_top = f"M1 {BAR}V11a10 10 0 0 1 10-10h{width - 22}a10 10 0 0 1 10 10v{BAR - 11}z"
    yield f'<path d="{round_top}" fill="#{look.bar}"/>'
    for number in range(3):
        yield f'<circle cx="{22 + 20 * number}" cy="{BAR // 2}" r="6" fill="#{look.dots}"/>'


def _shades(row: Sequence[Cell], top: int) -> Iterator[str]:
    """What lies behind the words, where it is not the window's own colour."""
    column = 0
    for back, cells in groupby(row, lambda cell: cell.back):
        columns = len(list(cells))
        if back:
            place = f'x="{MARGIN + column * COLUMN:.1f}" y="{top}" width="{columns * COLUMN:.1f}"'
            yield f'<rect {place} height="{LINE}" fill="#{back}"/>'
        column += columns


def _words(row: Sequence[Cell], top: int, look: Look) -> Iterator[str]:
    """Words that look the same, each run held to the columns that it has."""
    column = 0
    for style, group in groupby(row, lambda cell: cell._replace(text="", back=None)):
        cells = list(group)
        words = "".join(cell.text for cell in cells)
        shown = words.strip()
        if shown:
            before = len(words) - len(words.lstrip())
            after = len(words) - len(words.rstrip())
            x, length = column + before, len(cells) - before - after
            yield (
                f'<text x="{MARGIN + x * COLUMN:.1f}" y="{top + LIFT + 10}"'
                f' textLength="{length * COLUMN:.1f}" xml:space="preserve"{_style(style, look)}>'
                f"{escape(shown, quote=False)}</text>"
            )
        column += len(cells)


def _style(cell: Cell, look: Look) -> str:
    front = cell.front or (look.faint if cell.faint else None)
    out = f' fill="#{front}"' if front else ""
    out += ' font-style="italic"' if cell.italic else ""
    out += ' font-weight="bold"' if cell.bold else ""
    out += ' text-decoration="underline"' if cell.underline else ""
    return out
