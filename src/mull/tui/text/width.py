"""How many terminal cells text takes, and where it may be cut.

Text is measured in clusters: a letter with its marks, a flag, or a family of joined emoji is drawn
in one place and never cut. If terminals disagree (spacing marks of Indic scripts) the larger width
is used: a line that ends early is better than one that overflows. Control characters do not occur
here; `mull.tui.text.safe` has made them visible.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache

__all__ = ["cell_width", "clusters", "fitted", "has_sure_width", "is_wide"]

_JOINER, _EMOJI_STYLE = "\u200d", "\ufe0f"
_EXTEND, _NARROW, _WIDE, _SPACING, _REGION, _SKIN = range(6)
_WIDTHS = (0, 1, 2, 1, 1, 2)
# Symbols that Unicode 16 made wide, for Pythons with older tables.
_WIDE_BY_NOW = ((0x2630, 0x2637), (0x268A, 0x268F), (0x4DC0, 0x4DFF), (0x1D300, 0x1D376))


@cache
def _kind(character: str) -> int:
    """What a character does to the cluster before it, or its own width."""
    code = ord(character)
    category = unicodedata.category(character)
    if category in ("Mn", "Me", "Cf") or 0x1160 <= code <= 0x11FF or 0xD7B0 <= code <= 0xD7FF:
        return _EXTEND  # marks, joiners, the later letters of a Hangul syllable
    if category == "Mc":
        return _SPACING
    if 0x1F1E6 <= code <= 0x1F1FF:
        return _REGION
    if 0x1F3FB <= code <= 0x1F3FF:
        return _SKIN
    newer = category == "Cn" and 0x1F300 <= code <= 0x1FAFF
    newer = newer or any(first <= code <= last for first, last in _WIDE_BY_NOW)
    return _WIDE if newer or unicodedata.east_asian_width(character) in "WF" else _NARROW


@cache
def _is_sure(character: str) -> bool:
    kind = _kind(character)
    return kind == _NARROW or (kind == _WIDE and unicodedata.category(character) != "So")


def has_sure_width(text: str) -> bool:
    """Whether all terminals give this text the same width: they disagree about emoji and marks."""
    return text.isascii() or all(map(_is_sure, text))


def clusters(text: str) -> Iterator[tuple[str, int]]:
    """The clusters, each with its width."""
    start, width, last = 0, 0, _EXTEND
    for at, character in enumerate(text):
        kind = _kind(character)
        if at > start:
            joined = kind in (_EXTEND, _SPACING)
            joined = joined or (kind == _SKIN and last == _WIDE)
            joined = joined or (text[at - 1] == _JOINER and kind == _WIDE)
            if not joined and not (kind == last == _REGION and at == start + 1):
                yield text[start:at], width
                start, width = at, 0
        if at == start:
            width, last = _WIDTHS[kind], kind
        elif kind == _SPACING:
            width += 1
        elif kind == _REGION or character == _EMOJI_STYLE:
            width = 2
    if text:
        yield text[start:], width


def cell_width(text: str) -> int:
    """The cells that a text takes."""
    if text.isascii():
        return len(text)
    return sum(width for _, width in clusters(text))


def is_wide(character: str) -> bool:
    """Whether a character takes two cells, so that a line may break beside it."""
    return character > "\u10ff" and _kind(character) in (_WIDE, _REGION)


def fitted(text: str, width: int, end: str = "…") -> str:
    """The text, cut to `width` cells with `end` if something is missing."""
    if (len(text) <= width and text.isascii()) or cell_width(text) <= width:
        return text
    room, kept = width - cell_width(end), 0
    if room < 0:
        return ""
    for cluster, cells in clusters(text):
        if cells > room:
            break
        room -= cells
        kept += len(cluster)
    return text[:kept].rstrip() + end
