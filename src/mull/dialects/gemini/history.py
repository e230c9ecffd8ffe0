"""Gemini's `contents`, with the system instruction beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from mull.dialects.extras import Extras, leftover, unread
from mull.dialects.foreign import Calls, Conversation, as_list, as_object, dump, objects
from mull.dialects.gemini import DIALECT
from mull.dialects.gemini.contents import write_media
from mull.dialects.gemini.decode import ChunkInterpreter
from mull.dialects.gemini.shapes import RESULT_KEYS
from mull.dialects.past import AnswerReader
from mull.neutral.blocks import (
    Block,
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ToolResultBlock,
    Wire,
    wire_of,
)
from mull.neutral.errors import ConfigError
from mull.neutral.messages import Message
from mull.neutral.target import Target
from mull.neutral.thinking import UNSIGNED_CALL

__all__ = ["BODY", "is_own", "read_history"]

BODY = ("contents", "systemInstruction")
"""Where a request has its messages, and its system prompt if that is separate."""

_SIGNATURE = "thoughtSignature"
_MEDIA = {"inlineData", "fileData"}
_KINDS = {"functionCall", "functionResponse", "thought", *_MEDIA}
_PART = ("text", "thought", _SIGNATURE, "thought_signature", "functionCall")
_CALL = ("name", "args", "id", "partialArgs", "willContinue")
"""The keys that a provider writes in a part of an answer, and in a call."""
_END = {"candidates": [{"finishReason": "STOP"}]}


def read_history(contents: Sequence[Any], system: Any, written_by: Target | None) -> Conversation:
    """The conversation in the contents.

    Raises:
        ConfigError: a content is invalid; says which and why.
    """
    reader = _Reader(AnswerReader(DIALECT, ChunkInterpreter, written_by))
    if system is not None:
        reader.add_system(system)
    for where, content in objects(list(contents), "contents"):
        reader.add(content, where)
    return reader.conversation


def is_own(message: Mapping[str, Any]) -> bool:
    """Whether such a message exists in no other dialect."""
    return "parts" in message


class _Reader:
    def __init__(self, answers: AnswerReader) -> None:
        self.conversation = Conversation()
        self._answers = answers
        self._calls = Calls()

    def add_system(self, content: Any) -> None:
        """The system instruction; its role is ignored."""
        where = "systemInstruction"
        for at, part in enumerate(_parts(content, where)):
            if not isinstance(part.get("text"), str):
                self.conversation.add_instructions([OpaqueBlock(part, DIALECT)])
                continue
            beside = wire_of(DIALECT, unread(part, ("text",)))
            self.conversation.add_system(part["text"], beside)
            self.conversation.leave(part, f"{where}.parts[{at}]", "text")
        known = ("role", "parts") if content.get("role") in ("user", "system") else ("parts",)
        self.conversation.leave(content, where, *known)

    def add(self, content: dict[str, Any], where: str) -> None:
        parts = _parts(content, where)
        self.conversation.leave(content, where, "role", "parts")
        extras = Extras(DIALECT)
        extras.add(unread(content, ("role", "parts")))
        match content.get("role", "user"):
            case "model":
                places = (f"{where}.parts[{at}]" for at in range(len(parts)))
                sent = [
                    self._as_sent(one, at, extras) for one, at in zip(parts, places, strict=True)
                ]
                pieces = [{"candidates": [{"content": {"parts": [part]}}]} for part in sent]
                answer = self._answers.read_pieces([*pieces, _END], where)
                answer = replace(answer, wire=extras.wire()) if extras.wire() else answer
                self._calls.expect(answer.tool_calls)
                self.conversation.messages.append(answer)
            case "user" | "function":
                self._add_spoken(parts, f"{where}.parts", extras.wire())
            case role:
                raise ConfigError(f"{where}.role is {role!r}: it must be user or model")

    def _as_sent(self, part: dict[str, Any], where: str, extras: Extras) -> dict[str, Any]:
        """A part of an answer as its provider sent it, without what its client added."""
        call = part.get("functionCall")
        if isinstance(call, dict):
            added, kind = unread(part, _PART), "call"
            inside = unread(call, _CALL)
            self.conversation.leave(inside, f"{where}.functionCall")
            part = {**part, "functionCall": unread(call, tuple(inside))}
            extras.add({**added, "functionCall": inside} if inside else added, kind)
        elif isinstance(part.get("text"), str):
            added, kind = unread(part, _PART), "thought" if part.get("thought") else "text"
            extras.add(added, kind)
        else:
            return part
        self.conversation.leave(added, where)
        return unread(part, tuple(added))

    def _add_spoken(self, parts: list[dict[str, Any]], where: str, wire: Wire | None) -> None:
        results: list[Block] = []
        rest: list[Block] = []
        for at, part in enumerate(parts):
            block = self._block(part, f"{where}[{at}]")
            (results if isinstance(block, ToolResultBlock) else rest).append(block)
        if results:
            made = Message(role="tool", blocks=tuple(results), wire=wire)
            self.conversation.messages.append(made)
        if rest:
            made = Message(role="user", blocks=tuple(rest), wire=wire)
            self.conversation.messages.append(made)

    def _block(self, part: dict[str, Any], where: str) -> Block:
        match part:
            case {"text": str(text), **rest} if _KINDS.isdisjoint(rest):
                self.conversation.leave(rest, where)
                return TextBlock(text, wire=wire_of(DIALECT, rest))
            case {"functionResponse": {"name": str(name)}}:
                self.conversation.leave(part, where, "functionResponse")
                return self._result(name, part, f"{where}.functionResponse")
        return self._media(part, where) or OpaqueBlock(part, DIALECT)

    def _result(self, name: str, part: dict[str, Any], where: str) -> ToolResultBlock:
        response = part["functionResponse"]
        given = response.get("id")
        call_id = self._calls.take(given if isinstance(given, str) else None, name)
        if name != self._calls.name_of(call_id):  # otherwise the call already contains it
            self.conversation.rest[f"{where}.name"] = name
        self.conversation.leave(response, where, "id", "name", "response", "parts")
        media: list[MediaBlock] = []
        parts = as_list(response.get("parts") or [], f"{where}.parts")
        for place, one in objects(parts, f"{where}.parts"):
            if found := self._media(one, place):
                media.append(found)
            else:
                self.conversation.rest[place] = one
        text, failed = _outcome(name, response.get("response"))
        given = dict(response)
        if len(media) == len(parts):
            given.pop("parts", None)
        wire = {RESULT_KEYS: unread(given, ("id", "name")), **unread(part, ("functionResponse",))}
        result = ToolResultBlock(call_id, text, failed, tuple(media))
        return replace(result, wire=wire_of(DIALECT, wire))

    def _media(self, part: dict[str, Any], where: str) -> MediaBlock | None:
        media = _media(part)
        if media is not None:
            self.conversation.leave(part, where, *_MEDIA)
            for name in _MEDIA & part.keys():
                held = as_object(part[name], f"{where}.{name}")
                self.conversation.leave(held, f"{where}.{name}", "mimeType", "data", "fileUri")
            media = replace(media, wire=wire_of(DIALECT, leftover(part, write_media(media) or {})))
        return media


def _parts(content: Any, where: str) -> list[dict[str, Any]]:
    parts = as_list(as_object(content, where).get("parts"), f"{where}.parts")
    return [
        {
            name: value
            for name, value in part.items()
            if (name, value) != (_SIGNATURE, UNSIGNED_CALL)
        }
        for _, part in objects(parts, f"{where}.parts")
    ]


def _outcome(name: str, response: Any) -> tuple[str, bool]:
    """A tool result as text, and whether it failed; some repeat the tool's name."""
    match response:
        case {"error": said, **rest} if not rest:
            return dump(said), True
        case {"result": said, **rest} | {"output": said, **rest} if not rest:
            return dump(said), False
        case {"name": again, "content": said, **rest} if not rest and again == name:
            return dump(said), False
    return "" if response is None else dump(response), False


def _media(part: dict[str, Any]) -> MediaBlock | None:
    match part:
        case {"inlineData": {"mimeType": str(kind), "data": str(data)}}:
            return MediaBlock(kind, data)
        case {"fileData": {"mimeType": str(kind), "fileUri": str(url)}}:
            return MediaBlock(kind, url=url)
    return None
