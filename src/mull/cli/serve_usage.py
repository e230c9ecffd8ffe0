"""`mull serve usage`: shows usage by client, model and day."""

from __future__ import annotations

import re
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from mull.cli.columns import in_columns
from mull.cli.serve_setup import on_ledger
from mull.gateway.tokens import client_name
from mull.neutral.errors import ConfigError
from mull.policy.cost import CostSum
from mull.settings.words import join_or, quote

if TYPE_CHECKING:
    from mull.gateway.ledger import Tally, UsageRow

__all__ = ["arguments", "run"]

_COLUMNS = {"token": "client", "model": "model", "day": "day"}
"""The columns that rows can be summed by, and the field of a row with the value of each."""
_NO_TOKEN = "(no token)"
_SPAN = re.compile(r"(\d{1,4})d", re.ASCII)
_TEXT = """\
Sums the usage of requests to the gateway: input tokens (and how many were cached),
output tokens (and how many were reasoning), and the cost by the catalog's prices.
Days are in UTC.
"""
_EXAMPLES = """\
examples:
  mull serve usage
  mull serve usage --since 2026-11-01 --by token
  mull serve usage --since 30d --by day,model --csv
"""


class _Sum(NamedTuple):
    """The sum of all rows with these values."""

    values: tuple[str, ...]
    tally: Tally


def arguments(parser: ArgumentParser) -> None:
    """Add the options of `mull serve usage`."""
    parser.description, parser.epilog = _TEXT, _EXAMPLES
    parser.add_argument(
        "--since",
        metavar="WHEN",
        default="7d",
        help="the first day, or a number of days (default: 7d)",
    )
    parser.add_argument(
        "--by",
        metavar="WHAT",
        default="token,model",
        help=f"{', '.join(_COLUMNS)}, or several separated by commas (default: token,model)",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--csv", action="store_true", help="print CSV")


def run(options: Namespace) -> int:
    """Print the usage.

    Raises:
        ConfigError: an argument is invalid, or the store cannot be read.
    """
    from mull.gateway.ledger import day_of

    by = _columns(options.by)
    now = time.time()
    since, until = _first_day(options.since, now), day_of(now + 86_400)  # clocks may differ
    rows = on_ledger(options, lambda ledger: ledger.usage(since, until))
    sums = _summed(rows, by)
    if options.json:
        import msgspec

        print(msgspec.json.format(msgspec.json.encode([_as_json(by, s) for s in sums])).decode())
    elif options.csv:
        _print_csv(by, sums)
    elif sums:
        print("\n".join(_table(by, sums)))
    else:
        print(f"no requests since {since}", file=sys.stderr)
    return 0


def _columns(text: str) -> tuple[str, ...]:
    by = tuple(dict.fromkeys(text.split(",")))
    for one in by:
        if one not in _COLUMNS:
            raise ConfigError(f"usage cannot be summed by {quote(one)}: use {join_or(_COLUMNS)}")
    return by


def _first_day(text: str, now: float) -> str:
    """The first day to sum. `7d` means today and the six days before."""
    if found := _SPAN.fullmatch(text):
        first = datetime.fromtimestamp(now, UTC) - timedelta(days=max(int(found[1]), 1) - 1)
        return first.strftime("%Y-%m-%d")
    try:
        return datetime.strptime(text, "%Y-%m-%d").strftime("%Y-%m-%d")
    except ValueError:
        raise ConfigError(
            f"{quote(text)} is not a date: use the form 2026-11-01, or a number of days such as 7d"
        ) from None


def _summed(rows: Iterable[UsageRow], by: Sequence[str]) -> list[_Sum]:
    """The sums by these columns, sorted by day if that is one of them, then by cost and tokens."""
    sums: dict[tuple[str, ...], Tally] = {}
    for row in rows:
        row = row._replace(client=client_name(row.client))
        values = tuple(getattr(row, _COLUMNS[one]) for one in by)
        sums[values] = sums[values] + row.tally if values in sums else row.tally
    found = [_Sum(values, tally) for values, tally in sums.items()]
    found.sort(key=lambda one: (-one.tally.nanodollars, -one.tally.tokens, one.values))
    if "day" in by:
        found.sort(key=lambda one: one.values[by.index("day")])
    return found


def _table(by: Sequence[str], sums: Sequence[_Sum]) -> Iterable[str]:
    counts = ("REQUESTS", "ERRORS", "INPUT", "CACHED", "OUTPUT", "REASONING", "COST")
    rows = [tuple(one.upper() for one in by) + counts]
    rows += [(*(value or _NO_TOKEN for value in one.values), *_cells(one.tally)) for one in sums]
    total = sums[0].tally
    for one in sums[1:]:
        total += one.tally
    if len(sums) > 1:
        rows.append(("total", *("",) * (len(by) - 1), *_cells(total)))
    yield from in_columns(rows, right=range(len(by), len(by) + len(counts)))
    if total.estimated:
        yield f"\nestimated for {_requests(total.estimated)} whose usage was not reported"
    if total.unpriced:
        yield f"\nthe cost does not include {_requests(total.unpriced)} of unknown price"


def _requests(count: int) -> str:
    return f"{count:,} request{'s' if count > 1 else ''}"


def _cells(tally: Tally) -> tuple[str, ...]:
    numbers = (tally.requests, tally.errors, tally.input, tally.cached, tally.output)
    cost = CostSum(tally.dollars, tally.unpriced, tally.requests)
    return (*(f"{number:,}" for number in (*numbers, tally.reasoning)), str(cost))


def _as_json(by: Sequence[str], one: _Sum) -> Mapping[str, object]:
    tally = one.tally
    return {
        **dict(zip(by, one.values, strict=True)),
        "requests": tally.requests,
        "errors": tally.errors,
        "estimated": tally.estimated,
        "input": tally.input,
        "cached": tally.cached,
        "output": tally.output,
        "reasoning": tally.reasoning,
        "cost": tally.dollars,
        "unpriced": tally.unpriced,
    }


def _print_csv(by: Sequence[str], sums: Sequence[_Sum]) -> None:
    import csv

    rows = [_as_json(by, one) for one in sums]
    names = rows[0] if rows else _as_json(by, _Sum(("",) * len(by), _nothing()))
    writer = csv.DictWriter(sys.stdout, list(names), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def _nothing() -> Tally:
    from mull.gateway.ledger import Tally

    return Tally()
