"""Dots on a logarithmic scale, in groups, as SVG for light and dark pages, wide and narrow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from bench.report import number

__all__ = ["Dot", "Group", "dots"]

_PAGE, _LEFT, _WIDTH = 480, 14, 452
"""Narrow, so that words can still be read on a telephone: they stand above the dots, not beside."""
_ROW, _GAP, _TOP, _LINE = 34, 14, 10, 17
_STYLE = """<style>
.page { fill: #ffffff } text { fill: #1f2328 } .grid { stroke: #d8d8d8 } .row { stroke: #b0b0b0 }
.limit { fill: #7d848c } .mull { fill: #2e7d4f } .peer { fill: #c9a227 }
@media (prefers-color-scheme: dark) {
.page { fill: #16191d } text { fill: #e6e6e6 } .grid { stroke: #3a3f45 } .row { stroke: #5a6068 }
.limit { fill: #9aa0a6 } .mull { fill: #4caf78 } .peer { fill: #d8b23c } }
</style>
"""
_LEGEND = {"limit": "the limit", "mull": "mull", "peer": "others"}


class Dot(NamedTuple):
    """A value with its label; its kind is `limit`, `mull` or `peer`."""

    label: str
    value: float
    kind: str


class Group(NamedTuple):
    """Dots under one heading."""

    title: str
    dots: Sequence[Dot]


def dots(title: str, unit: str, groups: Sequence[Group]) -> str:
    """The picture; a dot lies at its value, in this unit, and what is not above 0 has none."""
    groups = [Group(one.title, [dot for dot in one.dots if dot.value > 0]) for one in groups]
    groups = [group for group in groups if group.dots]
    values = [dot.value for group in groups for dot in group.dots]
    if not values:
        return ""
    low = math.floor(math.log10(min(values) * 0.99))
    high = max(math.ceil(math.log10(max(values))), low + 1)
    drawn, top = [], _TOP
    for group in groups:
        drawn.append(
            f'<text x="{_LEFT}" y="{top + 13}" font-weight="600">{escape(group.title)}</text>\n'
        )
        top += _LINE + 5
        for dot in group.dots:
            reached = (math.log10(dot.value) - low) / (high - low)
            drawn.append(_drawn(dot, top, _LEFT + reached * _WIDTH, unit))
            top += _ROW
        top += _GAP
    height = top + 48
    kinds = {dot.kind for group in groups for dot in group.dots}
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_PAGE} {height}" width="{_PAGE}"'
        f' height="{height}" font-family="system-ui, sans-serif" font-size="14" role="img">\n'
        f"<title>{escape(title)}</title>\n{_STYLE}"
        '<rect class="page" width="100%" height="100%"/>\n'
        f"{_grid(low, high, top)}{''.join(drawn)}{_legend(kinds, height, unit)}</svg>\n"
    )


def _drawn(dot: Dot, top: int, x: float, unit: str) -> str:
    told, y = escape(f"{dot.label}: {number(dot.value)} {unit}"), top + _LINE + 6
    return (
        f'<text x="{_LEFT}" y="{top + 13}">{escape(dot.label)}</text>\n'
        f'<text x="{_LEFT + _WIDTH}" y="{top + 13}" text-anchor="end">{number(dot.value)}</text>\n'
        f'<line class="row" x1="{_LEFT}" y1="{y}" x2="{_LEFT + _WIDTH}" y2="{y}"/>\n'
        f'<circle class="{dot.kind}" cx="{x:.1f}" cy="{y}" r="6"><title>{told}</title></circle>\n'
    )


def _grid(low: int, high: int, bottom: int) -> str:
    """A line at each power of ten."""
    lines = []
    for power in range(low, high + 1):
        x = _LEFT + _WIDTH * (power - low) / (high - low)
        label = f"{10.0**power:,.0f}" if power >= 0 else f"{10.0**power:g}"
        anchor = {low: "start", high: "end"}.get(power, "middle")
        lines.append(
            f'<line class="grid" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}"/>\n'
            f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="{anchor}">{label}</text>\n'
        )
    return "".join(lines)


def _legend(kinds: Iterable[str], height: int, unit: str) -> str:
    parts, left = [], _LEFT + 6
    for kind, label in _LEGEND.items():
        if kind in kinds:
            parts.append(
                f'<circle class="{kind}" cx="{left}" cy="{height - 14}" r="6"/>\n'
                f'<text x="{left + 12}" y="{height - 9}">{label}</text>\n'
            )
            left += 40 + 8 * len(label)
    right, y = _LEFT + _WIDTH, height - 9
    parts.append(f'<text x="{right}" y="{y}" text-anchor="end">{escape(unit)}</text>\n')
    return "".join(parts)
