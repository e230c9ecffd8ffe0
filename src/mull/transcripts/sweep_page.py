"""A sweep as one page: accuracy against tokens, cost and time, a table, and every task.

Each plot has a point for each model and level, with the interval in which its true accuracy lies,
and a line through those that no other one beats.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

from mull.policy.cost import format_cost
from mull.policy.sweep.cells import Cell, Outcome, pareto, sum_up
from mull.policy.sweep.tasks import Task
from mull.transcripts.style import STYLE

__all__ = ["sweep_html"]

_WIDTH, _HEIGHT = 420, 290
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 24, 16, 44
_WIDE = 10
"""The ratio of the most to the least from which an axis is logarithmic."""
_COLOURS = ("reasoning", "answer", "you-edge", "number", "bad", "keyword", "string", "mixed")
_PAGE_STYLE = """
main{max-width:72rem}header{max-width:72rem}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(21rem,1fr));gap:2rem;margin:2rem 0}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem;width:100%}
th,td{text-align:right;padding:.3rem .7rem;border-bottom:1px solid var(--line);white-space:nowrap;
  font-variant-numeric:tabular-nums}
th:first-child,td:first-child{text-align:left;white-space:normal}
.tasks td:first-child{min-width:16rem}.tasks th{white-space:normal}
.tasks td:not(:first-child),.tasks th:not(:first-child){text-align:center}
.right{color:var(--answer)}.wrong{color:var(--bad)}.none{color:var(--quiet)}
svg .end{text-anchor:end}svg .front{fill:none;stroke:var(--quiet);stroke-width:1.5;
  stroke-dasharray:5 4}svg .bar{position:static;stroke-width:1.5;opacity:.55}
svg text.name{fill:var(--ink);paint-order:stroke;stroke:var(--paper);stroke-width:3px}
"""


class _Plot(NamedTuple):
    field: str
    title: str
    unit: str


_PLOTS = (
    _Plot("thinking_tokens", "Accuracy by thinking", "thinking tokens an answer"),
    _Plot("cost", "Accuracy by cost", "dollars an answer"),
    _Plot("seconds", "Accuracy by time", "seconds to the end"),
)


def sweep_html(title: str, tasks: Sequence[Task], outcomes: Sequence[Outcome]) -> str:
    """The page."""
    cells = sum_up(outcomes)
    colours = _colours(outcomes)
    plots = "".join(_figure(plot, cells, colours) for plot in _PLOTS)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}{_PAGE_STYLE}</style></head><body>"
        f"<header><h1>{escape(title)}</h1><p class='facts'>{_facts(tasks, outcomes)}</p></header>"
        f"<main>{_legend(colours)}<div class='plots'>{plots}</div>"
        f"<div class='scroll'>{_table(cells)}</div>"
        f"<h2>Tasks</h2><div class='scroll'>{_tasks(tasks, cells, outcomes)}</div></main>"
        "</body></html>\n"
    )


def _facts(tasks: Sequence[Task], outcomes: Sequence[Outcome]) -> str:
    samples = 1 + max((one.sample for one in outcomes), default=0)
    each = f", each asked {samples} times" if samples > 1 else ""
    return (
        f"{len(tasks)} tasks{each}. Bars show the 95 % confidence interval; the dashed line joins "
        "what nothing beats: whatever takes less is right less often."
    )


def _colours(outcomes: Iterable[Outcome]) -> dict[str, str]:
    models = dict.fromkeys(one.model for one in outcomes)
    return {model: _COLOURS[at % len(_COLOURS)] for at, model in enumerate(models)}


def _legend(colours: Mapping[str, str]) -> str:
    rows = (
        f'<li><i style="background:var(--{colour})"></i>{escape(model)}</li>'
        for model, colour in colours.items()
    )
    return f'<ul class="legend">{"".join(rows)}</ul>'


def _figure(plot: _Plot, cells: Sequence[Cell], colours: Mapping[str, str]) -> str:
    shown = [one for one in cells if one.accuracy is not None and _spent(one, plot) is not None]
    if not shown:
        inner = f'<p class="unsaid">Not known: {escape(plot.unit)}, or what is right.</p>'
        return f"<figure><figcaption>{plot.title}</figcaption>{inner}</figure>"
    axis = _Axis([_spent(one, plot) or 0 for one in shown])
    front = pareto(shown, plot.field)
    line = " ".join(f"{axis.place(_spent(one, plot) or 0):.1f},{_y(one.accuracy)}" for one in front)
    shapes = [
        *(_level(share) for share in (0, 0.25, 0.5, 0.75, 1)),
        *(_tick(axis, value, plot) for value in axis.ticks()),
        f'<polyline class="front" points="{line}"/>',
        *(_point(one, axis, plot, colours) for one in shown),
        f'<text class="middle" x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{_HEIGHT - 6}">'
        f"{escape(plot.unit)}</text>",
    ]
    svg = (
        f'<svg role="img" aria-label="{escape(plot.title)}" viewBox="0 0 {_WIDTH} {_HEIGHT}">'
        f"{''.join(shapes)}</svg>"
    )
    return f"<figure><figcaption>{plot.title}</figcaption>{svg}</figure>"


def _spent(cell: Cell, plot: _Plot) -> float | None:
    spent: float | None = getattr(cell, plot.field)
    return spent


class _Axis:
    """Where a value stands from left to right."""

    def __init__(self, values: Sequence[float]) -> None:
        least, most = min((value for value in values if value > 0), default=0.0), max(values)
        self._has_zero = min(values) <= 0
        self._is_log = least > 0 and most / least >= _WIDE
        room = 0.6 if self._has_zero else 0.1
        self._start = math.log10(least) - room if self._is_log else 0.0
        self._end = math.log10(most) + 0.1 if self._is_log else (most * 1.08 or 1.0)

    def place(self, value: float) -> float:
        at = value
        if self._is_log:  # which has no zero: it stands at the edge
            at = math.log10(value) if value > 0 else self._start
        share = (at - self._start) / (self._end - self._start)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def ticks(self) -> Iterator[float]:
        if self._is_log:
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


def _tick(axis: _Axis, value: float, plot: _Plot) -> str:
    shown = (
        format_cost(value)
        if plot.field == "cost"
        else f"{round(value, 3):,g}"
        if value < 1_000
        else f"{value:,.0f}"
    )
    return f'<text class="middle" x="{axis.place(value):.1f}" y="{_y(0) + 16}">{shown}</text>'


def _point(cell: Cell, axis: _Axis, plot: _Plot, colours: Mapping[str, str]) -> str:
    model, level = _parts(cell.name, colours)
    x, y, colour = axis.place(_spent(cell, plot) or 0), _y(cell.accuracy), colours[model]
    is_right = x > _WIDTH * 0.8
    anchor, at = ('class="name end"', x - 8) if is_right else ('class="name"', x + 8)
    return (
        f"<g><title>{escape(cell.name)}: {_share(cell)}</title>"
        f'<line class="bar" style="stroke:var(--{colour})" x1="{x:.1f}" x2="{x:.1f}" '
        f'y1="{_y(cell.low)}" y2="{_y(cell.high)}"/>'
        f'<circle style="fill:var(--{colour})" cx="{x:.1f}" cy="{y}" r="5"/>'
        f'<text {anchor} x="{at:.1f}" y="{y - 6}">{escape(level or _short(model))}</text></g>'
    )


def _parts(name: str, models: Iterable[str]) -> tuple[str, str]:
    """The model and the level of a cell's name."""
    if name in models:
        return name, ""
    model, _, level = name.rpartition("/")
    return model, level


