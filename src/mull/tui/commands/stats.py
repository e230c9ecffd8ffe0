"""`/stats`: tokens and costs of this session, by turn and by model.

Undone turns count too, because they were paid for. What a provider did not report is unknown, and a
sum with an unknown part is at least (≥) the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mull.agent.exports import pricing
from mull.history.log import Condensed, Entry, Record, Summary
from mull.neutral.errors import LocalError
from mull.neutral.messages import Origin
from mull.policy.cost import format_cost
from mull.transcripts.transcript import Price, TurnRow, turn_rows
from mull.transcripts.words import duration, short_count, total
from mull.tui.commands.host import Host, page
from mull.tui.commands.page import Page
from mull.tui.text.charts import bar, columns

__all__ = ["by_model", "show_stats"]

_LAST = 10
_BAR = 10
_CHART = 40
UNKNOWN = "?"


async def show_stats(host: Host, text: str) -> None:
    """Draw the usage."""
    if text.strip():
        raise LocalError("/stats takes no arguments")
    session, shown = host.session, page(host)
    records, price = tuple(session.log), pricing(session.engine.setup)
    rows = turn_rows(records, price)
    if not rows:
        host.tell("No requests yet.")
        return
    _show_sums(shown, rows)
    _show_turns(shown, rows)
    _show_models(shown, by_model(records, price))
    host.show(shown.lines)


def by_model(records: Sequence[Record], price: Price) -> dict[str, list[TurnRow]]:
    """A row for each answer of a model; summaries and the like count as answers."""
    found: dict[str, list[TurnRow]] = {}
    for record in records:
        origin = _author(record)
        for row in turn_rows([record], price):
            name = f"{origin.provider}/{origin.model}" if origin else "unknown"
            found.setdefault(name, []).append(row)
    return found


def _author(record: Record) -> Origin | None:
    match record:
        case Entry():
            return record.message.origin
        case Summary() | Condensed():
            return record.by
    return None


def _show_sums(shown: Page, rows: Sequence[TurnRow]) -> None:
    turns = f"{len(rows):,} turn{'' if len(rows) == 1 else 's'}"
    cost = total(row.cost for row in rows).say(format_cost)
    seconds = total(row.seconds for row in rows)
    shown.title(f"{turns}, cost {cost}")
    lines: list[tuple[str, Callable[[TurnRow], float | None]]] = [
        ("read", lambda row: row.input),
        ("of it cached", lambda row: row.cache_read),
        ("written", lambda row: row.output),
        ("of it thinking", lambda row: row.reasoning),
    ]
    told = [(name, total(map(read, rows)).say()) for name, read in lines]
    if seconds.any:
        told.append(("time", seconds.say(duration)))
    shown.table(told, (shown.theme.note, shown.theme.text), right={1})


def _show_turns(shown: Page, rows: Sequence[TurnRow]) -> None:
    theme, plain = shown.theme, shown.plain
    shown.title("By turn")
    width = min(_CHART, shown.width - 12)
    series: dict[str, list[float | None]] = {
        "read": [row.input for row in rows],
        "written": [row.output for row in rows],
        "cost": [row.cost for row in rows],
    }
    drawn = [
        (name, columns(values, width, plain=plain))
        for name, values in series.items()
        if any(value is not None for value in values)
    ]
    shown.table(drawn, (theme.note, theme.accent))
    last = rows[-_LAST:]
    cells = [
        (
            str(row.turn),
            _short(row.input),
            _short(row.output),
            _short(row.reasoning),
            UNKNOWN if row.cost is None else format_cost(row.cost),
        )
        for row in last
    ]
    styles = (theme.note, theme.text, theme.text, theme.text, theme.accent)
    heads = ("turn", "read", "written", "thinking", "cost")
    shown.table(cells, styles, right={0, 1, 2, 3, 4}, heads=heads)
    if len(last) < len(rows):
        shown.note(f"{len(rows) - len(last):,} earlier turns")


def _show_models(shown: Page, models: dict[str, list[TurnRow]]) -> None:
    theme = shown.theme
    shown.title("By model")
    written = {name: total(row.output for row in rows) for name, rows in models.items()}
    most = max((one.known for one in written.values()), default=0.0)
    for name, rows in models.items():
        shown.text(name, indent=2)
        out, cost = written[name], total(row.cost for row in rows).say(format_cost)
        read = total(row.input for row in rows).say(_short_number)
        drawn = bar(out.known / most if most else 0.0, _BAR, plain=shown.plain)
        said = (
            f"{len(rows)} answer{'' if len(rows) == 1 else 's'}, read {read},"
            f" written {out.say(_short_number)}, cost {cost}"
        )
        shown.table([(drawn, said)], (theme.accent, theme.note), indent=4)


def _short(number: int | None) -> str:
    return UNKNOWN if number is None else short_count(number)


def _short_number(number: float) -> str:
    return short_count(number)
