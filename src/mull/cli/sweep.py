"""`mull sweep`: what thinking buys, measured with tasks of one's own."""

from __future__ import annotations

import shlex
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TextIO

import msgspec

from mull.agent.engine import Engine
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

__all__ = ["arguments", "run"]

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

exit status: 0 all answered, 2 usage error, 3 some have no answer, 5 network error,
130 interrupted
"""
_EXAMPLES = """\
examples:
  mull sweep tasks.jsonl -m local/smollm2 --levels none,low,high
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
    found = tuple(one.strip() for one in text.split(",") if one.strip())
    return found or (None,)


def run(options: Namespace) -> int:
    """Ask everything, print what came of it, and return the exit status.

    Raises:
        LocalError: the file, a model or an option is invalid.
    """
    if options.samples < 1:
        raise ConfigError(f"--samples must be at least 1, not {options.samples}")
    checker = tuple(shlex.split(options.checker)) if options.checker else ()
    tasks, models = read_tasks(_read(options.file)), tuple(dict.fromkeys(options.models))
    sweep = Sweep(tasks, models, options.levels, options.samples, checker)
    outcomes: list[Outcome] = []
    try:
        interrupt.run(_collect(options, sweep, outcomes))
        status = EXIT["refused"] if any(one.error for one in outcomes) else EXIT["answer"]
    except KeyboardInterrupt:
        status = EXIT["interrupted"]
        if options.output is not None:
            setup.tell("stopped: run the same command again to continue")
    _show(options, sweep, outcomes)
    return status


def _read(name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {quote(name)}: {error.strerror}") from error


async def _collect(options: Namespace, sweep: Sweep, outcomes: list[Outcome]) -> None:
    bar = _Bar(sys.stderr, sweep.size)
    async with Engine(setup.load(options)) as engine:
        found = run_sweep(
            sweep,
            file=options.output,
            concurrency=options.concurrency,
            base_url=options.base_url,
            max_tokens=options.max_tokens,
            engine=engine,
        )
        try:
            async for one in found:
                outcomes.append(one)
                bar.draw(outcomes)
        finally:
            bar.end()


class _Bar:
    """One line on a terminal that says how far the sweep has come; nothing elsewhere."""

    def __init__(self, out: TextIO, size: int) -> None:
        self._out, self._size, self._drawn = out, size, False

    def draw(self, outcomes: list[Outcome]) -> None:
        if self._out.isatty():
            errors = sum(one.error is not None for one in outcomes)
            told = f", {errors} without an answer" if errors else ""
            self._out.write(f"\r{len(outcomes)} of {self._size} answers{told} ")
            self._out.flush()
            self._drawn = True

    def end(self) -> None:
        if self._drawn:
            self._out.write("\n")


def _show(options: Namespace, sweep: Sweep, outcomes: list[Outcome]) -> None:
    places = {name: at for at, name in enumerate(sweep.cells)}
    ordered = sorted(outcomes, key=lambda one: places[one.cell])
    if options.html is not None:
        from mull.transcripts.sweep_page import sweep_html

        title = f"What thinking buys: {Path(options.file).name}"
        write_atomic(options.html, sweep_html(title, sweep.tasks, ordered).encode(), 0o644)
    cells = sum_up(ordered)
    if options.json:
        document = {"cells": cells, "outcomes": ordered}
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
        sys.stdout.write("\n")
        return
    for line in in_columns([_HEADS, *map(_row, cells)], right=range(1, len(_HEADS))):
        print(line)
    for one in [one for one in ordered if one.error is not None][:3]:
        setup.tell(f"no answer from {one.cell} to {one.task}: {one.error}")


_HEADS = ("MODEL", "RIGHT", "95 %", "THINKING", "TOKENS", "COST", "FIRST", "END", "ERRORS")


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
