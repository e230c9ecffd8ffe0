"""What a terminal shows, cell by cell: pyte's screen, and faint text, which that lacks."""

from __future__ import annotations

from typing import NamedTuple

import pyte

__all__ = ["Cell", "TerminalScreen"]

_STEP = 2026 << 5
"""How pyte names the mode of synchronized output."""
_FAINT, _BLINKING, _NORMAL, _STEADY = 2, 5, 22, 25


class Cell(NamedTuple):
    """One character; colours are `rrggbb`, or None for the terminal's own.

    `text` is empty where the character before it takes two columns.
    """

    text: str
    front: str | None = None
    back: str | None = None
    bold: bool = False
    italic: bool = False
    faint: bool = False
    underline: bool = False


class TerminalScreen:
    """Takes what a program writes, and says what is then to be seen."""

    def __init__(self, columns: int, rows: int) -> None:
        self._screen = _Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)

    def feed(self, data: bytes) -> None:
        """Take what was written."""
        self._stream.feed(data)

    def cursor(self) -> tuple[int, int]:
        """Row and column of the cursor, from 1."""
        return self._screen.cursor.y + 1, self._screen.cursor.x + 1

    @property
    def is_drawing(self) -> bool:
        """Whether the program is in the middle of what is to be shown in one step."""
        return _STEP in self._screen.mode

    @property
    def text(self) -> str:
        """The words, without colours."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def rows(self) -> list[list[Cell]]:
        """Every cell of every row, without the empty rows at the end."""
        buffer, size = self._screen.buffer, self._screen
        rows = [[_cell(buffer[y][x]) for x in range(size.columns)] for y in range(size.lines)]
        while rows and not any(cell.text.strip() or cell.back for cell in rows[-1]):
            rows.pop()
        return rows


class _Screen(pyte.Screen):
    """Faint text is kept as text that blinks, which nothing here does."""

    def select_graphic_rendition(self, *attrs: int, **more: bool) -> None:
        super().select_graphic_rendition(*_translated(attrs), **more)


def _translated(attrs: tuple[int, ...]) -> tuple[int, ...]:
    known = {_FAINT: (_BLINKING,), _NORMAL: (_NORMAL, _STEADY)}
    out: list[int] = []
    left = iter(attrs)
    for one in left:
        if one in (38, 48):  # a colour: its numbers mean something else
            kind = next(left, 5)
            out += [one, kind, *(next(left, 0) for _ in range(3 if kind == 2 else 1))]
        else:
            out += known.get(one, (one,))
    return tuple(out)


def _cell(char: pyte.screens.Char) -> Cell:
    front, back = _colour(char.fg), _colour(char.bg)
    if char.reverse:
        front, back = back or "000000", front or "ffffff"
    return Cell(char.data, front, back, char.bold, char.italics, char.blink, char.underscore)


def _colour(name: str) -> str | None:
    return None if name == "default" else _NAMED.get(name, name)


_NAMED = {
    "black": "000000",
    "red": "cd3131",
    "green": "0dbc79",
    "brown": "e5e510",
    "blue": "2472c8",
    "magenta": "bc3fbc",
    "cyan": "11a8cd",
    "white": "e5e5e5",
}
