"""The journal of an answer while it comes: its events on disk, so that a crash loses a second.

Deltas that continue one another are joined before they are written. What is folded back out of a
journal is the message that the process would have stored, had it been stopped there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import groupby
from typing import get_args

import msgspec

from mull.history.log import Entry
from mull.neutral.assemble import Assembler
from mull.neutral.blocks import ToolResultBlock
from mull.neutral.events import (
    BlockEnded,
    Event,
    Failed,
    Finished,
    Healed,
    OpaqueReceived,
    Reclassified,
    TextDelta,
    ThinkingCarrier,
    ThinkingDelta,
    ToolCallDelta,
    ToolRan,
    UsageReported,
)
from mull.neutral.former import Reader
from mull.neutral.messages import Dialect, Message, Origin
from mull.neutral.nesting import DEEPEST_STORED, shallow
from mull.store.sessions.values import JournalBatch

__all__ = ["decode_events", "decode_origin", "encode_events", "fold", "is_journaled"]

_JOURNALED = (
    *(TextDelta, ThinkingDelta, ThinkingCarrier, ToolCallDelta, OpaqueReceived),
    *(BlockEnded, Reclassified, UsageReported, ToolRan, Healed, Finished, Failed),
)

_encode = msgspec.json.Encoder().encode


def is_journaled(event: Event) -> bool:
    """Whether an event says something about the answer, not about the work on it."""
    return isinstance(event, _JOURNALED)


def encode_events(events: Iterable[Event]) -> bytes:
    """The events as JSON, neighbours joined."""
    from mull.neutral.joining import join_deltas

    return _encode(join_deltas(events))


def decode_events(data: bytes, origin: Origin | None = None) -> tuple[Event, ...]:
    """What `encode_events` was given, as far as it goes: nothing, if it is something else."""
    try:
        return _reader()(shallow(data, DEEPEST_STORED), origin.dialect if origin else None)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError):
        return ()


def decode_origin(data: bytes | None) -> Origin | None:
    """Who sent the events; somebody unknown, where that cannot be read: they go back to nobody."""
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=Origin)
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError):
        return Origin("unknown", get_args(Dialect)[0], "unknown")


@cache  # only what a crash has left is ever decoded
def _reader() -> Reader[tuple[Event, ...]]:
    return Reader(tuple[Event, ...])


def fold(batches: Sequence[JournalBatch]) -> list[Entry]:
    """What the journal comes to: an answer, the results of tools that had run, both, or nothing.

    An answer whose end is not in the journal is `interrupted`. Where the model was switched, what
    each one sent stands apart: nothing of one may go for the other's.
    """
    parts = groupby(batches, key=lambda batch: batch.origin)
    return [entry for origin, part in parts for entry in _fold_answer(origin, tuple(part))]


def _fold_answer(origin: Origin | None, batches: Sequence[JournalBatch]) -> list[Entry]:
    assembler = Assembler(origin)
    results: list[ToolResultBlock] = []
    for batch in batches:
        for event in batch.events:
            if isinstance(event, Healed):  # what came before it was refused
                assembler = Assembler(origin)
            elif isinstance(event, ToolRan):
                results.append(
                    ToolResultBlock(event.call_id, event.output, event.is_error, diff=event.diff)
                )
            else:
                assembler.add(event)
    said = assembler.message()
    entries = [said] if said.blocks else []
    if results:
        entries.append(Message(role="tool", blocks=tuple(results)))
    return [Entry(message, batches[-1].at) for message in entries]
