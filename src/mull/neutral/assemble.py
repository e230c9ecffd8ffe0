"""Folds events into the blocks of one message, and turns a message into events.

Blocks are in the order in which they first appeared. Text is collected in chunks, so memory grows
with the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any, assert_never

import msgspec

from mull.neutral.blocks import (
    Block,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ThinkingKind,
    ToolCallBlock,
    Wire,
    joined,
)
from mull.neutral.events import (
    BlockEnded,
    Compressed,
    Corrected,
    Event,
    Failed,
    Finished,
    Healed,
    Hurried,
    Key,
    Nudged,
    OpaqueReceived,
    Progressed,
    Reclassified,
    Retrying,
    Started,
    StateChanged,
    Steered,
    TextDelta,
    ThinkingCarrier,
    ThinkingDelta,
    ToolCallDelta,
    ToolOutput,
    ToolRan,
    ToolStarted,
    UsageReported,
    Warned,
)
from mull.neutral.found import BlockFinder
from mull.neutral.messages import Message, Origin, Status
from mull.neutral.nesting import is_deep
from mull.neutral.usage import Usage

__all__ = ["Assembler", "assemble", "read_object", "tell"]

_PIECES = frozenset({TextDelta, ThinkingDelta, ToolCallDelta})
_arguments = msgspec.json.Decoder(dict[str, Any])
_encode = msgspec.json.Encoder().encode


class _Pieces:
    """Growing text: small chunks are joined from time to time, so that memory follows the text and
    not the number of deltas.
    """

    __slots__ = ("_recent", "_settled")

    def __init__(self) -> None:
        self._recent: list[str] = []
        self._settled: list[str] = []

    def append(self, piece: str) -> None:
        self._recent.append(piece)
        if len(self._recent) >= 1024:
            self._settle()

    def extend(self, pieces: list[str]) -> None:
        self._recent += pieces
        if len(self._recent) >= 1024:
            self._settle()

    def _settle(self) -> None:
        self._settled.append("".join(self._recent))
        self._recent.clear()

    def join(self) -> str:
        return "".join((*self._settled, *self._recent))


class _Text:
    __slots__ = ("pieces", "signature", "wire")

    def __init__(self) -> None:
        self.pieces = _Pieces()
        self.signature: str | None = None
        self.wire: Wire | None = None

    def add(self, event: TextDelta) -> None:
        self.pieces.append(event.text)
        if event.signature is not None:
            self.signature = event.signature
        if event.wire is not None:
            self.wire = joined(self.wire, event.wire)

    def add_all(self, events: list[TextDelta]) -> None:
        self.pieces.extend([event.text for event in events])
        for event in events:
            if event.signature is not None:
                self.signature = event.signature
            if event.wire is not None:
                self.wire = joined(self.wire, event.wire)

    def build(self) -> TextBlock:
        return TextBlock(self.pieces.join(), self.signature, self.wire)


class _Thinking:
    __slots__ = ("carriers", "kind", "pieces", "source_field", "wire")

    def __init__(self) -> None:
        self.pieces = _Pieces()
        self.source_field: str | None = None
        self.kind: ThinkingKind = "raw"
        self.carriers: dict[str, Any] = {}
        self.wire: Wire | None = None

    def add(self, event: ThinkingDelta) -> None:
        self.pieces.append(event.text)
        self.kind = event.kind
        if self.source_field is None:
            self.source_field = event.source_field

    def add_all(self, events: list[ThinkingDelta]) -> None:
        self.pieces.extend([event.text for event in events])
        self.kind = events[-1].kind
        if self.source_field is None:
            fields = (event.source_field for event in events)
            self.source_field = next((name for name in fields if name is not None), None)

    def carry(self, event: ThinkingCarrier) -> None:
        for name in ("signature", "encrypted", "redacted", "id"):
            value = getattr(event, name)
            if value is not None:
                self.carriers[name] = value
        self.wire = joined(self.wire, event.wire)
        if event.kind is not None:
            self.kind = event.kind
        if self.source_field is None:
            self.source_field = event.source_field

    def build(self) -> ThinkingBlock:
        return ThinkingBlock(
            self.pieces.join(),
            source_field=self.source_field,
            kind=self.kind,
            wire=self.wire,
            **self.carriers,
        )


class _ToolCall:
    __slots__ = ("id", "name", "pieces", "signature", "structured", "wire")

    def __init__(self) -> None:
        self.structured = False
        self.id: str | None = None
        self.name: str | None = None
        self.pieces = _Pieces()
        self.signature: str | None = None
        self.wire: Wire | None = None

    def add(self, event: ToolCallDelta) -> None:
        self.structured = self.structured or event.structured
        self.id = self.id or event.id
        self.name = self.name or event.name
        if event.arguments:
            self.pieces.append(event.arguments)
        if event.signature is not None:
            self.signature = event.signature
        if event.wire is not None:
            self.wire = joined(self.wire, event.wire)

    def add_all(self, events: list[ToolCallDelta]) -> None:
        for event in events:
            self.add(event)

    def build(self, call_id: str) -> ToolCallBlock | OpaqueBlock:
        """The call; without a name, and without a type of its own that says more, it is none."""
        text = self.pieces.join()
        held = self.wire.data if self.wire else {}
        if not self.name and "type" not in held:
            said = {"type": "tool_call", "id": call_id, "arguments": text}
            return OpaqueBlock({**held, **said}, broken=True)
        value: dict[str, Any] = {}
        kept: str | None = None
        if text:
            found = read_object(text)
            if found is None:
                kept = text
            else:
                value = found
                same = self.structured or _encode(value).decode() == text
                kept = None if same else text
        return ToolCallBlock(call_id, self.name or "", value, kept, self.signature, self.wire)


class _Opaque:
    __slots__ = ("broken", "data")

    def __init__(self) -> None:
        self.data: dict[str, Any] = {}
        self.broken = False

    def build(self) -> OpaqueBlock:
        return OpaqueBlock(self.data, broken=self.broken)


class Assembler(BlockFinder):
    """Folds events one at a time; `message()` may be called at any time."""

    CALL = _ToolCall
    ALONE = _Opaque

    def __init__(self, origin: Origin | None = None) -> None:
        super().__init__()
        self._origin = origin
        self._usage: Usage | None = None
        self._end: Finished | Failed | None = None
        self.warnings: list[Warned] = []

    def add_all(self, events: Iterable[Event]) -> None:
        """Process events. Most are one more chunk of the same block as the last one, and are taken
        together with it.
        """
        of: type | None = None
        key: Key = None
        piece: Any
        builder: Any = None
        run: list[Any] = []
        more = run.append
        for piece in events:
            kind = type(piece)
            if kind is of and piece.key == key and (kind is not ToolCallDelta or piece.id is None):
                more(piece)
                continue
            if run:
                builder.add_all(run)
                run.clear()
            self.add(piece)
            of = kind if kind in _PIECES and self._open is not None else None
            if of is not None:
                builder, key = self._found[self._open or 0], piece.key
        if run:
            builder.add_all(run)

    def add(self, event: Event) -> None:
        """Process one event."""
        match event:
            case TextDelta():
                text = self._find(_Text, event.key)
                text.add(event)
            case ThinkingDelta():
                self._find(_Thinking, event.key).add(event)
            case ThinkingCarrier():
                self._find(_Thinking, event.key).carry(event)
            case ToolCallDelta():
                self._find_call(event).add(event)
            case OpaqueReceived():
                opaque = self._find(_Opaque, event.key)
                opaque.data, opaque.broken = event.data, event.broken
            case BlockEnded():
                self._open = None
            case Reclassified():
                self._reclassify(event)
            case UsageReported():
                self._usage = event.usage
            case Warned():
                self.warnings.append(event)
            case Finished() | Failed():
                self._end = event
            case (
                (Started() | Retrying() | Healed())
                | (ToolStarted() | ToolOutput() | ToolRan())
                | (StateChanged() | Nudged() | Corrected() | Steered() | Hurried())
                | (Progressed() | Compressed())
            ):
                pass
            case _:
                assert_never(event)

    def blocks(self) -> tuple[Block, ...]:
        """The blocks so far, in wire order; a call without an id gets one."""
        taken = {b.id for b in self._found if isinstance(b, _ToolCall)}
        free = (name for n in count() if (name := f"call_{n}") not in taken)
        return tuple(
            builder.build(builder.id or next(free))
            if isinstance(builder, _ToolCall)
            else builder.build()
            for builder in self._found
        )

    def message(self) -> Message:
        """The message so far; without an end it is `interrupted`."""
        blocks = self.blocks()
        reason = self._end.stop_reason if isinstance(self._end, Finished) else None
        return Message(
            role="assistant",
            status=self._status(blocks),
            stop_reason=reason,
            origin=self._origin,
            blocks=blocks,
            usage=self._usage,
        )

    def _status(self, blocks: tuple[Block, ...]) -> Status:
        if self._end is None:
            return "interrupted"
        if self._end.status is not None:
            return self._end.status
        assert isinstance(self._end, Finished)
        answered = any(map(_is_answer, blocks))
        if self._end.stop_reason == "length":
            thought = any(isinstance(b, ThinkingBlock) for b in blocks)
            return "truncated_in_reasoning" if thought and not answered else "truncated"
        return "complete" if answered else "no_answer"

    def _reclassify(self, event: Reclassified) -> None:
        at = self._open if event.key is None else self._by_key.get((_Text, event.key))
        if at is None or not isinstance(text := self._found[at], _Text):
            return
        self._by_key = {name: place for name, place in self._by_key.items() if place != at}
        thinking = _Thinking()
        thinking.pieces, thinking.source_field = text.pieces, event.source_field
        self._found[at] = thinking
        self._open = None


def _is_answer(block: Block) -> bool:
    if isinstance(block, TextBlock):
        return bool(block.text.strip())
    return not isinstance(block, ThinkingBlock) and not (
        isinstance(block, OpaqueBlock) and block.broken
    )


def read_object(text: str) -> dict[str, Any] | None:
    """The JSON object that a model wrote as arguments; None if it wrote something else, or one that
    is nested too deeply.
    """
    try:
        data = text.encode()
        return None if is_deep(data) else _arguments.decode(data)
    except (msgspec.DecodeError, UnicodeError):
        return None


def assemble(events: Iterable[Event], origin: Origin | None = None) -> Message:
    """Fold all events of one answer into its message."""
    assembler = Assembler(origin)
    assembler.add_all(events)
    return assembler.message()


def tell(message: Message, keys: Iterable[str] | None = None) -> Iterator[Event]:
    """The events of a complete answer; `assemble` is the inverse.

    `keys` are those of its blocks. Blocks that only a request contains (media, tool results) are
    not part of an answer.
    """
    yield Started(model=message.origin.model if message.origin else None)
    named = keys or (f"block {number}" for number in count())
    for key, block in zip(named, message.blocks, strict=False):
        match block:
            case TextBlock():
                yield TextDelta(block.text, key, block.signature, block.wire)
            case ThinkingBlock():
                yield from _tell_thought(block, key)
            case ToolCallBlock():
                text = _encode(block.input).decode() if block.arguments is None else block.arguments
                yield ToolCallDelta(key, block.id, block.name, text, block.signature, block.wire)
            case OpaqueBlock():
                yield OpaqueReceived(block.data, key, block.broken)
        yield BlockEnded(key)
    if message.usage is not None:
        yield UsageReported(message.usage)
    yield _ending(message)


def _tell_thought(block: ThinkingBlock, key: str) -> Iterator[Event]:
    if block.id is not None:  # first: a wire may need it to start
        yield ThinkingCarrier(key, block.source_field, id=block.id, kind=block.kind)
    if block.redacted is None or block.thought:
        yield ThinkingDelta(block.thought, key, block.source_field, block.kind)
    carried = (block.signature, block.encrypted, block.redacted)
    if any(one is not None for one in (*carried, block.wire)):
        yield ThinkingCarrier(key, block.source_field, *carried, kind=block.kind, wire=block.wire)


def _ending(message: Message) -> Finished | Failed:
    if message.status in ("error", "interrupted"):
        return Failed("the answer broke off", "incomplete", message.status)
    return Finished(message.stop_reason)
