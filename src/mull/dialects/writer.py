"""Drives the encoding of an answer: events in, the bytes of a dialect's stream out.

The writer of a dialect knows the formats of its wire; this module knows blocks. On every wire one
block follows the other, so a block that was not ended is ended when another one starts. Only the
chunks of calls may alternate. If a wire sends calls one after the other, a call waits until the one
before it has ended, because many clients track only one.

What a wire cannot express is left out and reported in `notes`. An answer that never ended is
written as one that broke off: it must not look finished.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, ClassVar, TypeAlias, cast

import msgspec

from mull.dialects.tables import Statuses
from mull.neutral.blocks import Value, Wire, own_keys
from mull.neutral.events import (
    BlockEnded,
    Event,
    Failed,
    Finished,
    Key,
    OpaqueReceived,
    Reclassified,
    Started,
    TextDelta,
    ThinkingCarrier,
    ThinkingDelta,
    ToolCallDelta,
    UsageReported,
)
from mull.neutral.found import BlockFinder
from mull.neutral.messages import Dialect
from mull.neutral.request import Note
from mull.neutral.usage import Usage

__all__ = [
    "About",
    "AnswerWriter",
    "Block",
    "Call",
    "Opaque",
    "Text",
    "Thought",
    "encode",
    "event_frame",
    "frame",
    "object_of",
]

_encode = msgspec.json.Encoder().encode
_object = msgspec.json.Decoder(dict[str, Any]).decode
_LINE_ENDS = (
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
    (b"\xc2\x85", b"\\u0085"),
)
_CUT = Failed("the answer broke off", "incomplete", "interrupted")


class About(Value, frozen=True):
    """What is known about an answer beside its events."""

    source: Dialect | None = None
    """The dialect that the events were read from; None is the one that is written. Keys and blocks
    specific to a dialect are written only in that dialect.
    """
    id: str | None = None
    """The id of the answer; it replaces the one in the events."""
    model: str | None = None
    """The model's name for the client; it replaces the one in the events."""
    created: int = 0
    """When the answer was created, in seconds since 1970."""
    reasoning_field: str | None = None
    """The field for thinking, in a dialect that has several; None is the usual one."""
    usage: bool = True
    """Whether the client wants token counts in the stream."""
    as_list: bool = False
    """Whether a dialect that can do so writes its stream as one list of JSON values."""
    free_text: frozenset[str] = frozenset()
    """The names of the tools that the client declared as taking a text."""
    tools: Mapping[str, Wire] = {}
    """Data specific to the dialect of the tools that the client declared, by name."""
    echo: dict[str, Any] = {}
    """The part of the request that the answer repeats, in dialects that do so."""
    rest: Wire | None = None
    """What else the provider said about a complete answer, in its own dialect."""


class _Written:
    """A block of the answer; `number` is its position among all, `at` its position on the wire,
    `head` what precedes each chunk of its text. `kept` is the data specific to this dialect; with
    `is_foreign` there is data specific to another one.
    """

    number: int
    is_stopped: bool
    is_open: bool
    is_foreign: bool
    at: int
    __slots__ = ("at", "head", "is_foreign", "is_open", "is_stopped", "kept", "key", "number")

    def __init__(self) -> None:
        self.number = self.at = -1
        self.key: Key = None
        self.head: bytes = b""
        self.is_open = self.is_stopped = self.is_foreign = False
        self.kept: dict[str, Any] = {}


class Text(_Written):
    """Text; `pieces` if the dialect repeats it at its end."""

    __slots__ = ("pieces", "signature")

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self.signature: str | None = None


class Thought(_Written):
    """Thinking, and whatever it carries."""

    __slots__ = ("carried", "field", "kind", "pieces")

    def __init__(self) -> None:
        super().__init__()
        self.field: str | None = None
        self.kind: str = "raw"
        self.pieces: list[str] = []
        self.carried: dict[str, Any] = {}


class Call(_Written):
    """A call. It is not opened on the wire before it has a name and an id. With `is_over` it is
    complete, though it may have to wait for its turn. `is_bare` if no arguments were written: where
    they are a text, it must be that of an object, because clients parse it.
    """

    __slots__ = ("id", "is_bare", "is_over", "name", "pieces", "signature")

    def __init__(self) -> None:
        super().__init__()
        self.is_over: bool = False
        self.is_bare: bool = True
        self.id: str | None = None
        self.name: str | None = None
        self.pieces: list[str] = []
        self.signature: str | None = None


