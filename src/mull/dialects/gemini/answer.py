"""An answer in the format of generateContent: as chunks, as one response, or as an error.

A call is sent when its arguments are complete, and always with an id. A signed part stands alone,
so the first chunk of thinking waits for the event after it, which may contain its signature; if
none has arrived with it, `flush` sends the thinking, and its signature follows without text.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, ClassVar

from mull.dialects.gemini import DIALECT
from mull.dialects.gemini.outcome import STATUSES, write_finish, write_usage
from mull.dialects.gemini.shapes import call_part, text_part, thought_part
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
    frame,
    object_of,
)
from mull.neutral.blocks import OpaqueBlock, TextBlock, ThinkingBlock, ToolCallBlock, own_keys
from mull.neutral.events import (
    Event,
    Failed,
    TextDelta,
    ThinkingCarrier,
    ThinkingDelta,
    ToolCallDelta,
)
from mull.neutral.messages import Dialect, Message
from mull.neutral.usage import Usage

__all__ = ["STATUSES", "Writer", "write_document", "write_error"]

Part = dict[str, Any]


class Writer(AnswerWriter):
    """Writes chunks, each a response with one part; the last has the finish reason and the counts.

    Without `alt=sse` in its URL, this API streams the same chunks as one JSON list.
    """

    DIALECT: ClassVar[Dialect] = DIALECT

    def __init__(self, about: About, statuses: Statuses = STATUSES) -> None:
        super().__init__(about, statuses)
        self._about: Part = {}
        self._before = self._text_tail = self._thought_tail = b""
        self._held: tuple[Thought, str] | None = None
        self._listed = False

    def start(self) -> bytes:
        self._about = _about(self.id, self.model)
        whole = self._frame(_response([{"text": 0}], self._about))
        self._before, tail = whole.split(b"0}", 1)
        self._text_tail, self._thought_tail = b"}" + tail, b',"thought":true}' + tail
        return b""

    def feed(self, event: Event) -> bytes:
        if self._held is None and not self.about.as_list:
            return super().feed(event)
        return self._listed_as(self._feed(event))

    def flush(self) -> bytes:
        if self._held is None or not self._held[1]:
            return b""
        held, self._held = self._held, None
        return self._listed_as(self.piece(*held))

    def _listed_as(self, out: bytes) -> bytes:
        """The bytes as the next chunks of the list, if it is one."""
        if not self.about.as_list or not out:
            return out
        begun, self._listed = self._listed, True
        out = out if begun else b"[" + out.removeprefix(b",")
        return out + b"]" if self._ended else out

    def _frame(self, value: Part) -> bytes:
        return b",\n%b" % encode(value) if self.about.as_list else frame(value)

    def _feed(self, event: Event) -> bytes:
        if self._held is None:
            return super().feed(event)
        (block, text), self._held = self._held, None
        if type(event) is ThinkingCarrier and event.key == block.key and self._takes(event):
            return self._part(self._thought_part(text, event))
        if not text and type(event) is ThinkingDelta and event.key == block.key:
            return super().feed(event)
        return self.piece(block, text) + super().feed(event)

    def open(self, block: Block, event: Event) -> bytes:
        match block:
            case Thought():
                if isinstance(event, ThinkingCarrier):
                    return b""
                self._held = block, getattr(event, "text", "")
                return b""
            case Text():
                assert isinstance(event, TextDelta)
                if event.signature is None and event.wire is None:
                    return self.piece(block, event.text) if event.text else b""
                return self._text_part(event.text, event)
            case Call():
                assert isinstance(event, ToolCallDelta)
                block.pieces.append(event.arguments)
        return b""

    def piece(self, block: Any, text: str) -> bytes:
        if type(block) is Call:
            block.pieces.append(text)
            return b""
        tail = self._thought_tail if type(block) is Thought else self._text_tail
        return b"%b%b%b" % (self._before, encode(text), tail)

    def stop(self, block: Block) -> bytes:
        if type(block) is not Call:
            return b""
        text = "".join(block.pieces)
        arguments = object_of(text)
        if arguments is None:
            self.leave_out("arguments of a call that are not a JSON object")
        return self._part(self._call_part(block, arguments or {}))

    def opaque(self, block: Opaque, data: dict[str, Any]) -> bytes:
        return self._part(data)

    def carry(self, block: Thought, event: ThinkingCarrier) -> bytes:
        """A signature whose thinking was already sent: it goes on a part without text."""
        if event.encrypted is not None or event.redacted is not None:
            self.leave_out("a carrier that this API has no field for")
        return self._part(self._thought_part("", event)) if self._takes(event) else b""

    def mark(self, block: Text | Call, event: TextDelta | ToolCallDelta) -> bytes:
        return b"" if type(block) is Call else self._text_part("", event)

    def finish(self, reason: str | None) -> bytes:
        last = _response([{"text": ""}], self._about, write_finish(reason))
        return self._frame(_ended(last, self.usage, self.rest))

    def fail(self, failed: Failed) -> bytes:
        for _ in self._calling:
            self.leave_out("a call that broke off")
        counts = {} if self.usage is None else {"usageMetadata": write_usage(self.usage)}
        return self._frame({**_error(failed, self.status_of(failed)), **counts})

    def _takes(self, event: ThinkingCarrier) -> bool:
        return bool(self._signature(event.signature) or self.own(event.wire))

    def _signature(self, given: str | None) -> str | None:
        """The signature, if this wire can hold it: clients decode it."""
        if given and not self.is_own and not _is_base64(given):
            self.leave_out("a signature that is not base64")
            return None
        return given

    def _part(self, part: Part) -> bytes:
        return self._frame(_response([part], self._about))

    def _text_part(self, text: str, event: TextDelta | ToolCallDelta) -> bytes:
        kept = self.own(event.wire)
        if event.wire and not kept:
            self.leave_out("keys of a text specific to another dialect")
            if not event.signature and not text:
                return b""
        signature = self._signature(event.signature)
        return self._part(text_part(text, kept, signature))

    def _thought_part(self, text: str, event: ThinkingCarrier) -> Part:
        return thought_part(text, self.own(event.wire), event.signature)

    def _call_part(self, block: Call, arguments: Part) -> Part:
        if block.is_foreign:
            self.leave_out("keys of a call specific to another dialect")
        kept = {**block.kept, "id": self.call_id(block)}
        return call_part(block.name or "", arguments, kept, self._signature(block.signature))


def write_document(message: Message, about: About) -> bytes:
    """The answer as one response."""
    own = about.source in (None, DIALECT)
    parts = [part for block in message.blocks if (part := _part(block, own=own)) is not None]
    known = _about(about.id, about.model)
    whole = _response(parts, known, write_finish(message.stop_reason))
    return encode(_ended(whole, message.usage, own_keys(about.rest, DIALECT)))


def write_error(failed: Failed, status: int) -> bytes:
    """A rejection, or a failure before there was an answer."""
    return encode(_error(failed, status))


def _about(id_: str | None, model: str | None) -> Part:
    given = {"modelVersion": model, "responseId": id_}
    return {name: value for name, value in given.items() if value is not None}


def _response(parts: list[Part], about: Part, reason: str | None = None) -> Part:
    candidate: Part = {"content": {"role": "model", "parts": parts}, "index": 0}
    if reason is not None:
        candidate["finishReason"] = reason
    return {"candidates": [candidate], **about}


def _ended(last: Part, usage: Usage | None, rest: Mapping[str, Part]) -> Part:
    """The last chunk with its counts, and with what else the provider said there."""
    counts = {**({} if usage is None else write_usage(usage)), **rest.get("usage", {})}
    last["candidates"][0] |= rest.get("candidate", {})
    return {**last, **({"usageMetadata": counts} if counts else {}), **rest.get("response", {})}


def _part(block: Any, *, own: bool) -> Part | None:
    signature = getattr(block, "signature", None)
    if signature and not own and not _is_base64(signature):
        signature = None
    match block:
        case TextBlock():
            return text_part(block.text, own_keys(block.wire, DIALECT), signature)
        case ThinkingBlock():
            return thought_part(block.thought, own_keys(block.wire, DIALECT), signature)
        case ToolCallBlock():
            kept = {**own_keys(block.wire, DIALECT), "id": block.id}
            return call_part(block.name, block.input, kept, signature)
        case OpaqueBlock(broken=False) if own:
            return block.data
    return None


def _is_base64(text: str) -> bool:
    try:
        return b64encode(b64decode(text, validate=True)).decode() == text
    except (binascii.Error, ValueError):
        return False


def _error(failed: Failed, status: int) -> Part:
    word = STATUSES.word(status, failed.code)
    return {"error": {"code": status, "message": failed.text, "status": word}}
