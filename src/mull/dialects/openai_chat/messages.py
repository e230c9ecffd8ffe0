"""The message list of a request.

Each message is encoded from itself and what precedes it, never from what follows, so that a longer
history starts with the exact bytes of a shorter one and the endpoint's cache stays valid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType
from typing import Any, assert_never

import msgspec

from mull.dialects.extras import Extras, lost_note, written_with
from mull.dialects.openai_chat import DIALECT
from mull.dialects.openai_chat.places import IN_CONTENT, TAGS, members_of
from mull.dialects.openai_chat.reasoning import ReasoningFields, ReasoningRule
from mull.neutral.blocks import (
    Block,
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    as_keys,
    own_keys,
)
from mull.neutral.messages import Message
from mull.neutral.request import Note

__all__ = ["MessageList", "write_media"]

_encode = msgspec.json.Encoder().encode
_BRIDGE = "I have the results."
_SOUNDS = {"x-wav": "wav", "mpeg": "mp3", "mp4": "m4a"}
_LEFT_OUT = {
    "media": (
        "media",
        "{n} attachment{s} not sent: this API accepts URLs only of images and videos, and other "
        "files only as data",
    ),
    "opaque": ("history", "{n} part{s} of a kind that this API does not accept back not sent"),
    "empty": ("history", "{n} empty answer{s} not sent"),
}


class MessageList:
    """Writes messages in order; `notes` report what had to be left out."""

    def __init__(self, rule: ReasoningRule) -> None:
        self._rule = rule
        self._compat = rule.compat
        self.messages: list[dict[str, Any]] = []
        self._left_out: Counter[str] = Counter()
        self._bridged = 0
        self._unnamed: list[str] = []
        self._lost: list[str] = []
        self._calls = 0

    def add_system(self, text: str) -> None:
        """The prompt, or an instruction within the conversation. If templates accept only one
        system message, at the beginning, those there are joined.
        """
        role, last = self._compat.system_role, self.messages[-1] if self.messages else None
        if last is not None and self._compat.system_inside == "user":
            if last["role"] == role and len(self.messages) == 1:
                last["content"] += f"\n\n{text}"
                return
            role = "user"
        self.messages.append({"role": role, "content": text})

    def add(self, message: Message) -> None:
        """Write one message, or several if it contains tool results."""
        results: Sequence[ToolResultBlock] = ()
        shown: list[dict[str, Any]] = []
        if ToolResultBlock in map(type, message.blocks):
            results = [block for block in message.blocks if isinstance(block, ToolResultBlock)]
            shown = [part for result in results for part in self._add_result(result)]
        if message.role == "assistant":
            self._add_assistant(message)
        elif message.role == "system":
            self._add_instruction(message)
        elif message.role == "user" and (len(results) < len(message.blocks) or not results):
            keys = Extras(DIALECT, message).keys
            self._add_user(self._content(message.blocks, shown), keys)
        elif shown:
            self._add_user(shown)

    def _add_instruction(self, message: Message) -> None:
        """Write a system message; one with anything beside its text is not joined with others."""
        keys, beside = Extras(DIALECT, message).keys, any(map(_beside, message.blocks))
        if not keys and not beside:
            self.add_system("\n\n".join(b.text for b in message.blocks if isinstance(b, TextBlock)))
            return
        inside = bool(self.messages) and self._compat.system_inside == "user"
        role = "user" if inside else self._compat.system_role
        content = self._content(message.blocks)
        self.messages.append({"role": role, "content": content, **keys})

    def _add_user(
        self,
        content: str | list[dict[str, Any]],
        keys: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Write what a user says; an interrupted turn or steering may leave results before it."""
        follows_results = bool(self.messages) and self.messages[-1]["role"] == "tool"
        if follows_results and self._compat.assistant_after_results:
            self.messages.append({"role": "assistant", "content": _BRIDGE})
            self._bridged += 1
        self.messages.append({"role": "user", "content": content, **keys})

    def notes(self) -> list[Note]:
        """What the endpoint does not get."""
        notes = [lost_note(self._lost)] if self._lost else []
        notes += [
            Note(about, text.format(n=n, s="" if n == 1 else "s"), warning=kind != "empty")
            for kind, (about, text) in _LEFT_OUT.items()
            if (n := self._left_out[kind])
        ]
        if self._bridged:
            text = (
                f"{self._bridged} × “{_BRIDGE}” added: here only an answer may follow tool results"
            )
            notes.append(Note("history", text))
        if self.messages and self.messages[-1]["role"] == "assistant":
            text = (
                "the request ends with an answer: the endpoint will continue it, or reject "
                "the request"
            )
            notes.append(Note("history", text, warning=True))
        return notes

    def _add_result(self, block: ToolResultBlock) -> list[dict[str, Any]]:
        """Write a result; returns the parts of its attachments that need a message of their own."""
        call_id = block.call_id
        if not call_id and self._unnamed:
            call_id = self._unnamed.pop(0)
        parts = [
            written_with(part, one.wire, DIALECT)
            for one in block.media
            if (part := write_media(one))
        ]
        output, lost = block.output, len(block.media) - len(parts)
        if lost:
            self._left_out["media"] += lost
            told = f"[{lost} of its attachments cannot be sent to this API]"
            output = f"{output}\n{told}" if output else told
        in_place = bool(parts) and self._compat.result_media == "tool"
        said = [{"type": "text", "text": output}] if output else []
        content = [*said, *parts] if in_place else output
        result = {"role": "tool", "tool_call_id": self._fitting(call_id), "content": content}
        self.messages.append(written_with(result, block.wire, DIALECT))
        return [] if in_place else _named(block.media, parts)

    def _fitting(self, call_id: str) -> str:
        """The id, or one derived from it if the endpoint accepts only ids of a certain form."""
        length = self._compat.tool_id_length
        if not length or (len(call_id) == length and call_id.isascii() and call_id.isalnum()):
            return call_id
        from hashlib import sha256

        return sha256(call_id.encode("utf-8", "replace")).hexdigest()[:length]

    def _content(
        self, blocks: Sequence[Block], shown: Sequence[dict[str, Any]] = ()
    ) -> str | list[dict[str, Any]]:
        """A user's content: plain text is sent as a plain string, which every server accepts."""
        beside = any(map(_beside, blocks))
        if len(blocks) == 1 and not shown and isinstance(blocks[0], TextBlock) and not beside:
            return blocks[0].text
        parts: list[dict[str, Any]] = [*shown]
        for block in blocks:
            if isinstance(block, TextBlock):
                part = {"type": "text", "text": block.text}
                parts.append(written_with(part, block.wire, DIALECT))
            elif isinstance(block, MediaBlock):
                written = write_media(block)
                parts += [written_with(written, block.wire, DIALECT)] if written else []
                self._left_out["media"] += written is None
            elif isinstance(block, OpaqueBlock) and block.dialect == DIALECT:
                parts.append(block.data)
            elif not isinstance(block, ToolResultBlock):
                self._left_out["opaque"] += 1
        texts = [block.text for block in blocks if isinstance(block, TextBlock)]
        return parts if beside or len(texts) < len(parts) else _paragraphs(texts)

    def _add_assistant(self, message: Message) -> None:
        answer = _Answer(self._rule, self._left_out)
        extras = Extras(DIALECT, message)
        self._unnamed = []
        for block in message.blocks:
            answer.add(block)
        calls = [extras.write(self._call(call), "call") for call in message.tool_calls]
        if answer.is_empty and not calls:
            # An empty answer would be taken for a prefill (ggml-org/llama.cpp#20861).
            self._left_out["empty"] += 1
            return
        written: dict[str, Any] = {"role": "assistant", "content": answer.content(extras)}
        self._lost += extras.lost()
        if calls and not written["content"]:
            written["content"] = self._compat.empty_content
        written |= answer.keys(has_calls=bool(calls)) | extras.keys
        if calls:
            written["tool_calls"] = calls
        self.messages.append(written)

    def _call(self, block: ToolCallBlock) -> dict[str, Any]:
        self._calls += 1
        call_id = block.id
        if not call_id:
            call_id = f"call_{self._calls}"
            self._unnamed.append(call_id)
        call_id = self._fitting(call_id)
        arguments = _encode(block.input).decode() if block.arguments is None else block.arguments
        kept = dict(own_keys(block.wire, DIALECT))
        function = {"name": block.name, "arguments": arguments}
        function |= _others(as_keys(kept.pop("function", None)), function)
        call: dict[str, Any] = {"id": call_id, "type": "function", "function": function}
        call |= _others(kept, ("id",))
        kind = call["type"]
        if kind != "function" and isinstance(kind, str) and kind in kept:
            del call["function"]  # such a call has its own place for name and input
        return call


