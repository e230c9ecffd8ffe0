"""The append-only log of a conversation: complete, in order, never edited (BR-002).

A record is a message, or refers to earlier records: a summary replaces some of them, a thinking
block has a condensed version, some are undone. Records are identified by their positions. All
messages are always there; requests are made from `active`. Times are provided by the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from mull.neutral.blocks import TextBlock, ThinkingBlock, Value
from mull.neutral.messages import Message, Origin
from mull.neutral.usage import Usage

__all__ = ["Condensed", "Entry", "Log", "Record", "Summary", "Undone", "last_undone"]


class Entry(Value, frozen=True, tag_field="type", tag="message"):
    """One message, with what was measured when it was added."""

    message: Message
    """The message itself, complete and never edited."""
    at: float | None = None
    """When it was added, in seconds since 1970; None if unknown."""
    seconds: float | None = None
    """How long the answer took from its request; None for other messages."""
    thought_seconds: float | None = None
    """How long the model thought; None if it did not, or nothing is known about it."""
    prefix: str | None = None
    """A hash of the answer's context, if its thinking is valid only after that."""
    own: bool = False
    """Whether mull wrote the message in the user's name, to make the model continue."""
    counted: int | None = None
    """The tokens of the answered request, estimated from characters; None for other messages."""
    steers: bool = False
    """Whether it is a user message in the middle of a turn."""

    @property
    def starts_turn(self) -> bool:
        """Whether it is a user message that starts a turn, which runs up to the next such
        message.
        """
        return not self.own and not self.steers and self.message.is_spoken


class Summary(Value, frozen=True, tag_field="type", tag="summary"):
    """Replaces the records from `start` up to `end` in every later request."""

    start: int
    """The position of the first record that it replaces."""
    end: int
    """The position after the last record that it replaces."""
    text: str
    """The summary, with what is carried over verbatim."""
    role: Literal["user", "assistant"] = "assistant"
    """In the "assistant" role it is a message of its own; in the "user" role it is added to the
    user message before it, so that an open turn continues with the model's own messages.
    """
    strategy: str = "middle-out"
    """How it was made, such as `middle-out` or `truncate`."""
    by: Origin | None = None
    """The endpoint and model that wrote it; None if no model did."""
    usage: Usage | None = None
    """The tokens that writing it took; None if unknown."""
    at: float | None = None
    """When it was added, in seconds since 1970; None if unknown."""


class Condensed(Value, frozen=True, tag_field="type", tag="condensed"):
    """A condensed version of one thinking block: block `block` of the message at `entry`."""

    entry: int
    block: int
    text: str
    by: Origin | None = None
    usage: Usage | None = None
    at: float | None = None


class Undone(Value, frozen=True, tag_field="type", tag="undone"):
    """Undoes the records from `start` up to `end`; if it is undone itself, it restores them."""

    start: int
    end: int
    at: float | None = None


Record: TypeAlias = Entry | Summary | Condensed | Undone
"""The records of a log."""


