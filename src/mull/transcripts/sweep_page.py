"""A sweep as one page: its plots, a table of the models and levels, and every task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from mull.policy.cost import format_cost
from mull.policy.sweep.cells import Cell, Outcome, sum_up
from mull.policy.sweep.tasks import Task
from mull.transcripts.style import STYLE
from mull.transcripts.sweep_plot import PLOT_STYLE, PLOTS, short_name, sweep_plot

__all__ = ["model_colours", "sweep_html"]

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
"""


def sweep_html(title: str, tasks: Sequence[Task], outcomes: Sequence[Outcome]) -> str:
    """The page."""
    cells = sum_up(outcomes)
    colours = model_colours(outcomes)
    figures = (sweep_plot(plot, cells, colours) for plot in PLOTS)
    plots = "".join(sorted(figures, key=lambda one: "<svg" not in one))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}{_PAGE_STYLE}{PLOT_STYLE}</style></head><body>"
        f"<header><h1>{escape(title)}</h1>"
        f"<p class='facts'>{_facts(tasks, outcomes, plots)}</p></header>"
        f"<main>{_legend(colours)}<div class='plots'>{plots}</div>"
        f"<div class='scroll'>{_table(cells)}</div>"
        f"<h2>Tasks</h2><div class='scroll'>{_tasks(tasks, cells, outcomes)}</div></main>"
        "</body></html>\n"
    )


def _facts(tasks: Sequence[Task], outcomes: Sequence[Outcome], plots: str) -> str:
    """What was asked, and how to read what the plots show."""
    samples = 1 + max((one.sample for one in outcomes), default=0)
    each = f", each asked {samples} times" if samples > 1 else ""
    told = [f"{len(tasks)} {'task' if len(tasks) == 1 else 'tasks'}{each}."]
    if "<circle" in plots:
        told.append("Vertical bars show the 95 % confidence interval.")
    if "<polyline" in plots:
        told.append(
            "The dashed line is the Pareto frontier: for every point off it, a point on it is at "
            "least as accurate and takes no more."
        )
    return " ".join(told)


def model_colours(outcomes: Iterable[Outcome]) -> dict[str, str]:
    """A colour, by its name in the style sheet, for each model."""
    models = dict.fromkeys(one.model for one in outcomes)
    return {model: _COLOURS[at % len(_COLOURS)] for at, model in enumerate(models)}


def _legend(colours: Mapping[str, str]) -> str:
    rows = (
        f'<li><i style="background:var(--{colour})"></i>{escape(model)}</li>'
        for model, colour in colours.items()
    )
    return f'<ul class="legend">{"".join(rows)}</ul>'


def _share(cell: Cell) -> str:
    if cell.accuracy is None or cell.low is None or cell.high is None:
        return "not graded"
    return f"{cell.right} of {cell.graded} ({cell.low:.0%} to {cell.high:.0%})"


def _table(cells: Sequence[Cell]) -> str:
    heads = (
        "Model and level", "Right", "Thinking tokens", "Tokens", "Cost per answer",
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
    head = "".join(f"<th>{escape(short_name(one.name))}</th>" for one in cells)
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
        said = one.checker or one.answer[:300]
        return f"<span class='none' title='{escape(said)}'>?</span>"
    name, sign = ("right", "✓") if one.right else ("wrong", "✗")
    return f"<span class='{name}' title='{escape(one.answer[:300])}'>{sign}</span>"
