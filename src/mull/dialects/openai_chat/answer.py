"""An answer in the format of Chat Completions: as chunks, as one completion, or as an error.

Thinking is sent in one field beside the content, the one that the first of it came in or
`reasoning_content`: readers take a second field for a copy. Thinking that was in the content, in
tags or in a list, goes there too, because few clients look for it in the content. A signature goes
where GitHub Copilot puts it, and whatever else only its origin can read where OpenRouter puts it.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from mull.dialects.openai_chat import DIALECT
from mull.dialects.openai_chat.finish import STATUSES, write_stop_reason
from mull.dialects.openai_chat.places import (
    CONTENT_LIST,
    LISTS,
    TAGS,
    by_list,
    entries_in,
    entries_of,
)
from mull.dialects.openai_chat.usage import write_usage
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
)
from mull.neutral.blocks import (
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    as_keys,
    own_keys,
)
from mull.neutral.events import Event, Failed, TextDelta, ThinkingCarrier, ToolCallDelta
from mull.neutral.messages import Dialect, Message

__all__ = ["STATUSES", "Writer", "write_document", "write_error"]

_to_text = msgspec.json.Encoder().encode
_FIELD = "reasoning_content"
_OPAQUE = "reasoning_opaque"
_NO_FIELDS = frozenset({CONTENT_LIST, *LISTS, TAGS, "extra_content"})
_TAIL = b'},"finish_reason":null}]}\n\n'
_CALL_TAIL = b"}}]" + _TAIL
_DONE = b"data: [DONE]\n\n"


class Writer(AnswerWriter):
    """Writes chunks; the counts follow the finish reason in a separate chunk, then `[DONE]`."""

    DIALECT: ClassVar[Dialect] = DIALECT
    CALLS_APART: ClassVar[bool] = False

    def __init__(self, about: About, statuses: Statuses = STATUSES) -> None:
        super().__init__(about, statuses)
        self._calls = self._entries = 0
        self._head: dict[str, Any] = {}
        self._before = b""
        self._refused = False
        self._last: Block | None = None
        self._field = about.reasoning_field

    def start(self) -> bytes:
        self._head = _about("chat.completion.chunk", self.id, self.model, self.about.created)
        whole = {**self._head, "choices": [{"index": 0, "delta": 0}]}
        self._before = frame(whole).removesuffix(b"0}]}\n\n") + b"{"
        return self._delta({"role": "assistant", "content": ""})

    def open(self, block: Block, event: Event) -> bytes:
        before, self._last = self._last, block
        match block:
            case Text():
                name = "refusal" if block.kept.get("refusal") else "content"
                self._refused = self._refused or name == "refusal"
                block.head = b'%b"%b":' % (self._before, name.encode())
                assert isinstance(event, TextDelta)
                marked = event.wire is not None or event.signature is not None
                out = self.piece(block, event.text) if event.text else b""
                return out + (self.mark(block, event) if marked else b"")
            case Call():
                assert isinstance(event, ToolCallDelta)
                return self._open_call_chunk(block, event.arguments)
            case Thought():
                text = getattr(event, "text", None)
                if text is None:
                    return b""
                if isinstance(before, Thought) and before.is_stopped and block.kind == "summary":
                    text = f"\n\n{text}"
                return self.piece(block, text)
        return b""

    def piece(self, block: Any, text: str) -> bytes:
        if type(block) is Thought and not block.head:
            self._field = self._field or _own_field(block.field, own=self.is_own)
            block.head = b'%b"%b":' % (self._before, self._field.encode())
        if type(block) is Call:
            block.is_bare = False
            return b"%b%b%b" % (block.head, encode(text), _CALL_TAIL)
        return b"%b%b%b" % (block.head, encode(text), _TAIL)

    def stop(self, block: Block) -> bytes:
        return self.piece(block, "{}") if type(block) is Call and block.is_bare else b""

    def opaque(self, block: Opaque, data: dict[str, Any]) -> bytes:
        self._last = block
        return self._delta({"content": [data]} if "type" in data else data)

    def carry(self, block: Thought, event: ThinkingCarrier) -> bytes:
        out = b""
        if event.signature:
            out += self._delta({_OPAQUE: event.signature})
        details = entries_in(self.own(event.wire))
        if event.wire and not details:
            self.leave_out("keys or members of a thought specific to another dialect")
        details = [*details, *_sealed(event.encrypted, event.redacted, event.id, self._entries)]
        self._entries += len(details)
        return out + (self._delta(by_list(details)) if details else b"")

    def mark(self, block: Text | Call, event: TextDelta | ToolCallDelta) -> bytes:
        if type(block) is Call:
            keys = self._call_keys(event)
            return self._delta({"tool_calls": [{"index": block.at, **keys}]}) if keys else b""
        if block.is_foreign or not self.is_own:
            self.leave_out("keys or a signature specific to another dialect")
            return b""
        keys = {name: value for name, value in self.own(event.wire).items() if name != "refusal"}
        return self._delta({"content": "", **keys}) if keys else b""

    def finish(self, reason: str | None) -> bytes:
        word = write_stop_reason(reason, refused=self._refused)
        out = frame({**self._head, "choices": [{"index": 0, "delta": {}, "finish_reason": word}]})
        return out + self._counts() + _DONE

    def fail(self, failed: Failed) -> bytes:
        counted = self.usage is not None and self.about.usage
        begun = self._begin() if counted else b""
        return begun + self._counts() + frame(_error(failed, self.status_of(failed)))

    def _counts(self) -> bytes:
        if self.usage is None or not self.about.usage:
            return b""
        return frame({**self._head, "choices": [], "usage": write_usage(self.usage)})

    def _open_call_chunk(self, block: Call, text: str) -> bytes:
        block.at, self._calls, block.is_bare = self._calls, self._calls + 1, not text
        block.head = b'%b"tool_calls":[{"index":%d,"function":{"arguments":' % (
            self._before,
            block.at,
        )
        call = _call(block.id or "", block.name or "", text)
        more = block.kept | _signed(block.signature)
        if block.is_foreign:
            self._leave_call_keys()
        call["function"] |= as_keys(more.pop("function", None))
        return self._delta({"tool_calls": [{"index": block.at, **call, **more}]})

    def _call_keys(self, event: TextDelta | ToolCallDelta) -> dict[str, Any]:
        """The keys beside a call; Google's signature has a place in this dialect too."""
        keys = self.own(event.wire)
        if event.wire and not keys:
            self._leave_call_keys()
        return keys | _signed(event.signature)

    def _leave_call_keys(self) -> None:
        self.leave_out("keys of a call specific to another dialect")

    def _delta(self, delta: dict[str, Any]) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        return frame({**self._head, "choices": [choice]})


