"""An answer in the format of Converse: as a stream, as one response, or as an error."""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import Any, ClassVar

from mull.dialects.bedrock_converse import DIALECT
from mull.dialects.bedrock_converse.messages import reasoning_block, text_block
from mull.dialects.bedrock_converse.words import (
    IN_STREAM,
    REASONING,
    REDACTED,
    STATUSES,
    write_stop_reason,
    write_usage,
)
from mull.dialects.eventstream import message as binary
from mull.dialects.eventstream import stamp
from mull.dialects.tables import Statuses
from mull.dialects.writer import About, AnswerWriter, Block, Call, Opaque, Text, Thought, encode
from mull.neutral.blocks import OpaqueBlock, TextBlock, ThinkingBlock, ToolCallBlock, own_keys
from mull.neutral.events import Event, Failed, TextDelta, ThinkingCarrier, ToolCallDelta
from mull.neutral.messages import Dialect, Message

__all__ = ["STATUSES", "Writer", "write_document", "write_error"]

_NAMES = (
    "messageStart",
    "contentBlockStart",
    "contentBlockDelta",
    "contentBlockStop",
    "messageStop",
    "metadata",
    "ping",
)
_STAMPS = {name: stamp(name) for name in _NAMES}
_DELTA = _STAMPS["contentBlockDelta"]
_PIECE = b'{"contentBlockIndex":%d,"delta":%b'


class Writer(AnswerWriter):
    """Writes the messages of a Converse stream. Text and reasoning have no start on this wire."""

    DIALECT: ClassVar[Dialect] = DIALECT
    MEDIA_TYPE: ClassVar[str] = "application/vnd.amazon.eventstream"
    ALIVE: ClassVar[bytes] = binary(_STAMPS["ping"], b"{}")

    def __init__(self, about: About, statuses: Statuses = STATUSES) -> None:
        super().__init__(about, statuses)
        self._count = 0
        self._cited: dict[int, int] = {}

    def start(self) -> bytes:
        return _event("messageStart", {"role": "assistant"})

    def open(self, block: Block, event: Event) -> bytes:
        block.at, self._count = self._count, self._count + 1
        match block:
            case Call():
                block.head = _PIECE % (block.at, b'{"toolUse":{"input":')
                call: dict[str, Any] = {"toolUseId": block.id, "name": block.name}
                call = {**block.kept, **call}
                if block.is_foreign or (block.signature and not self.is_own):
                    self.leave_out("keys or a signature specific to another dialect")
                begun = {"start": {"toolUse": call}, "contentBlockIndex": block.at}
                out = _event("contentBlockStart", begun)
                said = event.arguments if isinstance(event, ToolCallDelta) else ""
                return out + (self.piece(block, said) if said else b"")
            case Text():
                block.head = _PIECE % (block.at, b'{"text":')
                said = event.text if isinstance(event, TextDelta) else ""
                out = self.piece(block, said) if said else b""
                return out + (self._mark(block, block.kept) if self._is_marked(block) else b"")
        block.head = _PIECE % (block.at, b'{"reasoningContent":{"text":')
        if isinstance(event, ThinkingCarrier) and event.redacted is not None:
            return b""  # `carry` writes it
        return self.piece(block, getattr(event, "text", ""))

    def piece(self, block: Any, text: str) -> bytes:
        tail = b"}}" if type(block) is Text else b"}}}"
        return binary(_DELTA, b"%b%b%b" % (block.head, encode(text), tail))

    def stop(self, block: Block) -> bytes:
        return _event("contentBlockStop", {"contentBlockIndex": block.at})

    def opaque(self, block: Opaque, data: dict[str, Any]) -> bytes:
        block.at, self._count = self._count, self._count + 1
        begun = {"start": data, "contentBlockIndex": block.at}
        return _event("contentBlockStart", begun) + self.stop(block)

    def carry(self, block: Thought, event: ThinkingCarrier) -> bytes:
        out = b""
        if event.signature:
            out += _delta(block.at, {REASONING: {"signature": event.signature}})
        if event.redacted is not None and _is_data(event.redacted):
            out += _delta(block.at, {REASONING: {REDACTED: event.redacted}})
        elif event.redacted is not None:
            self.leave_out("redacted thinking that is not base64")
        if own := self.own(event.wire):
            out += _delta(block.at, {REASONING: own})
        elif event.encrypted is not None or event.wire:
            self.leave_out("a carrier that this API has no field for")
        return out

    def mark(self, block: Text | Call, event: TextDelta | ToolCallDelta) -> bytes:
        if isinstance(block, Text) and (own := self.own(event.wire)):
            return self._mark(block, own)
        self.leave_out("keys or a signature specific to another dialect")
        return b""

    def finish(self, reason: str | None) -> bytes:
        ended = _event("messageStop", {"stopReason": write_stop_reason(reason)})
        return ended + self._counts()

    def fail(self, failed: Failed) -> bytes:
        counts = b"" if self.usage is None else self._begin() + self._counts()
        word = IN_STREAM.word(self.status_of(failed), failed.code)
        name = word[:1].lower() + word[1:]
        return counts + binary(stamp(name, "exception"), encode({"message": failed.text}))

    def _counts(self) -> bytes:
        return _event("metadata", {"usage": write_usage(self.usage), "metrics": {"latencyMs": 0}})

    def _is_marked(self, block: Text) -> bool:
        if block.is_foreign or (block.signature and not self.is_own):
            self.leave_out("keys or a signature specific to another dialect")
        return bool(block.kept)

    def _mark(self, block: Text, kept: dict[str, Any]) -> bytes:
        """The citations of a text, each once: an event contains all that is known so far."""
        cited = kept.get("citations") or []
        if kept.keys() - {"citations"}:
            self.leave_out("keys of a text that a stream has no field for")
        told = self._cited.get(block.at, 0)
        self._cited[block.at] = max(told, len(cited))
        return b"".join(_delta(block.at, {"citation": one}) for one in cited[told:])


def write_document(message: Message, about: About) -> bytes:
    """The answer as one response."""
    own = about.source in (None, DIALECT)
    content = [written for block in message.blocks if (written := _block(block, own))]
    whole = {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": write_stop_reason(message.stop_reason),
        "usage": write_usage(message.usage),
        "metrics": {"latencyMs": 0},
    }
    return encode(whole)


def write_error(failed: Failed, status: int) -> bytes:
    """A rejection, or a failure before there was an answer."""
    return encode({"code": STATUSES.word(status, failed.code), "message": failed.text})


def _block(block: Any, own: bool) -> dict[str, Any] | None:
    match block:
        case TextBlock():
            return text_block(block)
        case ThinkingBlock():
            if block.redacted is not None and not _is_data(block.redacted):
                return None
            return reasoning_block(block)
        case ToolCallBlock():
            given: Any = block.input
            if not given and block.arguments and block.arguments.strip() != "{}":
                given = block.arguments  # not an object: the client shall see what the model wrote
            call = {"toolUseId": block.id, "name": block.name, "input": given}
            return {"toolUse": {**own_keys(block.wire, DIALECT), **call}}
        case OpaqueBlock(broken=False) if own:
            return block.data
    return None


def _is_data(text: str) -> bool:
    try:
        b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _event(name: str, value: dict[str, Any]) -> bytes:
    return binary(_STAMPS[name], encode(value))


def _delta(index: int, delta: dict[str, Any]) -> bytes:
    return _event("contentBlockDelta", {"contentBlockIndex": index, "delta": delta})
