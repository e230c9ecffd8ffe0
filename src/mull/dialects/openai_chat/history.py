"""Message lists of Chat Completions and its many compatible servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from mull.dialects.extras import Extras, leftover, unread
from mull.dialects.foreign import (
    Calls,
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
from mull.dialects.openai_chat import DIALECT
from mull.dialects.openai_chat.decode import ChunkInterpreter
from mull.dialects.openai_chat.messages import write_media
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
from mull.neutral.target import Compat, Target

__all__ = ["BODY", "is_own", "read_history"]

BODY = ("messages", None)
"""Where a request has its messages, and its system prompt if that is separate."""
_ONLY_HERE = frozenset({"tool_calls", "tool_call_id", *Compat().reasoning_in})

_TEXTS = ("text", "input_text", "output_text")
_KNOWN: dict[str, tuple[str, ...]] = {
    "assistant": (
        *Compat().reasoning_in,
        "tool_calls",
        "function_call",
        "refusal",
        "reasoning_opaque",
        "extra_content",
        "images",
    ),
    "tool": ("tool_call_id", "name"),
    "function": ("tool_call_id", "name"),
}
"""The keys that are read from each role's messages; `name` finds the call of a result."""
_ALWAYS = ("role", "content")
_LEAST = len(_ALWAYS)
_INNER = ("url", "data", "format", "file_data", "filename")
_SOUNDS = {"mp3": "audio/mpeg", "m4a": "audio/mp4"}


def read_history(messages: Sequence[Any], system: Any, written_by: Target | None) -> Conversation:
    """The conversation in the list; in some requests the system prompt is separate.

    Raises:
        ConfigError: a message is invalid; says which and why.
    """
    reader = _Reader(AnswerReader(DIALECT, ChunkInterpreter, written_by))
    reader.add_instruction(system, "system")
    for where, message in objects(list(messages), "messages"):
        reader.add(message, where)
    return reader.conversation.end()


def is_own(message: Mapping[str, Any]) -> bool:
    """Whether such a message exists in no other dialect."""
    return message.get("role") == "tool" or not _ONLY_HERE.isdisjoint(message)


class _Reader:
    def __init__(self, answers: AnswerReader) -> None:
        self.conversation = Conversation()
        self._answers = answers
        self._calls = Calls()

    def add(self, message: dict[str, Any], where: str) -> None:
        said = self.conversation.messages
        content = message.get("content")
        role = message.get("role")
        known = _KNOWN.get(role, ()) if isinstance(role, str) else ()
        extras = Extras(DIALECT)
        if len(message) > _LEAST or "content" not in message:
            self.conversation.leave(message, where, *_ALWAYS, *known)
            extras.add(unread(message, (*_ALWAYS, *known)))
        if role != "assistant" and isinstance(content, list):
            self._leave_details(content, f"{where}.content")
        match role:
            case "system" | "developer":
                self.add_instruction(content, f"{where}.content", extras.wire())
            case "user":
                blocks = _content(content, f"{where}.content")
                said.append(Message(role="user", blocks=blocks, wire=extras.wire()))
            case "assistant":
                answer = self._answer(message, where, extras)
                self._calls.expect(answer.tool_calls)
                said.append(answer)
            case "tool" | "function":
                self._add_result(message, where)
            case _:
                raise ConfigError(
                    f"{where}.role is {role!r}: it must be system, user, assistant or tool"
                )

    def add_instruction(self, content: Any, where: str, wire: Wire | None = None) -> None:
        """A system prompt, wherever it is."""
        blocks = as_instructions(_content(content, where), content, DIALECT)
        self.conversation.add_instructions(blocks, wire)

    def _leave_details(self, content: Any, where: str) -> None:
        """The keys of a part beside its content."""
        for at, part in enumerate(content if isinstance(content, list) else ()):
            if isinstance(part, dict) and not isinstance(_part(part, where), OpaqueBlock):
                place, kind = f"{where}[{at}]", part.get("type")
                inner = part.get(kind) if isinstance(kind, str) else None
                if isinstance(inner, dict):
                    self.conversation.leave(inner, f"{place}.{kind}", *_INNER)
                self.conversation.leave(part, place, "type", "text", str(kind))

    def _answer(self, message: dict[str, Any], where: str, extras: Extras) -> Message:
        """An answer, read as its provider sent it: without what its client added."""
        _check_answer(message, where)
        sent = unread(message, tuple(extras.keys)) if extras.keys else message
        for key, kind, added in _LISTS:
            parts = message.get(key)
            if not isinstance(parts, list):
                continue
            bare = []
            for at, part in enumerate(parts):
                rest = added(part) if isinstance(part, dict) else {}
                extras.add(rest, kind)
                self._leave_all(rest, f"{where}.{key}[{at}]")
                bare.append(_less(part, rest) if rest else part)
            sent = {**sent, key: bare}
        answer = self._answers.read({"choices": [{"index": 0, "message": sent}]}, where)
        return replace(answer, wire=extras.wire()) if extras.wire() else answer

    def _leave_all(self, rest: dict[str, Any], where: str) -> None:
        for key, value in rest.items():
            if key == "function" and isinstance(value, dict):
                self.conversation.leave(value, f"{where}.{key}")
            else:
                self.conversation.leave({key: value}, where)

    def _add_result(self, message: dict[str, Any], where: str) -> None:
        given, name = message.get("tool_call_id"), message.get("name")
        call_id = self._calls.take(
            given if isinstance(given, str) else None, name if isinstance(name, str) else None
        )
        blocks = _content(message.get("content"), f"{where}.content")
        text = "".join(b.text for b in blocks if isinstance(b, TextBlock))
        text += "".join(dump(b.data) for b in blocks if isinstance(b, OpaqueBlock))
        media = tuple(b for b in blocks if isinstance(b, MediaBlock))
        result = ToolResultBlock(call_id, text, media=media)
        given = unread(message, ("role", "tool_call_id", "name"))
        if media or not isinstance(given.get("content"), list):
            given.pop("content", None)
        rest = wire_of(DIALECT, leftover(given, {"content": text}))
        self.conversation.add_result(replace(result, wire=rest))


