"""The append-only log of a conversation: whole, in order, never edited (BR-002).

A record is a message, or says something about records before it: that a summary stands for some
of them, that a thought has a shorter form, that some are taken back. Positions in the log are
their names. What was said is always all there; what requests are made from is `active`. Times are
given by whoever appends.
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
    """One message: when it was added, and how long it and its thinking took.

    `prefix` is a hash of what the answer was given to, where its thoughts hold only after that.
    `own` are words that mull wrote in the user's name to make the model go on; `steers` are words
    of the user's in the middle of a turn. `counted` is what the answered request was counted to
    hold, by characters.
    """

    message: Message
    at: float | None = None
    seconds: float | None = None
    thought_seconds: float | None = None
    prefix: str | None = None
    own: bool = False
    counted: int | None = None
    steers: bool = False

    @property
    def starts_turn(self) -> bool:
        """Whether the user speaks here: a turn runs from here to where the user speaks again."""
        return not self.own and not self.steers and self.message.is_spoken


class Summary(Value, frozen=True, tag_field="type", tag="summary"):
    """Stands for the records from `start` up to `end` in every later request.

    In the `assistant` role it is a message of its own; in the `user` role it is added to the
    user's message before it, so that an open turn goes on with the model's own words.
    """

    start: int
    end: int
    text: str
    role: Literal["user", "assistant"] = "assistant"
    strategy: str = "middle-out"
    by: Origin | None = None
    usage: Usage | None = None
    at: float | None = None


class Condensed(Value, frozen=True, tag_field="type", tag="condensed"):
    """A shorter form of one thought: block `block` of the message at `entry`."""

    entry: int
    block: int
    text: str
    by: Origin | None = None
    usage: Usage | None = None
    at: float | None = None


class Undone(Value, frozen=True, tag_field="type", tag="undone"):
    """Takes the records from `start` up to `end` back; undone itself, it brings them back."""

    start: int
    end: int
    at: float | None = None


Record: TypeAlias = Entry | Summary | Condensed | Undone
"""What a log is made of."""


class Log:
    """Records in the order they came. It can only grow.

    `version` changes when `active` changes in any other way than by growing at its end.
    """

    def __init__(self, messages: Iterable[Message] = (), *, records: Iterable[Record] = ()) -> None:
        self._records: list[Record] = [*records, *map(Entry, messages)]
        self._built: dict[tuple[int, int], Message] = {}
        self._short: dict[int, ThinkingBlock] = {}
        self._prefixes: dict[int, str] = {}
        self.version = 0
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
        """Every message that was said and not taken back, as it was stored."""
        return tuple(entry.message for _, entry in self.entries())

    def entries(self) -> Iterator[tuple[int, Entry]]:
        """The messages that were not taken back, with their positions."""
        for position, (record, alive) in enumerate(
            zip(self._records, _alive(self._records), strict=True)
        ):
            if alive and isinstance(record, Entry):
                yield position, record

    @property
    def active(self) -> Sequence[Message]:
        """What a request is made from: summaries in the place of what they stand for."""
        return self._active

    @property
    def positions(self) -> Sequence[int]:
        """Where each message of `active` is in the log; a summary's own place for a summary."""
        return self._positions

    @property
    def condensed(self) -> Mapping[int, ThinkingBlock]:
        """The shorter form of a thought by the `id` of its block, which the log keeps alive."""
        return self._short

    @property
    def prefixes(self) -> Mapping[int, str]:
        """What a thought is bound to, by the `id` of its block; only where that is known."""
        return self._prefixes

    def newest(self) -> Iterator[Entry]:
        """The messages that requests are made from, last first, without summaries."""
        for position in reversed(self._positions):
            record = self._records[position]
            if isinstance(record, Entry):
                yield record

    def starts_turn(self, at: int) -> bool:
        """Whether the user speaks in the message at this place of `active`."""
        record = self._records[self._positions[at]]
        return record.starts_turn if isinstance(record, Entry) else self._active[at].is_spoken

    def was_asked(self, at: int) -> bool:
        """Whether the message at this place of `active` was said here, not given from elsewhere:
        what is said here has its time."""
        record = self._records[self._positions[at]]
        return isinstance(record, Entry) and record.at is not None

    def summaries(self) -> list[tuple[int, Summary]]:
        """The summaries in use, with their positions."""
        return _in_use(self._records, _alive(self._records))

    def _renew(self) -> None:
        alive = _alive(self._records)
        standing = {summary.start: (at, summary) for at, summary in _in_use(self._records, alive)}
        self._active: list[Message] = []
        self._positions: list[int] = []
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
            elif isinstance(record, Condensed):  # its thought may stand before what is covered
                self._shorten(record)

    def _put_summary(self, at: int, summary: Summary) -> None:
        merges = summary.role == "user" and self._active and self._active[-1].role == "user"
        key = (at, self._positions[-1] if merges else -1)
        message = self._built.get(key)  # kept: whoever counts blocks knows them by their identity
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
    """Where the record stands that took back the last turns, if nothing was said since."""
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
    """The summaries that no later one stands for."""
    found: list[tuple[int, Summary]] = []
    for at, record in enumerate(records):
        if alive[at] and isinstance(record, Summary):
            found = [one for one in found if not record.start <= one[1].start < record.end]
            found.append((at, record))
    return found
