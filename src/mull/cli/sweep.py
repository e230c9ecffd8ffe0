"""`mull sweep`: what thinking buys, measured with tasks of one's own."""

from __future__ import annotations

import os
import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from pathlib import Path

import msgspec

from mull.agent.engine import Engine
from mull.agent.setup import parse_sets
from mull.agent.sweep import Sweep, run_sweep
from mull.cli import interrupt, setup
from mull.cli.ask import EXIT
from mull.cli.columns import in_columns
from mull.neutral.errors import ConfigError
from mull.policy.cost import format_cost
from mull.policy.sweep.cells import Cell, Outcome, sum_up
from mull.policy.sweep.tasks import read_tasks
from mull.settings.words import quote
from mull.store.files import write_atomic

__all__ = ["arguments", "run", "table"]

CONCURRENCY = 8
_TEXT = """\
Asks every task of a file with every model at every level, and compares what each gets right with
what it takes: thinking tokens, cost and time. Each line of the file is a task:

  {"prompt": "What is 17 * 24?", "expect": "408"}

expect is what the answer must contain (or a list of alternatives), exact the whole answer,
matches a regular expression, schema a JSON schema that the answer must match. A checker is a
command that gets the task and the answer as JSON on standard input and exits with 0 if the answer
is right.

With -o answers are stored in a file as they come; the same command continues a sweep that was
stopped.

exit status: 0 all answered, 2 usage error, 3 some have no answer or the checker failed,
5 network error, 130 interrupted
"""
_EXAMPLES = """\
examples:
  mull sweep tasks.jsonl -m local/smollm2 --levels none,high
  mull sweep tasks.jsonl -m gpt-5 -m claude-sonnet-4-5 --levels low,high -o runs.jsonl
  mull sweep tasks.jsonl -m gpt-5 --levels low,high -o runs.jsonl --html page.html
  mull sweep tasks.jsonl -m kimi-k2-thinking --checker "python check.py" --samples 5 --json
"""


def arguments(parser: ArgumentParser) -> None:
    """Add the tasks, the models and levels, and where results go."""
    parser.description, parser.epilog = _TEXT, _EXAMPLES
    parser.add_argument("file", metavar="FILE", help="the tasks; - for standard input")
    parser.add_argument(
        "-m", "--model", metavar="MODEL", action="append", required=True, dest="models",
        help="a model; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--levels", metavar="LIST", default="", type=_levels,
        help="thinking levels, separated by commas; without, each model thinks as usual",
    )  # fmt: skip
    parser.add_argument("--samples", type=int, default=1, metavar="N", help="ask each N times")
    parser.add_argument("--checker", metavar="COMMAND", help="a command that judges each answer")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="store the answers here")
    parser.add_argument("--html", metavar="FILE", type=Path, help="write a page with plots")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--base-url", metavar="URL", help="base URL of the endpoint")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="token limit of each answer")
    parser.add_argument(
        "--concurrency", type=int, default=CONCURRENCY, metavar="N",
        help=f"how many requests run at once (default {CONCURRENCY})",
    )  # fmt: skip
    setup.add_arguments(parser)


def _levels(text: str) -> tuple[str | None, ...]:
    found = dict.fromkeys(one.strip() for one in text.split(",") if one.strip())
    return tuple(found) or (None,)


def run(options: Namespace) -> int:
    """Ask everything, print what came of it, and return the exit status.

    Raises:
        LocalError: the file, a model or an option is invalid.
    """
    if options.samples < 1:
        raise ConfigError(f"--samples must be at least 1, not {options.samples}")
    if options.html is not None:
        _check_page(options.html, (options.file, options.output))
    checker = _checker(options.checker)
    tasks, models = read_tasks(_read(options.file)), tuple(dict.fromkeys(options.models))
    sweep = Sweep(tasks, models, options.levels, options.samples, checker)
    outcomes: list[Outcome] = []
    try:
        interrupt.run(_collect(options, sweep, outcomes))
        is_whole = not any(one.error or _is_unjudged(one) for one in outcomes)
        status = EXIT["answer"] if is_whole else EXIT["refused"]
    except KeyboardInterrupt:
        status = EXIT["interrupted"]
        again = "" if options.output is None else ": run the same command again to continue"
        setup.tell(f"stopped after {len(outcomes)} of {sweep.size} answers{again}")
    _show(options, sweep, outcomes)
    return status


def _checker(given: str | None) -> tuple[str, ...]:
    if given is None:
        return ()
    try:
        command = tuple(shlex.split(given))
    except ValueError as error:
        raise ConfigError(f"--checker {quote(given)} is not a command: {error}") from None
    if not command:
        raise ConfigError("--checker needs a command")
    return command