class Opaque(_Written):
    """A complete block of a kind that only its dialect knows."""

    __slots__ = ()


Block: TypeAlias = Text | Thought | Call | Opaque


class AnswerWriter(BlockFinder, ABC):
    """Writes one answer: feed it the events as they arrive, then close it.

    `statuses` are the words for failures of the dialect that the events were read from.
    """

    CALL = Call
    ALONE = Opaque
    DIALECT: ClassVar[Dialect]
    MEDIA_TYPE: ClassVar[str] = "text/event-stream"
    """The content type of the stream."""
    ALIVE: ClassVar[bytes] = b": alive\n\n"
    """A keep-alive; it may be sent between any two events."""

    CALLS_APART: ClassVar[bool] = True
    """Whether a call starts on the wire only when the one before it has ended."""
    DOCUMENT_FAILS: ClassVar[bool] = False
    """Whether a document can contain what arrived before a failure, and say that it failed."""

    def __init__(self, about: About, statuses: Statuses) -> None:
        super().__init__()
        self.about = about
        self._statuses = statuses
        self.is_own: bool = about.source in (None, self.DIALECT)
        self.id, self.model = about.id, about.model
        self.usage: Usage | None = None
        self.rest: dict[str, Any] = own_keys(about.rest, self.DIALECT)
        self._left_out: dict[str, int] = {}
        self._opened: dict[int, Block] = {}
        self._calling: OrderedDict[int, Call] = OrderedDict()  # its first one is found at once
        self._ids: set[str] = set()
        self._numbers = count()
        self._begun = self._ended = False
        self._kind: type[Event] | None = None
        self._key: Key = None
        self._going: Block | None = None
        self._acts: dict[type[Event], Callable[[Any], bytes]] = {
            Started: self._started,
            TextDelta: self._take_block,
            ThinkingDelta: self._take_block,
            ThinkingCarrier: self._take_block,
            ToolCallDelta: self._take_block,
            OpaqueReceived: self._take_opaque,
            BlockEnded: self._block_ended,
            Reclassified: self._reclassified,
            UsageReported: self._counted,
            Finished: self._finished,
            Failed: self._failed,
        }

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was left out, so far."""
        return tuple(Note("answer", f"{n} × {what}") for what, n in self._left_out.items())

    def feed(self, event: Event) -> bytes:
        """The bytes for this event; none if the wire cannot express it."""
        kind, one = type(event), cast(Any, event)
        if kind is self._kind and one.key == self._key:
            if kind is ThinkingDelta:
                return self.piece(self._going, one.text) if one.text else b""
            if one.wire is None and one.signature is None:
                if kind is TextDelta:
                    return self.piece(self._going, one.text) if one.text else b""
                if one.id is None:
                    return self.piece(self._going, one.arguments) if one.arguments else b""
        act = self._acts.get(kind)
        return b"" if act is None or self._ended else act(event)

    def flush(self) -> bytes:
        """What was held back for an event that might follow at once: call it when none has."""
        return b""

    def close(self) -> bytes:
        """The remaining bytes. Nothing may be fed after it."""
        return b"" if self._ended else self.feed(_CUT)

    def leave_out(self, what: str) -> None:
        """Remember that the wire has no field for something."""
        self._left_out[what] = self._left_out.get(what, 0) + 1

    def own(self, wire: Wire | None) -> dict[str, Any]:
        """The part of a block's data that this dialect wrote."""
        return own_keys(wire, self.DIALECT)

    def _keep(self, block: Block, wire: Wire | None) -> None:
        if wire is not None:
            block.kept |= self.own(wire)
            block.is_foreign = block.is_foreign or wire.dialect not in (None, self.DIALECT)

    def status_of(self, failed: Failed) -> int:
        """The HTTP status that a failure would have had."""
        return self._statuses.status(failed.code) or 500

    def call_id(self, block: Call) -> str:
        """The id of a call; one without an id gets a new one."""
        if block.id is None:
            block.id = next(name for n in self._numbers if (name := f"call_{n}") not in self._ids)
        return block.id

    @abstractmethod
    def start(self) -> bytes:
        """The beginning of the stream."""

    @abstractmethod
    def open(self, block: Block, event: Event) -> bytes:
        """The start of a block, with what its first event contains beside its text."""

    @abstractmethod
    def piece(self, block: Any, text: str) -> bytes:
        """A chunk of a block's text, which is not empty."""

    @abstractmethod
    def stop(self, block: Block) -> bytes:
        """The end of a block."""

    @abstractmethod
    def finish(self, reason: str | None) -> bytes:
        """The end of a complete answer."""

    @abstractmethod
    def fail(self, failed: Failed) -> bytes:
        """The end of an answer that broke off."""

    @abstractmethod
    def opaque(self, block: Opaque, data: dict[str, Any]) -> bytes:
        """A complete block of this dialect's own."""

    def carry(self, block: Thought, event: ThinkingCarrier) -> bytes:
        """What is written for a carrier immediately; the rest is in `block.carried` when the block
        stops.
        """
        return b""

    def mark(self, block: Text | Call, event: TextDelta | ToolCallDelta) -> bytes:
        """Keys and a signature of a block that is already open, in `event`."""
        return b""

    def reclassify(self) -> bytes:
        """Written text turns out to have been thinking."""
        self.leave_out("text that turned out to be thinking after it had been written")
        return b""

    def _started(self, event: Started) -> bytes:
        self.id = self.about.id or event.id
        self.model = self.about.model or event.model
        return b""

    def _counted(self, event: UsageReported) -> bytes:
        self.usage = event.usage
        return b""

    def _finished(self, event: Finished) -> bytes:
        out = self._begin() + self._stop_all()
        self._ended, self._kind = True, None
        self.rest = self.own(event.wire) or self.rest
        return out + self.finish(event.stop_reason)

    def _failed(self, event: Failed) -> bytes:
        self._ended, self._kind = True, None
        return self.fail(event)

    def _reclassified(self, event: Reclassified) -> bytes:
        return self._begin() + self.reclassify()

    def _begin(self) -> bytes:
        if self._begun:
            return b""
        self._begun = True
        return self.start()

    def _take_block(
        self, event: TextDelta | ThinkingDelta | ThinkingCarrier | ToolCallDelta
    ) -> bytes:
        self._kind = None
        begun = self._begin()
        known = len(self._found)
        if type(event) is ToolCallDelta:
            block: Any = self._find_call(event)
        else:
            block = self._find(Text if type(event) is TextDelta else Thought, event.key)
        out = begun + (self._make_room(block, event.key) if len(self._found) > known else b"")
        match event:
            case ThinkingDelta():
                out += self._take_thought(block, event)
            case ThinkingCarrier():
                out += self._take_carrier(block, event)
            case ToolCallDelta():
                out += self._take_call(block, event)
            case TextDelta():
                out += self._take_text(block, event)
        return out

    def _goes_on(self, block: Block, event: Event, key: Key) -> None:
        """The next event of this kind and key is another chunk of this block."""
        if block.is_open and not block.is_stopped:
            self._kind, self._key, self._going = type(event), key, block

    def _take_text(self, block: Text, event: TextDelta) -> bytes:
        if event.signature is not None:
            block.signature = event.signature
        self._keep(block, event.wire)
        if not block.is_open:
            out = self._open_on_wire(block, event)
        else:
            marked = event.signature is not None or event.wire is not None
            out = self.mark(block, event) if marked else b""
            out += self.piece(block, event.text) if event.text else b""
        self._goes_on(block, event, event.key)
        return out

    def _take_thought(self, block: Thought, event: ThinkingDelta) -> bytes:
        block.field = block.field or event.source_field
        block.kind = event.kind
        if not block.is_open:
            out = self._open_on_wire(block, event)
        else:
            out = self.piece(block, event.text) if event.text else b""
        self._goes_on(block, event, event.key)
        return out

    def _take_carrier(self, block: Thought, event: ThinkingCarrier) -> bytes:
        for name in ("signature", "encrypted", "redacted", "id"):
            if (value := getattr(event, name)) is not None:
                block.carried[name] = value
        self._keep(block, event.wire)
        block.field = block.field or event.source_field
        block.kind = event.kind or block.kind
        out = b"" if block.is_open else self._open_on_wire(block, event)
        return out + self.carry(block, event)

    def _take_call(self, block: Call, event: ToolCallDelta) -> bytes:
        if event.id:
            block.id = block.id or event.id
            self._ids.add(event.id)
        block.name = block.name or event.name
        if event.signature is not None:
            block.signature = event.signature
        self._keep(block, event.wire)
        if block.is_open:
            marked = event.signature is not None or event.wire is not None
            out = self.mark(block, event) if marked else b""
            out += self.piece(block, event.arguments) if event.arguments else b""
        else:
            block.pieces += [event.arguments] if event.arguments else []
            ready = block.id and block.name and not self._waits(block)
            out = self._open_call(block) if ready else b""
        self._goes_on(block, event, event.key)
        return out

    def _waits(self, block: Call) -> bool:
        """Whether an earlier call has not ended yet."""
        return self.CALLS_APART and next(iter(self._calling.values()), block) is not block

    def _open_call(self, block: Call) -> bytes:
        said = "".join(block.pieces)
        block.pieces.clear()
        event = ToolCallDelta(None, self.call_id(block), block.name or "", said)
        return self._open_on_wire(block, event)

    def _open_on_wire(self, block: Block, event: Event) -> bytes:
        block.is_open = True
        return self.open(block, event)

    def takes(self, event: OpaqueReceived) -> bool:
        """Whether this dialect can express a complete block."""
        return self.is_own

    def _take_opaque(self, event: OpaqueReceived) -> bytes:
        if event.broken:
            self.leave_out("a part of the answer that cannot be used")
            return b""
        if not self.takes(event):
            self.leave_out(f"a block specific to {self.about.source}")
            return b""
        self._kind = None
        out = self._begin()
        block = self._find(Opaque, event.key)
        out += self._make_room(block, event.key)
        block.is_open = block.is_stopped = True
        del self._opened[block.number]
        return out + self.opaque(block, event.data)

    def stays(self, block: Block, beside: Block) -> bool:
        """Whether a block stays open beside a new one that is not a call."""
        return False

    def _make_room(self, block: Block, key: Key) -> bytes:
        """End what cannot stay open beside a new block."""
        block.number, block.key = len(self._found) - 1, key
        out = b"".join(
            [self._stop(one) for one in [*self._opened.values()] if not self.stays(one, block)]
        )
        if type(block) is Call:
            self._calling[block.number] = block
        else:
            out += self._stop_calls()
            self._opened[block.number] = block
        return out

    def _stop(self, block: Block) -> bytes:
        if type(block) is Call:
            return self._stop_call(block)
        del self._opened[block.number]
        block.is_stopped = True
        return self.stop(block)

    def _stop_call(self, block: Call) -> bytes:
        """End a call when its turn has come, and start the one that waited for that."""
        block.is_over = True
        if self._waits(block):
            return b""
        out, ending = [], block
        while True:
            if not ending.is_open and ending.name:
                out.append(self._open_call(ending))
            del self._calling[ending.number]
            ending.is_stopped = True
            if ending.is_open:
                out.append(self.stop(ending))
            else:
                self.leave_out("a tool call without a name")
            following = next(iter(self._calling.values()), None)
            if following is None or following.is_open or not self.CALLS_APART:
                return b"".join(out)
            if not following.is_over:
                if following.id and following.name:
                    out.append(self._open_call(following))
                return b"".join(out)
            ending = following

    def _stop_calls(self) -> bytes:
        """End all calls, in their order."""
        out = []
        while self._calling:
            out.append(self._stop_call(next(iter(self._calling.values()))))
        return b"".join(out)

    def _stop_all(self) -> bytes:
        opened = [*self._opened.values()]
        before = [one for one in opened if not self._calling or one.number < min(self._calling)]
        out = b"".join([self._stop(one) for one in before]) + self._stop_calls()
        return out + b"".join([self._stop(one) for one in opened if one not in before])

    def _block_ended(self, event: BlockEnded) -> bytes:
        self._kind = None
        return self._end_block(event.key)

    def _end_block(self, key: Key) -> bytes:
        if key is None:
            places = [self._open]
        else:
            places = [self._by_key.get((kind, key)) for kind in (Text, Thought, Call)]
        self._open = None
        going = (at for at in places if at is not None)
        ended = [self._found[at] for at in going if at in self._opened or at in self._calling]
        return b"".join([self._stop(one) for one in ended])


def encode(value: Any) -> bytes:
    """JSON without any character that some client takes for a line end.

    Google's SDK splits a stream at each of them (httpx's `iter_lines`).
    """
    data = _encode(value)
    if not data.isascii():
        for mark, escaped in _LINE_ENDS:
            data = data.replace(mark, escaped)
    return data


def frame(value: Any) -> bytes:
    """A server-sent event without a name."""
    return b"data: %b\n\n" % encode(value)


def event_frame(value: dict[str, Any]) -> bytes:
    """A server-sent event with its type as its name."""
    return b"event: %b\ndata: %b\n\n" % (value["type"].encode(), encode(value))


def object_of(text: str) -> dict[str, Any] | None:
    """The object in a call's arguments; None if they are not one. Missing arguments are an empty
    one.
    """
    if not text.strip():
        return {}
    try:
        return _object(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
