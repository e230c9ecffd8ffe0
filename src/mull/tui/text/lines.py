"""The output of drawing and input of a terminal: lines of styled text.

A line is a tuple of spans and contains no newline. A colour is an `Rgb`, a number of the terminal's
palette, or None for the terminal's default.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from mull.tui.screen.colour import Rgb
from mull.tui.text.width import cell_width

__all__ = [
    "BLANK",
    "PLAIN",
    "Colour",
    "Line",
    "Span",
    "Style",
    "line_width",
    "padded",
    "plain_text",
]

Colour: TypeAlias = Rgb | int | None


class Style(NamedTuple):
    """How text looks."""

    fg: Colour = None
    """The colour of the text; None is the terminal's own."""
    bg: Colour = None
    """The colour behind the text; None is the terminal's own."""
    bold: bool = False
    """Whether the text is bold."""
    italic: bool = False
    """Whether the text is in italics; some terminals show it otherwise."""
    dim: bool = False
    """Whether the text has less intensity than its colour."""
    underline: bool = False
    """Whether the text is underlined."""
    reverse: bool = False
    """Whether the two colours are exchanged."""
    strike: bool = False
    """Whether the text is struck through."""


class Span(NamedTuple):
    """Text of one style."""

    text: str
    style: Style


Line: TypeAlias = tuple[Span, ...]

PLAIN = Style()
BLANK: Line = ()


def line_width(line: Iterable[Span]) -> int:
    """The cells that a line takes."""
    return sum(cell_width(span.text) for span in line)


def plain_text(lines: Iterable[Line]) -> str:
    """The text of the lines, separated by newlines."""
    return "\n".join("".join(span.text for span in line) for line in lines)


def padded(line: Line, width: int, style: Style) -> Line:
    """The line filled up to `width` cells, so that its background reaches the edge."""
    missing = width - line_width(line)
    return (*line, Span(" " * missing, style)) if missing > 0 else line