def _check_page(page: Path, others: Iterable[str | Path | None]) -> None:
    """Raise before anything is asked if the page cannot be written, or would replace another file
    of the sweep. No directory is made for it.
    """
    target = os.path.realpath(page)
    if target in {os.path.realpath(one) for one in others if one is not None}:
        raise ConfigError(f"--html {page} would replace the tasks or answers: choose another name")
    folder = Path(target).parent
    if page.is_dir():
        raise ConfigError(f"cannot write {page}: it is a directory")
    if page.exists() and not page.is_file():
        raise ConfigError(f"cannot write {page}: it is not a regular file")
    if not folder.is_dir():
        raise ConfigError(f"cannot write {page}: there is no directory {folder}")
    if not os.access(folder, os.W_OK):
        raise ConfigError(f"cannot write {page}: you may not write to {folder}")


def _read(name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {quote(name)}: {error.strerror}") from error


async def _collect(options: Namespace, sweep: Sweep, outcomes: list[Outcome]) -> None:
    for cell in sweep.cells:
        parse_sets(options.sets, cell)  # a level and an option may contradict each other
    async with Engine(setup.load(options)) as engine:
        found = run_sweep(
            sweep,
            file=options.output,
            concurrency=options.concurrency,
            progress=setup.progress_stream(),
            base_url=options.base_url,
            max_tokens=options.max_tokens,
            tell=setup.tell,
            engine=engine,
        )
        async for one in found:
            outcomes.append(one)


def _show(options: Namespace, sweep: Sweep, outcomes: list[Outcome]) -> None:
    places = {name: at for at, name in enumerate(sweep.cells)}
    ordered = sorted(outcomes, key=lambda one: places[one.cell])
    if options.html is not None:  # first, since whoever reads what is printed may go away
        from mull.transcripts.sweep_page import sweep_html

        title = f"What thinking buys: {_named(options.file)}"
        page = sweep_html(title, tuple(sweep.tasks.values()), ordered)
        write_atomic(options.html, page.encode(), 0o644)
    if options.json:
        document = {"cells": sum_up(ordered), "outcomes": ordered}
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
        sys.stdout.write("\n")
        return
    if ordered:
        for line in table(sum_up(ordered)):
            print(line)
    _tell_errors(options.file, sweep, ordered)
    _tell_checker(options.file, sweep, ordered)


def _tell_errors(file: str, sweep: Sweep, outcomes: list[Outcome]) -> None:
    places = {task.id: place for place, task in sweep.tasks.items()}
    failed = [one for one in outcomes if one.error is not None]
    for one in failed[:_ERRORS_TOLD]:
        place = f"{places[one.task]} of {_named(file)}"
        setup.tell(f"no answer from {one.cell} to {place}: {one.error}")
    if len(failed) > _ERRORS_TOLD:
        more = len(failed) - _ERRORS_TOLD
        setup.tell(f"no answer to {more} more: --json shows why")


def _tell_checker(file: str, sweep: Sweep, outcomes: list[Outcome]) -> None:
    """Say how a checker failed; also if it judged nothing right, since it may itself be wrong."""
    places = {task.id: f"{place} of {_named(file)}" for place, task in sweep.tasks.items()}
    failed = [one for one in outcomes if _is_unjudged(one)]
    if failed:
        count, one = len(failed), failed[0]
        answers = "an answer" if count == 1 else f"{count} answers"
        setup.tell(f"the checker did not judge {answers}: {one.checker} ({places[one.task]})")
    judged = [one for one in outcomes if one.checker and one.right is False]
    if judged and not any(one.right for one in outcomes):
        one = judged[0]
        setup.tell(f"the checker found nothing right; of {places[one.task]} it said: {one.checker}")


def _is_unjudged(one: Outcome) -> bool:
    return one.right is None and bool(one.checker)


def _named(file: str) -> str:
    return "standard input" if file == "-" else Path(file).name


_ERRORS_TOLD = 3


_HEADS = ("MODEL", "RIGHT", "95 %", "THINKING", "TOKENS", "COST", "FIRST", "END", "ERRORS")


def table(cells: Iterable[Cell]) -> Iterable[str]:
    """The lines that are printed of these cells."""
    return in_columns([_HEADS, *map(_row, cells)], right=range(1, len(_HEADS)))


def _row(cell: Cell) -> tuple[str, ...]:
    right = "-" if cell.accuracy is None else f"{cell.right}/{cell.graded}"
    sure = "-" if cell.low is None or cell.high is None else f"{cell.low:.0%}–{cell.high:.0%}"
    thinking = "-" if cell.thinking_tokens is None else f"{cell.thinking_tokens:,.0f}"
    return (
        cell.name,
        right,
        sure,
        f"~{thinking}" if cell.estimated else thinking,
        "-" if cell.tokens is None else f"{cell.tokens:,.0f}",
        "-" if cell.cost is None else format_cost(cell.cost),
        "-" if cell.first is None else f"{cell.first:.1f} s",
        "-" if cell.seconds is None else f"{cell.seconds:.1f} s",
        str(cell.errors or ""),
    )
