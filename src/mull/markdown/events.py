"""What reading Markdown gives: events in the order of the text.

A quote or an `Item` lasts until its end, and they nest. A leaf begins with `Text`, `Code` or
`Table`, goes on with its content and lasts until it is done; a rule and blank lines stand alone.
Marks inside a leaf are flags of its `Piece`s.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, TypeAlias

from msgspec import Struct

__all__ = [
    "BOLD",
    "CODE",
    "IMAGE",
    "ITALIC",
    "LINK",
    "SOFT",
    "STRIKE",
    "URL",
    "Code",
    "CodeLine",
    "CodePart",
    "Content",
    "Event",
    "Item",
    "Piece",
    "Pieces",
    "Row",
    "Sign",
    "Table",
    "Text",
]

BOLD, ITALIC, STRIKE, CODE, LINK, IMAGE, URL, SOFT = (1 << n for n in range(8))
"""Marks of a piece. `URL` is the address of the link before it, for readers who cannot follow it;
`SOFT` is a line break that a margin made, in the middle of a sentence."""


class Piece(NamedTuple):
    """Text with the marks that hold for it and the address it links to, or a line break: a newline
    with the indent of the line after it."""

    text: str
    flags: int
    address: str = ""


class Sign(Enum):
    """What is told without a word more."""

    QUOTE = "a quote begins"
    END = "the innermost quote or item ends"
    BLANK = "one or more blank lines between blocks"
    RULE = "a line across"
    DONE = "the leaf is whole"


class Item(Struct, frozen=True):
    """A list item begins, and with the first one its list. `delimiter` is the bullet, or the sign
    after the number; `done` is None unless the item is a task."""

    number: int | None
    delimiter: str
    is_first: bool
    done: bool | None = None


class Text(Struct, frozen=True):
    """A heading begins, or at level 0 a paragraph."""

    level: int


class Pieces(Struct, frozen=True):
    """More of a text."""

    pieces: list[Piece]


class Code(Struct, frozen=True):
    """A block of code begins; `info` is what stands beside its fence, the language first."""

    info: str


class CodeLine(Struct, frozen=True):
    """A whole line of code."""

    text: str


class CodePart(Struct, frozen=True):
    """A part of a very long line of code."""

    text: str
    is_last: bool = False


class Table(Struct, frozen=True):
    """A table begins with its header; each column is aligned `<`, `>` or `^`."""

    header: list[list[Piece]]
    aligned: list[str]


class Row(Struct, frozen=True):
    """A row of a table, as many cells as its header has."""

    cells: list[list[Piece]]


Content: TypeAlias = Pieces | CodeLine | CodePart | Row
Event: TypeAlias = Sign | Item | Text | Code | Table | Content
