"""docs/performance.md, written from bench/results: targets, plots, every section, the budgets."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.page_plots import PLOTS, drawn
from bench.record import Result, load_results
from bench.report import Figure
from bench.sections import GOALS, SECTIONS, Goal

__all__ = ["pages", "render"]

HERE = Path(__file__).parent
_MET = {True: "✓", False: "✗", None: ""}
_INTRO = """\
# Performance

What mull costs, beside other libraries and programs, and beside the least that the work can cost
on this machine. `make bench` measures everything in about twenty minutes and writes this page;
`.venv/bin/python -m bench road` measures one section anew. `QUICK=1 make bench` takes three minutes
and `PEERS=openai,litellm make bench` measures only some of the others: what they find is written to
`bench/partial` and changes nothing here.

All systems are measured in turns during one run, and each figure is the median of its rounds. A
ratio is taken inside each round and is the median of these, so it need not be the quotient of the
two medians beside it. Compare the ratios: times are those of one machine. CPU time changes little
with what else the machine does, time on the clock changes a lot, so the load average stands beside
each section."""
_BUDGETS = """\
## Budgets

Times differ between machines, so no test can hold them. The tests instead count the bytecode
instructions of the paths that run for each chunk, turn or delta, and fail if a path takes 10 %
more than is recorded here. `python -m bench.budgets` compares, `--write` records anew."""


def pages(results: Mapping[str, Result] | None = None) -> dict[str, str]:
    """The page and its pictures, by their paths."""
    found = load_results() if results is None else results
    known = {name: found[name] for name in SECTIONS if name in found}
    pictures = {f"docs/images/{name}.svg": drawn(name, known) for name in PLOTS}
    shown = {path: text for path, text in pictures.items() if text}
    return {"docs/performance.md": render(known, HERE / "notes", HERE / "budgets.json"), **shown}


def render(results: Mapping[str, Result], notes: Path, budgets: Path) -> str:
    """The page."""
    parts = [_INTRO, *_provenance(results), *_targets(results), *_plots(results)]
    for name, result in results.items():
        parts += _section(name, result, notes, results)
    parts += [_BUDGETS, "\n".join(_budget_rows(json.loads(budgets.read_text())))]
    return "\n\n".join(parts) + "\n"


def _usual(results: Mapping[str, Result]) -> Result:
    """One of the run that most sections are from; the newest of several."""
    runs = Counter((one.commit, one.machine, one.python) for one in results.values())
    return max(
        results.values(), key=lambda one: (runs[one.commit, one.machine, one.python], one.date)
    )


def _provenance(results: Mapping[str, Result]) -> Iterator[str]:
    """When and where this was measured, and whether it is of one piece."""
    if not results:
        yield "Nothing has been measured yet."
        return
    usual = _usual(results)
    where = f"{usual.machine}, {usual.python}, commit `{usual.commit or 'unknown'}`"
    dates = sorted({result.date[:10] for result in results.values()})
    yield f"Measured on {' to '.join(dict.fromkeys((dates[0], dates[-1])))}: {where}."
    odd = [f"[{SECTIONS[name]}](#{_anchor(name)})" for name in results if _marks(name, results)]
    if len(odd) == len(results):
        yield "None of this is from one full run: each section says how it was measured."
    elif odd:
        yield (
            "Not all of this is from one full run. These sections were measured at another commit, "
            f"on another machine, quickly, or with some of the peers: {', '.join(odd)}."
        )


def _marks(name: str, results: Mapping[str, Result]) -> list[str]:
    """In what a section's run was unlike that of most, and whether it was quick."""
    result, usual = results[name], _usual(results)
    marks = ["a quick run, less exact"] if result.quick else []
    marks += [f"only the peers {result.peers}"] if result.peers else []
    marks += ["another commit"] if result.commit != usual.commit else []
    here = (result.machine, result.python)
    return marks + (
        [f"{result.machine}, {result.python}"] if here != (usual.machine, usual.python) else []
    )


