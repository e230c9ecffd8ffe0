"""A plot of a sweep: accuracy against what it takes, as SVG.

There is a point for each model and level, with its confidence interval, and a line through those
that no other one beats. Points at the same place are rings around each other with one label.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

from mull.policy.cost import format_cost
from mull.policy.sweep.cells import Cell, pareto

__all__ = ["PLOTS", "PLOT_STYLE", "Plot", "short_name", "sweep_plot"]

_WIDTH, _HEIGHT = 420, 290
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 24, 16, 44
_WIDE = 10
"""The ratio of the most to the least from which an axis is logarithmic."""
_RADIUS, _RING = 5, 4
_LETTER, _LINE, _GAP = 7.2, 15, 2
"""About how wide a letter of a label is, and how high; and how far it is from its point."""
PLOT_STYLE = """
svg .end{text-anchor:end}svg .front{fill:none;stroke:var(--quiet);stroke-width:1.5;
  stroke-dasharray:5 4}svg .interval{stroke-width:1.5;opacity:.55}
svg .ring{fill:none;stroke-width:2}
svg text.name{fill:var(--ink);paint-order:stroke;stroke:var(--paper);stroke-width:3px}
svg text{font-size:13px}figure .unsaid{margin-top:.4rem}
"""


class Plot(NamedTuple):
    """What accuracy is drawn against: a field of a cell, and the words for it. `none` is said
    instead of a plot if it is 0 everywhere.
    """

    field: str
    title: str
    unit: str
    none: str


PLOTS = (
    Plot(
        "thinking_tokens",
        "Accuracy by thinking",
        "thinking tokens per answer",
        "No answer took any.",
    ),
    Plot("cost", "Accuracy by cost", "dollars per answer", "All answers were free."),
    Plot(
        "seconds",
        "Accuracy by time",
        "seconds to the end of the answer",
        "No answer took any time.",
    ),
)


class _Point(NamedTuple):
    cell: Cell
    x: float
    y: float
    colour: str


def sweep_plot(plot: Plot, cells: Sequence[Cell], colours: Mapping[str, str]) -> str:
    """A figure with the cells, or why there is none; says which cells it leaves out. The colours
    are those of the models.
    """
    graded = [one for one in cells if one.accuracy is not None]
    shown = [one for one in graded if _spent(one, plot) is not None]
    unknown = [one.name for one in graded if _spent(one, plot) is None]
    if not graded:
        inner = _said("No answer was graded.")
    elif not shown:
        inner = _said(f"Unknown: {plot.unit}.")
    else:
        drawn = any(_spent(one, plot) for one in shown)
        inner = _svg(plot, shown, colours) if drawn else _said(plot.none)
        inner += _said(f"Not shown because it is unknown: {', '.join(unknown)}.") if unknown else ""
    return f"<figure><figcaption>{plot.title}</figcaption>{inner}</figure>"


def _said(text: str) -> str:
    return f'<p class="unsaid">{escape(text)}</p>'


def _spent(cell: Cell, plot: Plot) -> float | None:
    spent: float | None = getattr(cell, plot.field)
    return spent


def _svg(plot: Plot, cells: Sequence[Cell], colours: Mapping[str, str]) -> str:
    axis = _Axis([_spent(one, plot) or 0 for one in cells])
    points = [
        _Point(
            one,
            axis.place(_spent(one, plot) or 0),
            _y(one.accuracy),
            colours[_parts(one.name, colours)[0]],
        )
        for one in cells
    ]
    groups, best = _together(points), pareto(cells, plot.field)
    shapes = [
        *(_level(share) for share in (0, 0.25, 0.5, 0.75, 1)),
        *(_tick(axis, value, plot) for value in axis.ticks()),
        _front([one for one in points if one.cell in best]),
        *(_interval(one) for one in points),
        *(_mark(one, at) for group in groups for at, one in enumerate(group)),
        *_labels(groups, colours),
        f'<text class="middle" x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{_HEIGHT - 6}">'
        f"{escape(plot.unit)}{', log scale' if axis.is_log else ''}</text>",
    ]
    return (
        f'<svg role="img" aria-label="{escape(plot.title)}" viewBox="0 0 {_WIDTH} {_HEIGHT}">'
        f"{''.join(shapes)}</svg>"
    )


class _Axis:
    """Where a value stands from left to right."""

    def __init__(self, values: Sequence[float]) -> None:
        least, most = min((value for value in values if value > 0), default=0.0), max(values)
        self._has_zero = min(values) <= 0
        self.is_log = least > 0 and most / least >= _WIDE
        room = 0.6 if self._has_zero else 0.1
        self._start = math.log10(least) - room if self.is_log else 0.0
        self._end = math.log10(most) + 0.1 if self.is_log else (most * 1.08 or 1.0)

    def place(self, value: float) -> float:
        at = value
        if self.is_log:  # which has no zero: it stands at the edge
            at = math.log10(value) if value > 0 else self._start
        share = (at - self._start) / (self._end - self._start)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def ticks(self) -> Iterator[float]:
        if self.is_log:
            if self._has_zero:
                yield 0.0
            least = math.ceil(self._start + (0.4 if self._has_zero else 0))
            yield from (10.0**n for n in range(least, math.floor(self._end) + 1))
            return
        step = 10.0 ** math.floor(math.log10(self._end))
        step = next(one for one in (step / 5, step / 2, step, step * 2) if self._end / one <= 6)
        yield from (step * n for n in range(int(self._end / step) + 1))


def _y(accuracy: float | None) -> float:
    return round(_TOP + (1 - (accuracy or 0)) * (_HEIGHT - _TOP - _BOTTOM), 1)


def _level(share: float) -> str:
    y = _y(share)
    return (
        f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>'
        f'<text class="end" x="{_LEFT - 8}" y="{y + 4}">{share:.0%}</text>'
    )


def _tick(axis: _Axis, value: float, plot: Plot) -> str:
    shown = (
        format_cost(value)
        if plot.field == "cost"
        else f"{round(value, 3):,g}"
        if value < 1_000
        else f"{value:,.0f}"
    )
    return f'<text class="middle" x="{axis.place(value):.1f}" y="{_y(0) + 16}">{shown}</text>'


def _front(points: Sequence[_Point]) -> str:
    if len(points) < 2:  # no line
        return ""
    line = " ".join(f"{one.x:.1f},{one.y}" for one in sorted(points, key=lambda one: one.x))
    return f'<polyline class="front" points="{line}"/>'


def _interval(point: _Point) -> str:
    return (
        f'<line class="interval" style="stroke:var(--{point.colour})" x1="{point.x:.1f}" '
        f'x2="{point.x:.1f}" y1="{_y(point.cell.low)}" y2="{_y(point.cell.high)}"/>'
    )


def _together(points: Iterable[_Point]) -> list[list[_Point]]:
    """The points in groups that would hide each other."""
    groups: list[list[_Point]] = []
    for point in points:
        for group in groups:
            if math.hypot(point.x - group[0].x, point.y - group[0].y) <= _RADIUS:
                group.append(point)
                break
        else:
            groups.append([point])
    return groups


def _mark(point: _Point, at: int) -> str:
    """A disc, or the ring number `at` around one."""
    cell, size = point.cell, _RADIUS + at * _RING
    style = f'class="ring" style="stroke:var(--{point.colour})"'
    if at == 0:
        style = f'style="fill:var(--{point.colour})"'
    said = f"{escape(cell.name)}: {cell.right} of {cell.graded} right"
    return (
        f'<circle {style} cx="{point.x:.1f}" cy="{point.y}" r="{size}"><title>{said}</title>'
        "</circle>"
    )


class _Box(NamedTuple):
    left: float
    right: float
    top: float
    bottom: float

    def meets(self, other: _Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def _labels(groups: Sequence[Sequence[_Point]], models: Iterable[str]) -> Iterator[str]:
    """The names of the groups, each where it meets no point and no other name, if there is such a
    place.
    """
    known = tuple(models)
    taken = [_around(group) for group in groups]
    for group in groups:
        text = _shortened(_names(group, known), int(_room(group) / _LETTER))
        places = list(_places(group, len(text) * _LETTER))
        inside = [
            box for box in places if box.left >= _LEFT and box.right <= _WIDTH and box.top >= 0
        ]
        free = [box for box in inside if not any(box.meets(other) for other in taken)]
        box = (free or inside or places)[0]
        taken.append(box)
        ends = box.right < group[0].x
        anchor, x = ("name end", box.right) if ends else ("name", box.left)
        yield f'<text class="{anchor}" x="{x:.1f}" y="{box.bottom - 3:.1f}">{escape(text)}</text>'


def _around(group: Sequence[_Point]) -> _Box:
    x, y, reach = group[0].x, group[0].y, _RADIUS + (len(group) - 1) * _RING
    return _Box(x - reach, x + reach, y - reach, y + reach)


def _places(group: Sequence[_Point], width: float) -> Iterator[_Box]:
    """Where a name of this width can stand beside a group, the best first."""
    around, x = _around(group), group[0].x
    for lift in (0, _LINE, 2 * _LINE):
        for bottom in (around.top + 4 - lift, around.bottom - 4 + _LINE + lift):
            right = _Box(around.right + _GAP, around.right + _GAP + width, bottom - _LINE, bottom)
            left = _Box(around.left - _GAP - width, around.left - _GAP, bottom - _LINE, bottom)
            yield from (left, right) if x + width + 8 > _WIDTH else (right, left)


def _room(group: Sequence[_Point]) -> float:
    """How wide a name beside a group can be."""
    around = _around(group)
    return max(around.left - _GAP - _LEFT, _WIDTH - around.right - _GAP)


def _names(group: Sequence[_Point], models: Sequence[str]) -> list[str]:
    """The levels of a group, with their models if these differ: their colours tell them apart only
    where each has a point of its own.
    """
    parts = [_parts(one.cell.name, models) for one in group]
    if len({model for model, _ in parts}) == 1:
        return [level or short_name(model) for model, level in parts]
    return [f"{short_name(model)} {level}".strip() for model, level in parts]


def _shortened(names: Sequence[str], most: int) -> str:
    """The names, as many as fit into so many letters; the points tell the others."""
    for count in range(len(names), 0, -1):
        more = f" and {len(names) - count} more" if count < len(names) else ""
        text = ", ".join(names[:count]) + more
        if len(text) <= most:
            return text
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{names[0][: max(most - len(more) - 1, 1)]}…{more}"


def _parts(name: str, models: Iterable[str]) -> tuple[str, str]:
    """The model and the level of a cell's name."""
    if name in models:
        return name, ""
    model, _, level = name.rpartition("/")
    return model, level


def short_name(name: str) -> str:
    """A name without its provider."""
    return name.partition("/")[2] or name