class _Answer:
    """The content of one assistant message, and the keys beside it."""

    def __init__(self, rule: ReasoningRule, left_out: Counter[str]) -> None:
        self._rule = rule
        self._left_out = left_out
        self._parts: list[dict[str, Any]] = []
        self._fields = ReasoningFields(rule)
        self._keys: dict[str, Any] = {}
        self._thought = False

    @property
    def is_empty(self) -> bool:
        """Whether it contains nothing that an endpoint would accept as an answer."""
        return not self._parts and not self._keys

    def add(self, block: Block) -> None:
        match block:
            case TextBlock():
                self._add_text(block)
            case ThinkingBlock():
                self._add_thinking(block)
            case OpaqueBlock():
                if isinstance(block.data.get("type"), str):
                    self._parts.append(block.data)
                else:
                    self._left_out["opaque"] += 1
            case MediaBlock():
                self._left_out["media"] += 1
            case ToolCallBlock() | ToolResultBlock():
                pass
            case _:
                assert_never(block)

    def content(self, extras: Extras) -> str | list[dict[str, Any]]:
        """Plain text if all of it is text, and nothing is beside it; otherwise the list in wire
        order."""
        parts = [extras.write(part, "part") for part in self._parts]
        if all(part["type"] == "text" and len(part) == 2 for part in parts):
            return "".join(part["text"] for part in parts)
        return parts

    def keys(self, *, has_calls: bool) -> dict[str, Any]:
        """The keys beside the content: reasoning or its placeholder, and what was kept."""
        keys = dict(self._fields.keys())
        if not keys and not self._thought:
            filler = self._rule.filler(has_calls=has_calls)
            keys = dict([filler]) if filler else {}
        return keys | self._keys

    def _add_text(self, block: TextBlock) -> None:
        kept = dict(own_keys(block.wire, DIALECT))
        if kept.pop("refusal", False):
            self._keys["refusal"] = self._keys.get("refusal", "") + block.text
        else:
            self._say(block.text)
        self._keys |= kept

    def _say(self, text: str) -> None:
        if not text:
            return
        if self._parts and self._parts[-1]["type"] == "text":
            text = self._parts.pop()["text"] + text
        self._parts.append({"type": "text", "text": text})

    def _add_thinking(self, block: ThinkingBlock) -> None:
        place = self._rule.place_of(block)
        if place is None:  # left out before; nothing of it was counted
            return
        if place not in IN_CONTENT:
            self._fields.add(block, place)
        elif block.thought or block.has_carrier:
            self._thought = True
            if place == TAGS:
                self._say(_tagged(block, self._rule))
            else:
                self._parts.append(_member(block))


