"""Gemini's `contents`, with the system instruction beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mull.dialects.foreign import Calls, Conversation, as_list, as_object, dump, objects
from mull.dialects.gemini.decode import ChunkInterpreter
from mull.dialects.past import AnswerReader
from mull.neutral.blocks import Block, MediaBlock, OpaqueBlock, TextBlock, ToolResultBlock
from mull.neutral.errors import ConfigError
from mull.neutral.messages import Message
from mull.neutral.target import Target
from mull.neutral.thinking import UNSIGNED_CALL

__all__ = ["read_history"]

_SIGNATURE = "thoughtSignature"
_END = {"candidates": [{"finishReason": "STOP"}]}


def read_history(contents: Sequence[Any], system: Any, written_by: Target | None) -> Conversation:
    """The conversation in the contents.

    Raises:
        ConfigError: a content is not one; says which and why.
    """
    conversation, calls = Conversation(), Calls()
    answers = AnswerReader("gemini", ChunkInterpreter, written_by)
    for part in _parts(system, "systemInstruction") if system is not None else ():
        conversation.add_system(dump(part.get("text", "")))
    for where, content in objects(list(contents), "contents"):
        parts = _parts(content, where)
        conversation.leave(content, where, "role", "parts")
        for at, part in enumerate(parts):
            response = part.get("functionResponse")
            if isinstance(response, dict):
                place = f"{where}.parts[{at}].functionResponse"
                conversation.leave(response, place, "id", "name", "response", "parts")
        match content.get("role", "user"):
            case "model":
                pieces = [{"candidates": [{"content": {"parts": [part]}}]} for part in parts]
                answer = answers.read_pieces([*pieces, _END], where)
                calls.expect(answer.tool_calls)
                conversation.messages.append(answer)
            case "user" | "function":
                conversation.messages += _spoken(parts, calls)
            case role:
                raise ConfigError(f"{where}.role is {role!r}: it must be user or model")
    return conversation


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


def _spoken(parts: list[dict[str, Any]], calls: Calls) -> list[Message]:
    results: list[Block] = []
    rest: list[Block] = []
    for part in parts:
        block = _block(part, calls)
        (results if isinstance(block, ToolResultBlock) else rest).append(block)
    said = [Message(role="tool", blocks=tuple(results))] if results else []
    return [*said, Message(role="user", blocks=tuple(rest))] if rest else said


def _block(part: dict[str, Any], calls: Calls) -> Block:
    match part:
        case {"text": str(text)} if len(part) == 1:
            return TextBlock(text)
        case {"functionResponse": {"name": str(name)} as response}:
            return _result(name, response, calls)
    return _media(part) or OpaqueBlock(part)


def _result(name: str, response: dict[str, Any], calls: Calls) -> ToolResultBlock:
    given = response.get("id")
    call_id = calls.take(given if isinstance(given, str) else None, name)
    media = tuple(
        found
        for part in response.get("parts") or ()
        if isinstance(part, dict) and (found := _media(part))
    )
    match response.get("response"):
        case {"error": said, **rest} if not rest:
            return ToolResultBlock(call_id, dump(said), is_error=True, media=media)
        case {"result": said, **rest} | {"output": said, **rest} if not rest:
            return ToolResultBlock(call_id, dump(said), media=media)
        case said:
            return ToolResultBlock(call_id, "" if said is None else dump(said), media=media)


def _media(part: dict[str, Any]) -> MediaBlock | None:
    match part:
        case {"inlineData": {"mimeType": str(kind), "data": str(data)}}:
            return MediaBlock(kind, data)
        case {"fileData": {"mimeType": str(kind), "fileUri": str(url)}}:
            return MediaBlock(kind, url=url)
    return None