def _short(name: str) -> str:
    """A name without its provider."""
    return name.partition("/")[2] or name


def _share(cell: Cell) -> str:
    if cell.accuracy is None or cell.low is None or cell.high is None:
        return "not graded"
    return f"{cell.right} of {cell.graded} ({cell.low:.0%} to {cell.high:.0%})"


def _table(cells: Sequence[Cell]) -> str:
    heads = (
        "Model and level", "Right", "Thinking tokens", "Tokens", "Cost of an answer",
        "First token", "End", "Errors",
    )  # fmt: skip
    rows = "".join(
        f"<tr><td>{escape(one.name)}</td><td>{_share(one)}</td>"
        f"<td>{'≈ ' if one.estimated else ''}{_number(one.thinking_tokens)}</td>"
        f"<td>{_number(one.tokens)}</td><td>{format_cost(one.cost)}</td>"
        f"<td>{_seconds(one.first)}</td><td>{_seconds(one.seconds)}</td>"
        f"<td>{one.errors}</td></tr>"
        for one in cells
    )
    head = "".join(f"<th>{name}</th>" for name in heads)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.0f}"


def _seconds(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f} s"


def _tasks(tasks: Sequence[Task], cells: Sequence[Cell], outcomes: Iterable[Outcome]) -> str:
    found: dict[tuple[str, str], list[Outcome]] = {}
    for one in outcomes:
        found.setdefault((one.task, one.cell), []).append(one)
    head = "".join(f"<th>{escape(_short(one.name))}</th>" for one in cells)
    rows = "".join(
        f"<tr><td>{escape(task.prompt[:200])}</td>"
        + "".join(f"<td>{_marks(found.get((task.id, one.name), ()))}</td>" for one in cells)
        + "</tr>"
        for task in tasks
    )
    return (
        f"<table class='tasks'><thead><tr><th>Task</th>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def _marks(outcomes: Iterable[Outcome]) -> str:
    return "".join(map(_mark, outcomes)) or "<span class='none'>·</span>"


def _mark(one: Outcome) -> str:
    if one.error is not None:
        return f"<span class='wrong' title='{escape(one.error)}'>!</span>"
    if one.right is None:
        return f"<span class='none' title='{escape(one.answer[:300])}'>?</span>"
    name, sign = ("right", "✓") if one.right else ("wrong", "✗")
    return f"<span class='{name}' title='{escape(one.answer[:300])}'>{sign}</span>"
