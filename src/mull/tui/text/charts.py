"""Small charts of characters: bars, a bar of parts, a row of columns.

Where neither colours nor signs can be told apart (`plain`) they are letters and digits. What is
unknown has a sign of its own and is never drawn as nothing.
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
    """One part of a bar: how much, in which style, and the letter that it is drawn with plainly."""

    amount: float
    style: Style
    letter: str


def bar(share: float, width: int, *, plain: bool = False) -> str:
    """A bar of `width` cells, filled to a share of 0 to 1; a little is never nothing."""
    share = min(max(share, 0.0), 1.0)
    if plain:
        full = math.ceil(share * width)
        return "#" * full + "." * (width - full)
    eighths = max(round(share * width * 8), 1) if share > 0 else 0
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width)


def shares(amounts: Sequence[float], cells: int) -> list[int]:
    """Cells for each amount: all together `cells`, at least one for what is more than nothing."""
    total = math.fsum(amounts)
    if total <= 0 or cells < sum(amount > 0 for amount in amounts):
        return [0] * len(amounts)
    exact = [amount / total * cells for amount in amounts]
    given = [
        max(math.floor(part), int(amount > 0)) for part, amount in zip(exact, amounts, strict=True)
    ]
    while sum(given) > cells:  # what little ones were given is taken from the largest
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
    """A column for each value, as high as it is beside the highest.

    Digits stand for heights where signs cannot. More values than cells share columns, and then the
    highest of those that share one is drawn.
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
