"""Where a conversation may be cut, and where it is.

A cut goes between turns. If the last turns are too long for that (an agent's tool chain) it goes
between the rounds of one: before an answer that follows results, so that a call never loses its
result and a signed message is kept whole or not at all (G01).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from mull.history.log import Log, Summary
from mull.neutral.blocks import TextBlock, Value
from mull.neutral.messages import Message

__all__ = ["Unit", "cut_late", "cut_to_fit", "is_closed", "units_of"]


class Unit(Value, frozen=True):
    """One element of a request's history and the records it stands for: a message or a summary.

    `begins_turn` is whether it is a user message that starts a turn.
    """

    start: int
    end: int
    message: Message
    summary: Summary | None = None
    begins_turn: bool = False


def units_of(log: Log) -> list[Unit]:
    """The elements of requests, in order; a summary separate from the message that it joins."""
    units = [_summary_unit(summary) for _, summary in log.summaries()]
    covered = [(unit.start, unit.end) for unit in units]
    for at, entry in log.entries():
        if not any(start <= at < end for start, end in covered):
            units.append(Unit(at, at + 1, entry.message, begins_turn=entry.starts_turn))
    return sorted(units, key=lambda unit: unit.start)


def _summary_unit(summary: Summary) -> Unit:
    message = Message(role=summary.role, blocks=(TextBlock(summary.text),))
    return Unit(summary.start, summary.end, message, summary)


def is_closed(units: Sequence[Unit]) -> bool:
    """Whether the last turn has its answer."""
    last = units[-1].message
    return last.role == "assistant" and not last.tool_calls


def cut_to_fit(
    units: Sequence[Unit], costs: Sequence[int], first: int, room: float, most: float
) -> int | None:
    """The unit to keep from, so that about `room` tokens are kept, at least the last complete turn.

    Units before `first` are kept anyway. A last turn that cannot be divided may have `most` tokens.
    None if there is no place to cut.
    """
    tails = list(accumulate(reversed(costs), initial=0))[::-1]
    turns = [at for at in range(first + 1, len(units)) if units[at].begins_turn]
    whole = _last_whole_turn(units)
    between_turns = [at for at in turns if at <= whole]
    for at in between_turns:
        if tails[at] <= room:
            return at
    rounds = [at for at in range(max(first, whole) + 1, len(units)) if _begins_round(units, at)]
    for at in rounds:
        if tails[at] <= room:
            return at
    if between_turns and tails[between_turns[-1]] <= most:
        return between_turns[-1]
    late = sorted({*rounds, *turns})
    return late[-1] if late else None


def cut_late(units: Sequence[Unit]) -> int:
    """The unit to keep from, so that only an unanswered question, or unanswered calls, are kept."""
    last = units[-1]
    waits = last.begins_turn or bool(last.message.tool_calls)
    return len(units) - 1 if waits else len(units)


def _last_whole_turn(units: Sequence[Unit]) -> int:
    """Where the last answered turn starts; an open one after it belongs to it."""
    begins = [at for at, unit in enumerate(units) if unit.begins_turn]
    if begins and not is_closed(units):
        begins.pop()
    return begins[-1] if begins else 0


def _begins_round(units: Sequence[Unit], at: int) -> bool:
    unit, before = units[at], units[at - 1]
    answers = unit.summary is None and unit.message.role == "assistant"
    return answers and before.summary is None and before.message.carries_results
