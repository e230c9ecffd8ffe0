"""Quotes and list items: how a line belongs to them, and the marks that stand before their text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from mull.tui.screen.theme import Theme
from mull.tui.text.lines import Line, Span, line_width
from mull.tui.text.wrap import chopped

__all__ = ["ITEM", "QUOTE", "Container", "Item", "Quote", "indent_of", "marks", "matched", "room"]

QUOTE = re.compile(r" {0,3}> ?")
ITEM = re.compile(r"( {0,3})([-+*]|(\d{1,9})[.)])(?:( {1,4})(?! )| (?= )|$)(?:\[([ xX])\] )?")
_BAR = "▎ "
_NARROWEST = 8


class Quote:
    """A quote; `drawn` once a line of it is out."""

    __slots__ = ("drawn",)
    mark = _BAR

    def __init__(self) -> None:
        self.drawn = False


class Item:
    """A list item. Its mark stands at `column` of the source, and what is in it at `offset`."""

    __slots__ = ("column", "drawn", "kind", "mark", "number", "offset")

    def __init__(self, found: re.Match[str], number: int) -> None:
        self.drawn = False
        self.column = len(found[1])
        self.offset = len(found[1]) + len(found[2]) + len(found[4] or " ")
        self.kind = found[2][-1]
        self.number = number
        self.mark = "• " if found[3] is None else f"{number}{self.kind} "
        if found[5]:
            self.mark = "☐ " if found[5] == " " else "☑ "


Container: TypeAlias = Quote | Item


def indent_of(text: str) -> int:
    """The spaces at the beginning."""
    return len(text) - len(text.lstrip(" "))


def matched(containers: Sequence[Container], text: str) -> tuple[int, str]:
    """How many of the open containers a line belongs to, and the line without their marks."""
    rest = text
    for depth, container in enumerate(containers):
        if isinstance(container, Quote):
            found = QUOTE.match(rest)
            if not found:
                return depth, rest
            rest = rest[found.end() :]
            continue
        indent = indent_of(rest)
        if indent >= container.offset:
            rest = rest[container.offset :]
        elif indent > container.column + 1 and ITEM.match(rest):
            rest = rest[indent:]
        elif rest.strip():
            return depth, rest
    return len(containers), rest


def room(containers: Sequence[Container], width: int) -> int:
    """The cells for text beside the marks."""
    taken = sum(len(container.mark) for container in containers)
    return max(width - taken, min(_NARROWEST, width))


def marks(containers: Sequence[Container], theme: Theme, width: int) -> Line:
    """What stands before a line; it gives way where there is no room for text beside it."""
    spans = []
    for container in containers:
        if isinstance(container, Quote):
            spans.append(Span(_BAR, theme.faint))
        else:
            mark = " " * len(container.mark) if container.drawn else container.mark
            spans.append(Span(mark, theme.note))
    least = room(containers, width)
    if line_width(spans) <= width - least:
        return tuple(spans)
    return next(chopped(spans, width - least)) if width > least else ()
