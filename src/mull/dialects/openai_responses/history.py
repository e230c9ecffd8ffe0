"""Reads input items of the Responses API, and the separate instructions.

Items from the model (reasoning, calls, assistant messages, items of hosted tools) and items for the
model share one list; consecutive items from the model form one answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from mull.dialects.extras import Extras, leftover, unread
from mull.dialects.foreign import (
    Conversation,
    as_instructions,
    as_list,
    as_object,
    as_text,
    data_uri,
    dump,
    image_at,
    is_data_uri,
    objects,
)
from mull.dialects.openai_responses import DIALECT
from mull.dialects.openai_responses.decode import ChunkInterpreter
from mull.dialects.openai_responses.messages import write_media, write_result
from mull.dialects.openai_responses.shapes import FREE_CALL, INPUT_ITEMS, KINDS, RESULTS
from mull.dialects.past import AnswerReader
from mull.neutral.blocks import (
    Block,
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ToolResultBlock,
    wire_of,
)
from mull.neutral.errors import ConfigError
from mull.neutral.messages import Message
from mull.neutral.target import Target

__all__ = ["BODY", "is_own", "read_history"]

BODY = ("input", "instructions")
"""The fields of a request that hold its messages and its separate system prompt."""

_PART_KEYS = ("type", "text", "image_url", "file_data", "filename", "file_url")
_ANSWERED = {
    "message": ("type", "role", "content", "status", "id", "phase"),
    "reasoning": ("type", "id", "summary", "content", "encrypted_content", "status"),
    "function_call": ("type", "id", "call_id", "name", "arguments", "status", "namespace"),
    FREE_CALL: ("type", "id", "call_id", "name", "input", "status", "namespace"),
}
"""The keys of the items of an answer that its provider wrote; what else is there a client added."""
_NOT_KEPT = ("type", "call_id", "id", "status")
"""Keys of a result that follow from its call, or name it in a store that does not have it."""
_PARTS = ("type", "text", "refusal", "annotations", "logprobs")
_READ = ("message", "function_call", "reasoning", FREE_CALL)
"""Item types of an answer that are decoded into blocks; other items are kept unchanged."""


def read_history(items: Sequence[Any], system: Any, written_by: Target | None) -> Conversation:
    """The conversation in the items.

    Raises:
        ConfigError: an item is invalid; the message says which and why.
    """
    reader = _Reader(AnswerReader(DIALECT, ChunkInterpreter, written_by))
    if system is not None:
        reader.conversation.add_system(as_text(system, "instructions"))
    for where, item in objects(list(items), "input"):
        reader.add(item, where)
    reader.end_answer()
    return reader.conversation.end()


def is_own(message: Mapping[str, Any]) -> bool:
    """Whether no other dialect has such an item: only here does anything but a role say what it
    is.
    """
    return "type" in message and "role" not in message


class _Reader:
    def __init__(self, answers: AnswerReader) -> None:
        self.conversation = Conversation()
        self._answers = answers
        self._answer: list[dict[str, Any]] = []
        self._extras = Extras(DIALECT)
        self._where = ""

    def add(self, item: dict[str, Any], where: str) -> None:
        kind = as_text(item.get("type", "message"), f"{where}.type")
        role = item.get("role")
        if kind == "message" and role == "assistant":
            self._continue_answer(_full_message(item, where), where)
        elif kind == "message":
            self.end_answer()
            self._add_message(role, item, where)
        elif kind.endswith("_output"):
            self.end_answer()
            self._add_result(item, where)
        elif kind in INPUT_ITEMS:
            self.end_answer()
            match item:
                case {"type": "configuration_update", "reasoning": {"effort": str(effort)}}:
                    self.conversation.effort = effort
                case {"type": "additional_tools", "tools": [*added]}:
                    named = (one for one in added if isinstance(one, dict) and "name" in one)
                    self.conversation.tools |= {str(tool["name"]): tool for tool in named}
            alone = Message(role="system", blocks=(OpaqueBlock(item, DIALECT),))
            self.conversation.messages.append(alone)
        else:
            self._continue_answer(item, where)

    def end_answer(self) -> None:
        """End the current answer: the next item is input for the model."""
        if self._answer:
            response = {"status": "completed", "output": self._answer}
            answer = self._answers.read(response, self._where)
            wire = self._extras.wire()
            self.conversation.messages.append(replace(answer, wire=wire) if wire else answer)
            self._answer, self._extras = [], Extras(DIALECT)

    def _continue_answer(self, item: dict[str, Any], where: str) -> None:
        if item["type"] in _READ and item.get("status") != "completed":
            self.conversation.leave({"status": item.get("status")}, where)
        self._where = self._where if self._answer else where
        known = _ANSWERED.get(item["type"])
        self._answer.append(item if known is None else self._as_sent(item, known, where))

    def _as_sent(self, item: dict[str, Any], known: Sequence[str], where: str) -> dict[str, Any]:
        """An item of an answer as its provider sent it, without what its client added."""
        kind = KINDS.get(item["type"], item["type"])
        added = unread(item, known)
        self._extras.add(added, kind)
        self.conversation.leave(added, where)
        sent = unread(item, tuple(added))
        for key in ("summary", "content"):
            parts = item.get(key)
            if isinstance(parts, list):
                place = f"{where}.{key}"
                sent[key] = [
                    self._part_as_sent(p, kind, f"{place}[{at}]") for at, p in enumerate(parts)
                ]
        return sent

    def _part_as_sent(self, part: Any, kind: str, where: str) -> Any:
        added = unread(part, _PARTS) if isinstance(part, dict) else {}
        self._extras.add(added, self._extras.parts_of(kind))
        self.conversation.leave(added, where)
        return unread(part, tuple(added)) if added else part

    def _add_message(self, role: Any, item: dict[str, Any], where: str) -> None:
        known = ("type", "role", "content")
        self.conversation.leave(item, where, *known)
        extras = Extras(DIALECT)
        extras.add(unread(item, (*known, "id", "status")))
        self._leave_details(item.get("content"), f"{where}.content")
        blocks = _content(item.get("content"), f"{where}.content")
        match role:
            case "user":
                said = Message(role="user", blocks=blocks, wire=extras.wire())
                self.conversation.messages.append(said)
            case "system" | "developer":
                given = as_instructions(blocks, item.get("content"), DIALECT)
                self.conversation.add_instructions(given, extras.wire())
            case _:
                raise ConfigError(
                    f"{where}.role is {role!r}: it must be system, developer, user or assistant"
                )

    def _leave_details(self, content: Any, where: str) -> None:
        """Record the keys of parts that are left out; an image's `detail` counts unless it is
        `auto`."""
        for at, part in enumerate(content if isinstance(content, list) else ()):
            if isinstance(part, dict) and not isinstance(_part(part), OpaqueBlock):
                known = (*_PART_KEYS, "detail") if part.get("detail") == "auto" else _PART_KEYS
                self.conversation.leave(part, f"{where}[{at}]", *known)

    def _add_result(self, item: dict[str, Any], where: str) -> None:
        result: Block = OpaqueBlock(item, DIALECT)
        if item["type"] in RESULTS:
            self.conversation.leave(item, where, "type", "call_id", "output")
            self._leave_details(item.get("output"), f"{where}.output")
            call_id = as_text(item.get("call_id"), f"{where}.call_id")
            texts: list[str] = []
            media: list[MediaBlock] = []
            for at, block in enumerate(_content(item.get("output"), f"{where}.output")):
                match block:
                    case TextBlock(text):
                        texts.append(text)
                    case MediaBlock():
                        media.append(block)
                    case OpaqueBlock(part):  # it becomes text, and is left
                        self.conversation.rest[f"{where}.output[{at}]"] = part
                        texts.append(dump(part))
            read = ToolResultBlock(call_id, "".join(texts), media=tuple(media))
            rest = leftover(unread(item, _NOT_KEPT), write_result(read))
            result = replace(read, wire=wire_of(DIALECT, rest))
        self.conversation.add_result(result)


def _full_message(item: dict[str, Any], where: str) -> dict[str, Any]:
    """The full form of a message written in the short form."""
    content = item.get("content")
    if isinstance(content, str):
        content = [{"type": "output_text", "text": content}]
    for place, part in enumerate(as_list(content, f"{where}.content")):
        as_object(part, f"{where}.content[{place}]")
    return {**item, "type": "message", "content": content}


def _content(content: Any, where: str) -> tuple[Block, ...]:
    if content is None:
        return ()
    if isinstance(content, str):
        return (TextBlock(content),)
    return tuple(_part(part) for _, part in objects(as_list(content, where), where))


def _part(part: dict[str, Any]) -> Block:
    match part:
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return TextBlock(text, wire=wire_of(DIALECT, unread(part, ("type", "text"))))
        case {"type": "input_image", "image_url": str(url)}:
            return _with_rest(image_at(url), part)
        case {"type": "input_file", "file_data": str(data), "filename": str(name)} if is_data_uri(
            data
        ):
            return _with_rest(data_uri(data, name), part)
        case {"type": "input_file", "file_url": str(url)}:
            return _with_rest(MediaBlock("application/octet-stream", url=url), part)
    return OpaqueBlock(part, DIALECT)


def _with_rest(media: MediaBlock, part: dict[str, Any]) -> MediaBlock:
    rest = leftover(part, write_media(media) or {})
    return replace(media, wire=wire_of(DIALECT, rest))
