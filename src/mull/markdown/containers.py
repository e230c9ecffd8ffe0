"""Quotes and list items: how a line belongs to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mull.neutral.patterns import pattern

__all__ = ["ITEM", "QUOTE", "Container", "indent_of", "matched"]

QUOTE = pattern(r" {0,3}> ?")
ITEM = pattern(r"( {0,3})([-+*]|(\d{1,9})[.)])(?:( {1,4})(?! )| (?= )|$)(?:\[([ xX])\] )?")


class Container(NamedTuple):
    """An open quote, of kind `>`, or list item, of the kind that its mark ends with. The mark
    stands at `column` of the source, and what is in it at `offset`."""

    kind: str = ">"
    column: int = 0
    offset: int = 0
    number: int = 0


def indent_of(text: str) -> int:
    """The spaces at the beginning."""
    return len(text) - len(text.lstrip(" "))


def matched(containers: Sequence[Container], text: str) -> tuple[int, str]:
    """How many of the open containers a line belongs to, and the line without their marks."""
    rest = text
    for depth, container in enumerate(containers):
        if container.kind == ">":
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
