"""A conversation with all that is known of it, and what each of its turns took.

A transcript is what an export is made of and what an import gives. Its records are the log, whole
and in order. Its rows say what each turn took: everything that was asked of a model in it, tool
rounds and side calls included, also where it was taken back later, because it was paid for.
Reasoning is part of the output and counted once. Unknown is None, never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TypeAlias, TypeVar

from mull.history.log import Condensed, Entry, Record, Summary, Undone
from mull.neutral.blocks import Value
from mull.neutral.messages import Message
from mull.neutral.usage import Usage, add_usage
from mull.policy.reasoning import has_thinking

__all__ = ["Price", "Transcript", "TurnRow", "split_turns", "turn_rows"]

Price: TypeAlias = Callable[[Message], float | None]
"""What an answer cost in dollars, or None where nobody knows."""
_Number = TypeVar("_Number", int, float)


class TurnRow(Value, frozen=True):
    """What one turn took, over all its requests."""

    turn: int
    """The number of the turn, from 1."""
    at: float | None = None
    """When it began, in seconds since 1970; None if unknown."""
    model: str | None = None
    """The model that answered last, as `provider/model`; None if none did."""
    input: int | None = None
    """The input tokens, cached ones included; None if unknown."""
    output: int | None = None
    """The output tokens, reasoning included; None if unknown."""
    reasoning: int | None = None
    """The tokens of reasoning; None if unknown."""
    cache_read: int | None = None
    """The input tokens that were read from a cache; None if unknown."""
    seconds: float | None = None
    """How long the answers took together; None if one of them has no time."""
    thought_seconds: float | None = None
    """How long the model thought; None if unknown."""
    cost: float | None = None
    """The price in dollars; None if any part of it is unknown."""
    context: int | None = None
    """The tokens in the context window at its end; None if unknown."""

    @property
    def is_unknown(self) -> bool:
        """Whether nobody told what it took."""
        return self.input is None and self.output is None and self.cost is None

    @property
    def answer(self) -> int | None:
        """The output without its reasoning, where both are known."""
        if self.output is None or self.reasoning is None:
            return None
        return max(0, self.output - self.reasoning)


class Transcript(Value, frozen=True):
    """A conversation as it is exported and imported; times are seconds since 1970."""

    title: str = ""
    """How it began: the first words of the first question."""
    id: str | None = None
    """The id of its session; None if it was imported from elsewhere."""
    name: str | None = None
    """The name that the user gave the session."""
    folder: str | None = None
    """The folder that the session was started in."""
    created: float | None = None
    """When the session was created."""
    model: str | None = None
    """The last model, as `provider/model`; None if unknown."""
    system: str = ""
    """The system prompt; empty for none."""
    records: tuple[Record, ...] = ()
    """The log, whole and in order."""
    rows: tuple[TurnRow, ...] = ()
    """What each turn took; empty if it was not counted."""


def split_turns(records: Sequence[Record]) -> list[range]:
    """The positions of each turn. What stands before the first question belongs to its turn."""
    starts = [
        at for at, record in enumerate(records) if isinstance(record, Entry) and record.starts_turn
    ]
    edges = [0, *starts[1:], len(records)] if records else []
    return [range(start, end) for start, end in pairwise(edges)]


def turn_rows(records: Sequence[Record], price: Price) -> tuple[TurnRow, ...]:
    """What each turn took, without those in which nothing was asked of a model."""
    turns = ((n, [records[at] for at in turn]) for n, turn in enumerate(split_turns(records), 1))
    return tuple(row for number, turn in turns if (row := _row(number, turn, price)) is not None)


def _row(number: int, turn: Sequence[Record], price: Price) -> TurnRow | None:
    calls = [message for record in turn if (message := _asked(record)) is not None]
    if not calls:
        return None
    answers = [r for r in turn if isinstance(r, Entry) and r.message.role == "assistant"]
    origins = [m.origin for m in calls if m.origin is not None]
    usage = _sum_usage([message.usage for message in calls]) or Usage()
    return TurnRow(
        turn=number,
        at=next((record.at for record in turn if record.at is not None), None),
        model=f"{origins[-1].provider}/{origins[-1].model}" if origins else None,
        input=usage.input,
        output=usage.output,
        reasoning=usage.reasoning,
        cache_read=usage.cache_read,
        seconds=_sum_known(entry.seconds for entry in answers),
        thought_seconds=_sum_known(_thought_seconds(entry) for entry in answers),
        cost=_sum_known(price(message) for message in calls),
        context=_context(answers[-1].message.usage) if answers else None,
    )


def _asked(record: Record) -> Message | None:
    """The answer that a record holds; a side call as if it had answered."""
    match record:
        case Entry():
            return record.message if record.message.role == "assistant" else None
        case Summary() | Condensed():
            if record.by is None and record.usage is None:
                return None
            return Message(role="assistant", origin=record.by, usage=record.usage)
        case Undone():
            return None


def _sum_usage(usages: list[Usage | None]) -> Usage | None:
    total, *rest = usages
    for usage in rest:
        total = add_usage(total, usage)
    return total


def _sum_known(values: Iterable[_Number | None]) -> _Number | None:
    """The sum; None where one of them is unknown, or there is none."""
    found = list(values)
    known = [value for value in found if value is not None]
    return sum(known[1:], known[0]) if known and len(known) == len(found) else None


def _thought_seconds(entry: Entry) -> float | None:
    if entry.thought_seconds is None and not has_thinking(entry.message):
        return 0.0
    return entry.thought_seconds


def _context(usage: Usage | None) -> int | None:
    if usage is None or usage.input is None or usage.output is None:
        return None
    return usage.input + usage.output