class Log:
    """Records in order. It can only grow.

    `version` changes when `active` changes in any way other than growing at its end.
    """

    def __init__(self, messages: Iterable[Message] = (), *, records: Iterable[Record] = ()) -> None:
        given = list(messages)
        self._records: list[Record] = [*records, *map(Entry, given)]
        self._built: dict[tuple[int, int], Message] = {}
        self._short: dict[int, ThinkingBlock] = {}
        self._prefixes: dict[int, str] = {}
        self._active: list[Message]
        self._positions: list[int]
        self.version: int = 0
        if len(given) == len(self._records):  # messages alone, of which nothing is known
            self._active, self._positions = given, list(range(len(given)))
            return
        for record in self._records:
            self._take_prefix(record)
        self._renew()

    def append(
        self,
        message: Message,
        *,
        at: float | None = None,
        seconds: float | None = None,
        thought_seconds: float | None = None,
    ) -> Entry:
        """Add a message at the end."""
        entry = Entry(message, at, seconds, thought_seconds)
        self.add(entry)
        return entry

    def add(self, record: Record) -> None:
        """Add any record at the end."""
        self._records.append(record)
        self._take_prefix(record)
        if isinstance(record, Entry):
            self._active.append(record.message)
            self._positions.append(len(self._records) - 1)
        else:
            self.version += 1
            self._renew()

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, position: int) -> Record:
        return self._records[position]

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    @property
    def messages(self) -> tuple[Message, ...]:
        """Every message that was not undone, as stored."""
        return tuple(entry.message for _, entry in self.entries())

    def entries(self) -> Iterator[tuple[int, Entry]]:
        """The messages that were not undone, with their positions."""
        for position, (record, alive) in enumerate(
            zip(self._records, _alive(self._records), strict=True)
        ):
            if alive and isinstance(record, Entry):
                yield position, record

    @property
    def active(self) -> Sequence[Message]:
        """The messages of a request: with summaries in place of what they replace."""
        return self._active

    @property
    def positions(self) -> Sequence[int]:
        """The position of each message of `active` in the log; for a summary its own."""
        return self._positions

    @property
    def condensed(self) -> Mapping[int, ThinkingBlock]:
        """The condensed version of thinking by the `id` of its block, which the log keeps alive."""
        return self._short

    @property
    def prefixes(self) -> Mapping[int, str]:
        """What thinking is bound to, by the `id` of its block; only if that is known."""
        return self._prefixes

    def newest(self) -> Iterator[Entry]:
        """The messages that requests are made from, last first, without summaries."""
        for position in reversed(self._positions):
            record = self._records[position]
            if isinstance(record, Entry):
                yield record

    def starts_turn(self, at: int) -> bool:
        """Whether the message at this place of `active` starts a turn."""
        record = self._records[self._positions[at]]
        return record.starts_turn if isinstance(record, Entry) else self._active[at].is_spoken

    def was_asked(self, at: int) -> bool:
        """Whether the message at this place of `active` was sent here rather than given from
        elsewhere: such messages have a time.
        """
        record = self._records[self._positions[at]]
        return isinstance(record, Entry) and record.at is not None

    def summaries(self) -> list[tuple[int, Summary]]:
        """The active summaries, with their positions."""
        return _in_use(self._records, _alive(self._records))

    def _renew(self) -> None:
        alive = _alive(self._records)
        standing = {summary.start: (at, summary) for at, summary in _in_use(self._records, alive)}
        self._active, self._positions = [], []
        self._short = {}
        covered = 0
        for position, record in enumerate(self._records):
            if position in standing:
                at, summary = standing[position]
                self._put_summary(at, summary)
                covered = summary.end
            if not alive[position]:
                continue
            if isinstance(record, Entry) and position >= covered:
                self._active.append(record.message)
                self._positions.append(position)
            elif isinstance(record, Condensed):  # its thinking may be before what is covered
                self._shorten(record)

    def _put_summary(self, at: int, summary: Summary) -> None:
        merges = summary.role == "user" and self._active and self._active[-1].role == "user"
        key = (at, self._positions[-1] if merges else -1)
        message = self._built.get(key)  # kept alive: block counts are keyed by identity
        if message is None:
            before = self._active[-1].blocks if merges else ()
            gap = "\n\n" if merges else ""
            message = Message(
                role=summary.role,
                status="complete" if summary.role == "assistant" else None,
                blocks=(*before, TextBlock(gap + summary.text)),
            )
            self._built[key] = message
        if merges:
            self._active[-1] = message
            self._positions[-1] = at
        else:
            self._active.append(message)
            self._positions.append(at)

    def _take_prefix(self, record: Record) -> None:
        if isinstance(record, Entry) and record.prefix is not None:
            for block in record.message.thinking:
                self._prefixes[id(block)] = record.prefix

    def _shorten(self, record: Condensed) -> None:
        entry = self._records[record.entry]
        if isinstance(entry, Entry):
            block = entry.message.blocks[record.block]
            if isinstance(block, ThinkingBlock):
                self._short[id(block)] = msgspec.structs.replace(block, thought=record.text)


def last_undone(log: Log) -> int | None:
    """The position of the record that undid the last turns, if no message was added since."""
    records = tuple(log)
    alive = _alive(records)
    for at in range(len(records) - 1, -1, -1):
        record = records[at]
        if not alive[at]:
            continue
        if isinstance(record, Entry):
            return None
        if isinstance(record, Undone):
            taken = records[record.start : record.end]
            if any(isinstance(one, Entry) and one.starts_turn for one in taken):
                return at
    return None


def _alive(records: Sequence[Record]) -> list[bool]:
    alive = [True] * len(records)
    for at in range(len(records) - 1, -1, -1):
        record = records[at]
        if alive[at] and isinstance(record, Undone):
            for position in range(record.start, min(record.end, at)):
                alive[position] = False
    return alive


def _in_use(records: Sequence[Record], alive: Sequence[bool]) -> list[tuple[int, Summary]]:
    """The summaries that no later one replaces."""
    found: list[tuple[int, Summary]] = []
    for at, record in enumerate(records):
        if alive[at] and isinstance(record, Summary):
            found = [one for one in found if not record.start <= one[1].start < record.end]
            found.append((at, record))
    return found
