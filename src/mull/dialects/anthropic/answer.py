"""An answer in the format of the Messages API: as a stream, as one message, or as an error."""

from __future__ import annotations

from typing import Any, ClassVar

from mull.dialects.anthropic import DIALECT
from mull.dialects.anthropic.endings import STATUSES, write_stop_reason
from mull.dialects.anthropic.parts import REDACTED, THINKING
from mull.dialects.anthropic.usage import write_usage
from mull.dialects.tables import Statuses
from mull.dialects.writer import (
    About,
    AnswerWriter,
    Block,
    Call,
    Opaque,
    Text,
    Thought,
    encode,
    event_frame,
)
from mull.neutral.blocks import OpaqueBlock, TextBlock, ThinkingBlock, ToolCallBlock, own_keys
from mull.neutral.events import Event, Failed, TextDelta, ThinkingCarrier, ToolCallDelta
from mull.neutral.messages import Dialect, Message
from mull.neutral.usage import Usage

__all__ = ["NO_THREADS", "STATUSES", "Writer", "write_document", "write_error"]

NO_THREADS = "thread_unsupported_request"
"""The code by which clients learn to send the full conversation instead of a thread's new part."""
_DELTA = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":%b'
_TEXT = b'{"type":"text_delta","text":'
_THOUGHT = b'{"type":"thinking_delta","thinking":'
_INPUT = b'{"type":"input_json_delta","partial_json":'
_TAIL = b"}}\n\n"
_OF_THE_END = ("stop_sequence", "stop_details", "container")
"""Keys of a message that a stream has in its last delta; others are beside it."""


class Writer(AnswerWriter):
    """Writes the events of a Messages stream. A signature that arrives after its block has stopped
    is still sent: its index says which block it belongs to.
    """

    DIALECT: ClassVar[Dialect] = DIALECT
    ALIVE: ClassVar[bytes] = event_frame({"type": "ping"})

    def __init__(self, about: About, statuses: Statuses = STATUSES) -> None:
        super().__init__(about, statuses)
        self._count = 0
        self._told: dict[int, dict[str, Any]] = {}

    def start(self) -> bytes:
        # Proxies and clients expect numbers here: unknown ones are 0, and sent at the end.
        counts = {"input_tokens": 0, "output_tokens": 0, **write_usage(self.usage or Usage())}
        message = {**_message(self.id, self.model), "content": [], "stop_reason": None}
        return event_frame({"type": "message_start", "message": {**message, "usage": counts}})

    def open(self, block: Block, event: Event) -> bytes:
        block.at, self._count = self._count, self._count + 1
        match block:
            case Text():
                block.head = _DELTA % (block.at, _TEXT)
                start: dict[str, Any] = {"type": "text", "text": ""}
                start = self._with_kept(block, start)
                if block.is_foreign or (block.signature and not self.is_own):
                    self.leave_out("keys or a signature specific to another dialect")
                return self._begin_block(block, start) + self._first(block, event)
            case Call():
                block.head = _DELTA % (block.at, _INPUT)
                call: dict[str, Any] = {"type": "tool_use", "id": block.id, "name": block.name}
                call["input"] = {}
                call = self._with_kept(block, call)
                if block.is_foreign or (block.signature and not self.is_own):
                    self.leave_out("keys or a signature specific to another dialect")
                return self._begin_block(block, call) + self._first(block, event)
            case Thought() if isinstance(event, ThinkingCarrier) and event.redacted is not None:
                return self._begin_block(block, {"type": REDACTED, "data": event.redacted})
        block.head = _DELTA % (block.at, _THOUGHT)
        start = {"type": THINKING, "thinking": "", "signature": ""}
        return self._begin_block(block, start) + self._first(block, event)

    def piece(self, block: Any, text: str) -> bytes:
        return b"%b%b%b" % (block.head, encode(text), _TAIL)

    def stop(self, block: Block) -> bytes:
        return event_frame({"type": "content_block_stop", "index": block.at})

    def opaque(self, block: Opaque, data: dict[str, Any]) -> bytes:
        block.at, self._count = self._count, self._count + 1
        return self._begin_block(block, data) + self.stop(block)

    def carry(self, block: Thought, event: ThinkingCarrier) -> bytes:
        out = b""
        if event.signature:
            out += _delta(block.at, {"type": "signature_delta", "signature": event.signature})
        if own := self.own(event.wire):
            out += self._rest(block, own)
        elif event.encrypted is not None or event.wire:
            self.leave_out("a carrier that this API has no field for")
        return out

    def mark(self, block: Text | Call, event: TextDelta | ToolCallDelta) -> bytes:
        if own := self.own(event.wire):
            return self._rest(block, own)
        self.leave_out("keys or a signature specific to another dialect")
        return b""

    def finish(self, reason: str | None) -> bytes:
        return self._counts(write_stop_reason(reason)) + event_frame({"type": "message_stop"})

    def fail(self, failed: Failed) -> bytes:
        counts = b"" if self.usage is None else self._begin() + self._counts(None)
        return counts + event_frame(_error(failed, self.status_of(failed)))

    def _counts(self, reason: str | None) -> bytes:
        rest = dict(self.rest)
        counts = {"output_tokens": 0, **write_usage(self.usage or Usage()), **rest.pop("usage", {})}
        ending = {"stop_reason": reason, "stop_sequence": None}
        ending |= {name: rest.pop(name) for name in _OF_THE_END if name in rest}
        return event_frame({"type": "message_delta", "delta": ending, "usage": counts, **rest})

    def _begin_block(self, block: Block, start: dict[str, Any]) -> bytes:
        begun = {"type": "content_block_start", "index": block.at, "content_block": start}
        return event_frame(begun)

    def _first(self, block: Block, event: Event) -> bytes:
        text = event.arguments if isinstance(event, ToolCallDelta) else getattr(event, "text", "")
        return self.piece(block, text) if text else b""

    def _with_kept(self, block: Text | Call, start: dict[str, Any]) -> dict[str, Any]:
        self._told[block.at] = dict(block.kept)
        return {**block.kept, **start}

    def _rest(self, block: Block, keys: dict[str, Any]) -> bytes:
        """Keys that came after the block started; readers merge unknown deltas into the block."""
        told = self._told.setdefault(block.at, {})
        new = {name: value for name, value in keys.items() if told.get(name) != value}
        cited = new.pop("citations", None) or []
        out = b"".join(
            _delta(block.at, {"type": "citations_delta", "citation": one})
            for one in cited[len(told.get("citations") or ()) :]
        )
        told |= keys
        return out + (_delta(block.at, {**new, "type": "block_delta"}) if new else b"")


