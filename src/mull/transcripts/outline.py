"""The order in which a document tells a conversation: turns, what is in them, what became of it.

Nothing is left out, also what was taken back and what a summary stands for; both are marked. The
result of a tool stands with its call: the result that follows an answer with a call of its id.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import NamedTuple

from mull.history.log import Condensed, Entry, Log, Record, Summary
from mull.neutral.blocks import ToolResultBlock
from mull.transcripts.transcript import Transcript, TurnRow, split_turns

__all__ = [
    "UNDONE_LINE",
    "Item",
    "Outline",
    "Turn",
    "condensed_line",
    "outline",
    "summary_line",
]

UNDONE_LINE = "The messages marked as withdrawn were withdrawn here."

Results = Mapping[tuple[int, int], ToolResultBlock]
"""The result of a call, by the position of its message and its place in it."""


class Item(NamedTuple):
    """One record and what became of it."""

    position: int
    record: Record
    taken_back: bool
    summed_up: bool


class Turn(NamedTuple):
    """One turn: its number as people count, its items, and what it took, if that is known."""

    number: int
    items: tuple[Item, ...]
    row: TurnRow | None


class Outline(NamedTuple):
    """All turns; `results` are shown with their calls, `paired` are the blocks among them."""

    turns: tuple[Turn, ...]
    results: Results
    paired: frozenset[tuple[int, int]]

    def turn_of(self, position: int) -> int:
        """The number of the turn that holds a position."""
        return bisect_right(self.turns, position, key=lambda turn: turn.items[0].position) or 1


def outline(transcript: Transcript) -> Outline:
    """The order in which everything is told."""
    records = transcript.records
    log = Log(records=records)
    alive = {position for position, _ in log.entries()}
    summed = {at for _, one in log.summaries() for at in range(one.start, one.end)}
    rows = {row.turn: row for row in transcript.rows}

    def item(at: int) -> Item:
        record = records[at]
        return Item(at, record, isinstance(record, Entry) and at not in alive, at in summed)

    turns = (
        Turn(number, tuple(map(item, turn)), rows.get(number))
        for number, turn in enumerate(split_turns(records), 1)
    )
    results, paired = _pair(records)
    return Outline(tuple(turns), results, paired)


def _pair(records: tuple[Record, ...]) -> tuple[Results, frozenset[tuple[int, int]]]:
    results: dict[tuple[int, int], ToolResultBlock] = {}
    paired: set[tuple[int, int]] = set()
    waiting: dict[str, list[tuple[int, int]]] = {}
    for at, record in enumerate(records):
        if not isinstance(record, Entry):
            continue
        message = record.message
        if message.role == "assistant":
            waiting = {}
            for place, call in enumerate(message.tool_calls):
                waiting.setdefault(call.id, []).append((at, place))
            continue
        for index, block in enumerate(message.blocks):
            if isinstance(block, ToolResultBlock) and waiting.get(block.call_id):
                results[waiting[block.call_id].pop(0)] = block
                paired.add((at, index))
    return results, frozenset(paired)


def summary_line(summary: Summary, told: Outline) -> str:
    """What a summary stands for."""
    first = told.turn_of(summary.start)
    last = told.turn_of(max(summary.start, summary.end - 1))
    turns = f"turn {first}" if first == last else f"turns {first} to {last}"
    return f"From here on, requests contain this summary of {turns}:"


def condensed_line(condensed: Condensed, told: Outline) -> str:
    """What a shorter form belongs to."""
    return f"A shorter version of the thinking in turn {told.turn_of(condensed.entry)}"
