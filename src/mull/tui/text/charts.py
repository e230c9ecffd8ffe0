"""Small charts of characters: bars, stacked bars, columns.

Without distinguishable colours or symbols (`plain`) they use letters and digits. An unknown value
has its own symbol and is never drawn as zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from mull.tui.text.lines import Line, Span, Style

__all__ = ["Part", "bar", "columns", "parted", "shares"]

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"
UNKNOWN = "?"


class Part(NamedTuple):
    """One part of a bar: its amount, its style, and the letter used in plain mode."""

    amount: float
    style: Style
    letter: str


def bar(share: float, width: int, *, plain: bool = False) -> str:
    """A bar of `width` cells, filled to a share of 0 to 1; a small share is never invisible."""
    share = min(max(share, 0.0), 1.0)
    if plain:
        full = math.ceil(share * width)
        return "#" * full + "." * (width - full)
    eighths = max(round(share * width * 8), 1) if share > 0 else 0
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width)


def shares(amounts: Sequence[float], cells: int) -> list[int]:
    """Cells for each amount: `cells` in total, at least one for anything above zero."""
    total = math.fsum(amounts)
    if total <= 0 or cells < sum(amount > 0 for amount in amounts):
        return [0] * len(amounts)
    exact = [amount / total * cells for amount in amounts]
    given = [
        max(math.floor(part), int(amount > 0)) for part, amount in zip(exact, amounts, strict=True)
    ]
    while sum(given) > cells:  # what the small ones were given is taken from the largest
        given[max(range(len(given)), key=given.__getitem__)] -= 1
    by_rest = sorted(range(len(given)), key=lambda at: given[at] - exact[at])
    for at in by_rest[: cells - sum(given)]:
        given[at] += 1
    return given


def parted(parts: Sequence[Part], width: int, *, plain: bool = False) -> Line:
    """Parts side by side in one bar of `width` cells."""
    cells = shares([part.amount for part in parts], width)
    return tuple(
        Span((part.letter if plain or part.letter in " ░" else "█") * count, part.style)
        for part, count in zip(parts, cells, strict=True)
        if count
    )


def columns(values: Sequence[float | None], width: int, *, plain: bool = False) -> str:
    """A column for each value, relative to the highest.

    Digits stand for heights if there are no symbols. More values than cells share columns, which
    then show the highest of them.
    """
    grouped = _grouped(values, width)
    most = max((value for value in grouped if value is not None), default=0.0)
    return "".join(_column(value, most, plain=plain) for value in grouped)


def _grouped(values: Sequence[float | None], width: int) -> list[float | None]:
    if len(values) <= width:
        return list(values)
    edges = [at * len(values) // width for at in range(width + 1)]
    groups = (values[edges[at] : edges[at + 1]] for at in range(width))
    return [max((v for v in group if v is not None), default=None) for group in groups]


def _column(value: float | None, most: float, *, plain: bool) -> str:
    if value is None:
        return UNKNOWN
    steps = 9 if plain else len(_LEVELS) - 1
    height = math.ceil(value / most * steps) if most > 0 else 0
    return str(height) if plain else _LEVELS[height]