def _check_answer(message: dict[str, Any], where: str) -> None:
    """What a live answer may omit or get wrong is an error in a file."""
    content = message.get("content")
    if isinstance(content, list):
        for at, part in enumerate(content):
            if not isinstance(part, str):
                as_object(part, f"{where}.content[{at}]")
    elif content is not None:
        as_text(content, f"{where}.content")
    if message.get("tool_calls") is not None:
        calls = as_list(message["tool_calls"], f"{where}.tool_calls")
        for place, call in objects(calls, f"{where}.tool_calls"):
            if call.get("type", "function") == "function":
                function = as_object(call.get("function"), f"{place}.function")
                as_text(function.get("name"), f"{place}.function.name")


def _content(content: Any, where: str) -> tuple[Block, ...]:
    if content is None:
        return ()
    if isinstance(content, str):
        return (TextBlock(content),)
    parts = as_list(content, where)
    return tuple(_part(part, f"{where}[{at}]") for at, part in enumerate(parts))


def _part(part: Any, where: str) -> Block:
    if isinstance(part, str):
        return TextBlock(part)
    part = as_object(part, where)
    match part:
        case {"type": kind, "text": str(text)} if kind in _TEXTS:
            return TextBlock(text, wire=wire_of(DIALECT, unread(part, ("type", "text"))))
    media = _media(part)
    if media is None:
        return OpaqueBlock(part, DIALECT)
    return replace(media, wire=wire_of(DIALECT, leftover(part, write_media(media) or {})))


def _media(part: dict[str, Any]) -> MediaBlock | None:
    match part:
        case {"type": "image_url", "image_url": {"url": str(url)} | str(url)}:
            return image_at(url)
        case {"type": "video_url", "video_url": {"url": str(url), **rest}} if not rest:
            return data_uri(url) if is_data_uri(url) else MediaBlock("video/mp4", url=url)
        case {"type": "input_audio", "input_audio": {"data": str(data), "format": str(kind)}}:
            return MediaBlock(_SOUNDS.get(kind, f"audio/{kind}"), data)
        case {"type": "file", "file": {"file_data": str(data), **rest}} if is_data_uri(data):
            name = rest.get("filename")
            return data_uri(data, name if isinstance(name, str) else None)
    return None


def _added_to_part(part: dict[str, Any]) -> dict[str, Any]:
    """What a client added to a text of an answer; other parts are kept as they are."""
    return unread(part, ("type", "text")) if part.get("type") in _TEXTS else {}


def _added_to_call(call: dict[str, Any]) -> dict[str, Any]:
    """What a client added to a call; calls of other kinds are kept as they are."""
    function = call.get("function")
    if call.get("type", "function") != "function" or not isinstance(function, dict):
        return {}
    added = unread(call, ("id", "type", "function", "index", "extra_content"))
    inside = unread(function, ("name", "arguments", "extra_content"))
    return {**added, "function": inside} if inside else added


_LISTS = (("content", "part", _added_to_part), ("tool_calls", "call", _added_to_call))


def _less(part: dict[str, Any], rest: dict[str, Any]) -> dict[str, Any]:
    """A part without these keys."""
    kept = {key: value for key, value in part.items() if key not in rest}
    if "function" in rest and part.get("type") not in _TEXTS:
        kept["function"] = unread(part["function"], tuple(rest["function"]))
    return kept
