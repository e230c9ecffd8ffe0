"""The example of docs/sweep.md: table, picture and page of what `make sweep` found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from mull.cli.sweep import table
from mull.policy.sweep.cells import Outcome, sum_up
from mull.policy.sweep.tasks import read_tasks
from mull.transcripts.style import CHARTS, COLOURS
from mull.transcripts.sweep_page import model_colours, sweep_html
from mull.transcripts.sweep_plot import PLOT_STYLE, PLOTS, sweep_plot

__all__ = ["pages", "table_part"]

_EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
_TASKS, _FOUND = _EXAMPLES / "sweep.jsonl", _EXAMPLES / "sweep.json"
_COMMAND = (
    f"$ mull sweep examples/{_TASKS.name} -m local/smollm2 --levels none,minimal,high \\",
    "    --concurrency 1 --html sweep.html",
)
_STYLE = """svg{font-family:system-ui,sans-serif}.paper{fill:var(--paper)}"""


class _Found(msgspec.Struct):
    """What `mull sweep --json` prints, as far as it is read here."""

    outcomes: list[Outcome]


def _outcomes() -> list[Outcome]:
    return msgspec.json.decode(_FOUND.read_bytes(), type=_Found).outcomes


def table_part() -> str:
    """The command and what it printed."""
    return "\n".join(["```console", *_COMMAND, *table(sum_up(_outcomes())), "```"])


def pages() -> Mapping[str, str]:
    """The first plot as a picture, and the whole page."""
    outcomes = _outcomes()
    tasks = tuple(read_tasks(_TASKS.read_bytes()).values())
    title = f"What thinking buys: {_TASKS.name}"
    figure = sweep_plot(PLOTS[0], sum_up(outcomes), model_colours(outcomes))
    return {
        "docs/images/sweep.svg": _standalone(figure),
        "docs/images/sweep.html": sweep_html(title, tasks, outcomes),
    }


def _standalone(figure: str) -> str:
    drawn = figure[figure.index("<svg") : figure.index("</svg>")]
    opening, _, shapes = drawn.partition(">")
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="660" height="465" viewBox="0 0 440 310">'
        f"<style>{COLOURS}{CHARTS}{PLOT_STYLE}{_STYLE}</style>"
        '<rect class="paper" width="100%" height="100%"/>'
        f'{opening} x="10" y="10" width="420" height="290">{shapes}</svg></svg>\n'
    )