def write_document(message: Message, about: About) -> bytes:
    """The answer as one message."""
    own = about.source in (None, DIALECT)
    rest = dict(own_keys(about.rest, DIALECT))
    counts = rest.pop("usage", {})
    whole = {
        **_message(about.id, about.model),
        **rest,
        "content": [written for block in message.blocks if (written := _block(block, own))],
        "stop_reason": write_stop_reason(message.stop_reason),
        "usage": {
            "input_tokens": 0,
            "output_tokens": 0,
            **write_usage(message.usage or Usage()),
            **counts,
        },
    }
    return encode(whole)


def write_error(failed: Failed, status: int) -> bytes:
    """A rejection, or a failure before there was an answer."""
    return encode(_error(failed, status))


def _message(id_: str | None, model: str | None) -> dict[str, Any]:
    return {
        "id": id_ or "msg_0",
        "type": "message",
        "role": "assistant",
        "model": model or "",
        "stop_sequence": None,
    }


def _block(block: Any, own: bool) -> dict[str, Any] | None:
    match block:
        case TextBlock():
            return {**own_keys(block.wire, DIALECT), "type": "text", "text": block.text}
        case ThinkingBlock() if block.redacted is not None:
            return {"type": REDACTED, "data": block.redacted}
        case ThinkingBlock():
            thought = {"type": THINKING, "thinking": block.thought}
            signature = block.signature or ""
            return {**own_keys(block.wire, DIALECT), **thought, "signature": signature}
        case ToolCallBlock():
            given: Any = block.input
            if not given and block.arguments and block.arguments.strip() != "{}":
                given = block.arguments  # not an object: the client shall see what the model wrote
            call = {"type": "tool_use", "id": block.id, "name": block.name, "input": given}
            return {**own_keys(block.wire, DIALECT), **call}
        case OpaqueBlock(broken=False) if own:
            return block.data
    return None


def _error(failed: Failed, status: int) -> dict[str, Any]:
    error: dict[str, Any] = {"type": STATUSES.word(status, failed.code), "message": failed.text}
    if failed.code == NO_THREADS:
        error["details"] = {"error_code": NO_THREADS}
    return {"type": "error", "error": error}


def _delta(index: int, delta: dict[str, Any]) -> bytes:
    return event_frame({"type": "content_block_delta", "index": index, "delta": delta})