def write_document(message: Message, about: About) -> bytes:
    """The answer as one completion. The order of thinking, text and calls is lost here."""
    own = about.source in (None, DIALECT)
    said: dict[str, Any] = {"role": "assistant", "content": None}
    details: list[dict[str, Any]] = []
    field = about.reasoning_field
    for block in message.blocks:
        match block:
            case TextBlock():
                kept = dict(own_keys(block.wire, DIALECT))
                name = "refusal" if kept.pop("refusal", False) else "content"
                _say(said, name, block.text)
                said |= kept
            case ThinkingBlock():
                field = field or _own_field(block.source_field, own=own)
                between = "\n\n" if said.get(field) and block.kind == "summary" else ""
                said[field] = said.get(field, "") + between + block.thought
                if block.signature:
                    said[_OPAQUE] = block.signature
                details += entries_of(block)
                details += _sealed(block.encrypted, block.redacted, block.id, len(details))
            case ToolCallBlock():
                said.setdefault("tool_calls", []).append(_whole_call(block))
            case OpaqueBlock(broken=False) if own:
                _keep(said, block.data)
    said |= by_list(details)
    reason = write_stop_reason(message.stop_reason, refused="refusal" in said)
    whole = {
        **_about("chat.completion", about.id, about.model, about.created),
        "choices": [{"index": 0, "message": said, "finish_reason": reason}],
    }
    if message.usage is not None:
        whole["usage"] = write_usage(message.usage)
    return encode(whole)


def _say(said: dict[str, Any], name: str, text: str) -> None:
    held = said.get(name)
    if isinstance(held, list):
        held.append({"type": "text", "text": text})
    else:
        said[name] = (held or "") + text


def _keep(said: dict[str, Any], data: dict[str, Any]) -> None:
    """A member of a content list, or keys of the message."""
    if "type" not in data:
        said |= data
        return
    content = said["content"]
    if not isinstance(content, list):
        content = [{"type": "text", "text": content}] if content else []
    said["content"] = [*content, data]


def write_error(failed: Failed, status: int) -> bytes:
    """A rejection, or a failure before there was an answer."""
    return encode(_error(failed, status))


def _about(kind: str, id_: str | None, model: str | None, created: int) -> dict[str, Any]:
    return {"id": id_ or "chatcmpl-0", "object": kind, "created": created, "model": model or ""}


def _own_field(field: str | None, *, own: bool) -> str:
    if not own or field is None or field in _NO_FIELDS or field.startswith(TAGS):
        return _FIELD
    return field


def _call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def _whole_call(block: ToolCallBlock) -> dict[str, Any]:
    text = _to_text(block.input).decode() if block.arguments is None else block.arguments
    call = _call(block.id, block.name, text)
    kept = dict(own_keys(block.wire, DIALECT))
    call["function"] |= as_keys(kept.pop("function", None))
    return {**call, **kept, **_signed(block.signature)}


def _signed(signature: str | None) -> dict[str, Any]:
    return {"extra_content": {"google": {"thought_signature": signature}}} if signature else {}


def _sealed(
    encrypted: str | None, redacted: str | None, id_: str | None, index: int
) -> list[dict[str, Any]]:
    """What only its origin can read, as entries of `reasoning_details`."""
    named = {"id": id_} if id_ else {}
    return [
        {"type": "reasoning.encrypted", "data": data, **named, "index": index + n}
        for n, data in enumerate(one for one in (encrypted, redacted) if one is not None)
    ]


def _error(failed: Failed, status: int) -> dict[str, Any]:
    code = STATUSES.word(status, failed.code)
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": failed.text, "type": kind, "param": None, "code": code}}
