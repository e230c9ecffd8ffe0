"""Which turns of a log can be undone and redone, and the record that does it."""

from __future__ import annotations

from mull.history.log import Entry, Log, Undone, last_undone
from mull.neutral.errors import LocalError
from mull.neutral.messages import Message

__all__ = ["last_turn", "question_at", "redone", "turn_starts", "undone"]


def turn_starts(log: Log) -> list[int]:
    """Where the turns start that were not undone."""
    return [at for at, entry in log.entries() if entry.starts_turn]


def last_turn(log: Log, turns: int = 1) -> int:
    """Where the last turns start.

    Raises:
        LocalError: there are not that many.
    """
    starts = turn_starts(log)
    if not starts:
        raise LocalError("there are no turns yet")
    if not 1 <= turns <= len(starts):
        there = "is only one" if len(starts) == 1 else f"are {len(starts)}"
        raise LocalError(f"cannot undo {turns} turns: there {there}")
    return starts[-turns]


def undone(log: Log, turns: int, at: float) -> Undone:
    """The record that undoes the last turns.

    Raises:
        LocalError: there are not that many.
    """
    return Undone(last_turn(log, turns), len(log), at)


def redone(log: Log, at: float) -> Undone:
    """The record that redoes what was undone last.

    Raises:
        LocalError: nothing was undone since the last message.
    """
    place = last_undone(log)
    if place is None:
        raise LocalError("nothing to redo: nothing was undone since the last message")
    return Undone(place, place + 1, at)


def question_at(log: Log, start: int) -> Message:
    """The message that a turn starts with."""
    entry = log[start]
    assert isinstance(entry, Entry)
    return entry.message
