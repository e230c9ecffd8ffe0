"""How marks pair: which runs of `*`, `_` and `~` open, which close, and what they mean."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from mull.markdown.events import BOLD, ITALIC, STRIKE

__all__ = ["ESCAPABLE", "Mark", "Node", "flag_of", "flanks", "pair"]

ESCAPABLE = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


class Node:
    """A piece whose flags and address may still change."""

    __slots__ = ("address", "flags", "text")

    def __init__(self, text: str, flags: int = 0, address: str = "") -> None:
        self.text = text
        self.flags = flags
        self.address = address


class Mark:
    """A mark that may open something: at a place in the text, drawn by the node of a number."""

    __slots__ = ("at", "both", "count", "kind", "length", "number")

    def __init__(self, kind: str, length: int, number: int, at: int, both: bool) -> None:
        self.kind = kind
        self.number = number
        self.at = at
        self.both = both
        self.count = self.length = length


def flag_of(kind: str, count: int) -> int:
    """What so many marks of a kind mean."""
    if kind == "~":
        return STRIKE
    return {1: ITALIC, 2: BOLD}.get(count, BOLD | ITALIC)


def pair(opener: Mark, closer: Mark) -> bool:
    """Whether two runs may pair; CommonMark's rule of three keeps `*a**b*` from pairing badly."""
    if opener.kind != closer.kind:
        return False
    odd = (opener.both or closer.both) and (opener.length + closer.length) % 3 == 0
    return not odd or (opener.length % 3 == 0 and closer.length % 3 == 0)


def flanks(run: str, before: str, after: str) -> tuple[bool, bool]:
    """Whether a run between these characters can open, and whether it can close."""
    space_before, space_after = before.isspace(), after.isspace()
    sign_before, sign_after = _is_sign(before), _is_sign(after)
    # Scripts without spaces write marks beside their letters: **「強調」**と
    left = not space_after and (not sign_after or space_before or sign_before or _is_wide(before))
    right = not space_before and (not sign_before or space_after or sign_after or _is_wide(after))
    if (
        run == "*"
        and before.isalnum()
        and after.isalnum()
        and (before.isdigit() or after.isdigit())
    ):
        return False, False  # a product: 2*3*4
    if run[0] != "_":
        return left, right
    return left and (not right or sign_before), right and (not left or sign_after)


@lru_cache(1024)
def _is_sign(character: str) -> bool:
    return character in ESCAPABLE or unicodedata.category(character)[0] in "PS"


@lru_cache(1024)
def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"
