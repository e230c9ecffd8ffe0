"""Gemini's `contents`, with the system instruction beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mull.dialects.foreign import Calls, Conversation, as_list, as_object, dump, objects
from mull.dialects.gemini import DIALECT
from mull.dialects.gemini.decode import ChunkInterpreter
from mull.dialects.past import AnswerReader
from mull.neutral.blocks import Block, MediaBlock, OpaqueBlock, TextBlock, ToolResultBlock
from mull.neutral.errors import ConfigError
from mull.neutral.messages import Message
from mull.neutral.target import Target
from mull.neutral.thinking import UNSIGNED_CALL

__all__ = ["BODY", "is_own", "read_history"]

BODY = ("contents", "systemInstruction")
"""Where a request has its messages, and its system prompt if that is separate."""

_SIGNATURE = "thoughtSignature"
_MEDIA = {"inlineData", "fileData"}
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
            self.conversation.add_system(dump(part.get("text", "")))
            self.conversation.leave(part, f"{where}.parts[{at}]", "text")
        known = ("role", "parts") if content.get("role") in ("user", "system") else ("parts",)
        self.conversation.leave(content, where, *known)

    def add(self, content: dict[str, Any], where: str) -> None:
        parts = _parts(content, where)
        self.conversation.leave(content, where, "role", "parts")
        match content.get("role", "user"):
            case "model":
                pieces = [{"candidates": [{"content": {"parts": [part]}}]} for part in parts]
                answer = self._answers.read_pieces([*pieces, _END], where)
                self._calls.expect(answer.tool_calls)
                self.conversation.messages.append(answer)
            case "user" | "function":
                self._add_spoken(parts, f"{where}.parts")
            case role:
                raise ConfigError(f"{where}.role is {role!r}: it must be user or model")

    def _add_spoken(self, parts: list[dict[str, Any]], where: str) -> None:
        results: list[Block] = []
        rest: list[Block] = []
        for at, part in enumerate(parts):
            block = self._block(part, f"{where}[{at}]")
            (results if isinstance(block, ToolResultBlock) else rest).append(block)
        if results:
            self.conversation.messages.append(Message(role="tool", blocks=tuple(results)))
        if rest:
            self.conversation.messages.append(Message(role="user", blocks=tuple(rest)))

    def _block(self, part: dict[str, Any], where: str) -> Block:
        match part:
            case {"text": str(text)} if len(part) == 1:
                return TextBlock(text)
            case {"functionResponse": {"name": str(name)} as response}:
                self.conversation.leave(part, where, "functionResponse")
                return self._result(name, response, f"{where}.functionResponse")
        return self._media(part, where) or OpaqueBlock(part, DIALECT)

    def _result(self, name: str, response: dict[str, Any], where: str) -> ToolResultBlock:
        given = response.get("id")
        call_id = self._calls.take(given if isinstance(given, str) else None, name)
        if name != self._calls.name_of(call_id):  # otherwise the call already contains it
            self.conversation.rest[f"{where}.name"] = name
        self.conversation.leave(response, where, "id", "name", "response", "parts")
        media: list[MediaBlock] = []
        for place, part in objects(response.get("parts") or [], f"{where}.parts"):
            if found := self._media(part, place):
                media.append(found)
            else:
                self.conversation.rest[place] = part
        text, failed = _outcome(name, response.get("response"))
        return ToolResultBlock(call_id, text, failed, tuple(media))

    def _media(self, part: dict[str, Any], where: str) -> MediaBlock | None:
        media = _media(part)
        if media is not None:
            self.conversation.leave(part, where, *_MEDIA)
            for name in _MEDIA & part.keys():
                self.conversation.leave(
                    part[name], f"{where}.{name}", "mimeType", "data", "fileUri"
                )
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