def _targets(results: Mapping[str, Result]) -> Iterator[str]:
    """The targets of the project, and how many there are in all."""
    yield "## Targets"
    rows = [_goal(goal, results) for goal in GOALS]
    head = "| What | Target | Measured | Met | Section |\n|---|---|---|---|---|"
    yield "\n".join([head, *rows])
    judged = [figure for result in results.values() for figure in result.figures if figure.target]
    met = sum(figure.met is True for figure in judged)
    yield (
        "All are of CPU time. Where several figures belong to one row, it shows the worst. "
        f"On this page {met} of {len(judged)} figures with a target meet it; "
        "a section that misses one says why."
    )


def decisive(goal: Goal, results: Mapping[str, Result]) -> list[Figure]:
    """The figures that decide about a goal, the worst first."""
    found = results[goal.section].figures if goal.section in results else ()
    chosen = [one for one in found if one.target and re.search(goal.figures, one.name)]
    return sorted(chosen, key=lambda one: one.share or 0.0, reverse=True)


def _goal(goal: Goal, results: Mapping[str, Result]) -> str:
    figures = decisive(goal, results)
    if not figures:
        return f"| {goal.what} | | not measured | | |"
    worst = figures[0]
    which = f" ({worst.name})" if len(figures) > 1 else ""
    link = f"[{SECTIONS[goal.section]}](#{_anchor(goal.section)})"
    return (
        f"| {goal.what} | {worst.target} | {worst.measured}{which} | {_MET[worst.met]} | {link} |"
    )


def _plots(results: Mapping[str, Result]) -> Iterator[str]:
    shown = [name for name in PLOTS if drawn(name, results)]
    if shown:
        yield "## At a glance"
        yield (
            "Every scale is logarithmic: from one vertical line to the next it is ten times as "
            "much, and where a scale begins has no meaning."
        )
    for name in shown:
        title = PLOTS[name].title
        yield f"**{title}**\n\n![{title}](images/{name}.svg)"


def _section(
    name: str, result: Result, notes: Path, results: Mapping[str, Result]
) -> Iterator[str]:
    yield f"## {SECTIONS[name]}"
    yield result.about
    before, after = result.load
    run = (
        f"Measured on {result.date} at `{result.commit or 'unknown'}` in {result.seconds:,.0f} s;"
        f" load {before:.1f} before, {after:.1f} after."
    )
    marked = _marks(name, results)
    yield run + (f" **This section: {'; '.join(marked)}.**" if marked else "")
    if result.left_out:
        yield f"Left out: {', '.join(result.left_out)}."
    head = "| What | Median | Beside | Ratio | Target | Met |\n|---|---|---|---|---|---|"
    yield "\n".join([head, *map(_row, result.figures)])
    note = notes / f"{name}.md"
    if result.missed:
        yield "### Why " + ("a target is" if len(result.missed) == 1 else "targets are") + " missed"
        known = note.read_text(encoding="utf-8") if note.exists() else ""
        yield _inserted(known, 4) or "The reason is not known yet."


def _inserted(note: str, level: int) -> str:
    """A note as a part of the page: without its title, its headings from this level on."""
    lines = note.strip().splitlines()
    if lines and lines[0].startswith("# "):
        del lines[0]
    levels, is_code = {}, False
    for at, line in enumerate(lines):
        is_code ^= line.startswith("```")
        if not is_code and (found := re.match(r"#+(?= )", line)):
            levels[at] = len(found[0])
    for at, own in levels.items():
        lines[at] = "#" * (own - min(levels.values()) + level) + lines[at][own:]
    return "\n".join(lines).strip()


def _row(figure: Figure) -> str:
    ratio = "" if figure.ratio is None else f"{figure.ratio:,.2f}×"
    cells = (figure.name, figure.written, figure.against, ratio, figure.target, _MET[figure.met])
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _budget_rows(recorded: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    yield f"| Path | {' | '.join(f'Python {version}' for version in recorded)} |"
    yield "|---|" + "---|" * len(recorded)
    for path in dict.fromkeys(path for paths in recorded.values() for path in paths):
        counted = (f"{paths[path]:,.0f}" if path in paths else "" for paths in recorded.values())
        yield f"| {path} | {' | '.join(counted)} |"


def _anchor(name: str) -> str:
    """The address of a section's heading on the page."""
    kept = re.sub(r"[^\w\- ]", "", SECTIONS[name].lower())
    return kept.replace(" ", "-")