def _beside(block: Block) -> bool:
    """Whether a client wrote anything beside the text of a block, or something else than text."""
    if isinstance(block, OpaqueBlock):
        return block.dialect == DIALECT
    return isinstance(block, TextBlock) and bool(own_keys(block.wire, DIALECT))


def _others(kept: dict[str, Any], known: Container[str]) -> dict[str, Any]:
    """What was kept of a call beside its block's fields."""
    return {key: value for key, value in kept.items() if key not in known}


def _tagged(block: ThinkingBlock, rule: ReasoningRule) -> str:
    """Thinking inside the text, in its original tags."""
    pairs = rule.compat.tags or (("<think>", "</think>"),)
    _, _, came_in = (block.source_field or "").partition(":")
    opener, closer = next((pair for pair in pairs if pair[0] == came_in), pairs[0])
    # If the prompt contains the opening mark, the answer never had it.
    return f"{'' if rule.compat.starts_in_reasoning else opener}{block.thought}{closer}"


def _member(block: ThinkingBlock) -> dict[str, Any]:
    inner = members_of(block) or [{"type": "text", "text": block.thought}]
    member: dict[str, Any] = {"type": "thinking", "thinking": inner}
    if block.signature:
        member["signature"] = block.signature
    return member


def _named(media: Sequence[MediaBlock], parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Attachments of a result, with a remark on where they come from: the API accepts them only
    from users.
    """
    if not parts:
        return []
    names = [one.name for one in media if one.name]
    said = f"[from the tool result above{': ' if names else ''}{', '.join(names)}]"
    return [{"type": "text", "text": said}, *parts]


def _paragraphs(texts: Sequence[str]) -> str:
    """Several texts as one, each as a paragraph."""
    joined = "".join(texts[:1])
    for text in texts[1:]:
        joined += text if text.startswith("\n") or joined.endswith("\n") else f"\n\n{text}"
    return joined


def write_media(block: MediaBlock) -> dict[str, Any] | None:
    """The part of an attachment; None if this API has none for it."""
    kind, _, form = block.media_type.partition(";")[0].strip().lower().partition("/")
    url = block.url if block.data is None else f"data:{block.media_type};base64,{block.data}"
    if url is None:
        return None
    if kind in ("image", "video"):
        return {"type": f"{kind}_url", f"{kind}_url": {"url": url}}
    if block.data is None:
        return None
    if kind == "audio":
        sound = {"data": block.data, "format": _SOUNDS.get(form, form)}
        return {"type": "input_audio", "input_audio": sound}
    return {"type": "file", "file": {"filename": block.name or "file", "file_data": url}}
