"""Message lists of the Messages API, with the system prompt beside them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from mull.dialects.anthropic import DIALECT
from mull.dialects.anthropic.decode import ChunkInterpreter
from mull.dialects.foreign import Conversation, as_list, dump, image_at, objects
from mull.dialects.past import AnswerReader
from mull.neutral.blocks import Block, MediaBlock, OpaqueBlock, TextBlock, ToolResultBlock, wire_of
from mull.neutral.errors import ConfigError
from mull.neutral.messages import Message
from mull.neutral.target import Target

__all__ = ["BODY", "is_own", "read_history"]

BODY = ("messages", "system")
"""Where a request has its messages, and its system prompt if that is separate."""
_ONLY_HERE = ("tool_use", "tool_result", "redacted_thinking", "document")

_MARKER = "cache_control"
"""Cache markers of a request: not content."""
_SOURCE = ("type", "url", "media_type", "data")


def read_history(messages: Sequence[Any], system: Any, written_by: Target | None) -> Conversation:
    """The conversation in the list.

    Raises:
        ConfigError: a message is invalid; says which and why.
    """
    reader = _Reader()
    answers = AnswerReader(DIALECT, ChunkInterpreter, written_by)
    conversation = reader.conversation
    for text in reader.instructions(system, "system"):
        conversation.add_system(text)
    for where, message in objects(list(messages), "messages"):
        content, place = message.get("content"), f"{where}.content"
        conversation.leave(message, where, "role", "content")
        match message.get("role"):
            case "user":
                said = [reader.block(block, at) for at, block in reader.blocks(content, place)]
                conversation.messages += _spoken(said)
            case "assistant":
                blocks = [reader.answered(block, at) for at, block in reader.blocks(content, place)]
                response = {"type": "message", "role": "assistant", "content": blocks}
                conversation.messages.append(answers.read(response, where))
            case "system":
                conversation.add_system("\n\n".join(reader.instructions(content, place)))
            case role:
                raise ConfigError(f"{where}.role is {role!r}: it must be user or assistant")
    return conversation


def is_own(message: Mapping[str, Any]) -> bool:
    """Whether such a message exists in no other dialect."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else ()
    return any(_is_own_block(block) for block in blocks if isinstance(block, dict))


def _is_own_block(block: dict[str, Any]) -> bool:
    match block:
        case {"type": "thinking", "thinking": str()} | {"type": "image", "source": _}:
            return True
    return block.get("type") in _ONLY_HERE


class _Reader:
    """Reads the blocks of messages; cache markers are left."""

    def __init__(self) -> None:
        self.conversation = Conversation()

    def blocks(self, content: Any, where: str) -> list[tuple[str, dict[str, Any]]]:
        if content is None:
            return []
        if isinstance(content, str):
            return [(where, {"type": "text", "text": content})]
        found = []
        for place, block in objects(as_list(content, where), where):
            if _MARKER in block:
                self.conversation.rest[f"{place}.{_MARKER}"] = block[_MARKER]
            found.append((place, {k: v for k, v in block.items() if k != _MARKER}))
        return found

    def instructions(self, content: Any, where: str) -> Iterator[str]:
        """The texts of a system prompt; blocks of other kinds are left."""
        for place, block in self.blocks(content, where):
            match block:
                case {"type": "text", "text": str(text)}:
                    self.conversation.leave(block, place, "type", "text")
                    yield text
                case _:
                    self.conversation.rest[place] = block

    def answered(self, block: dict[str, Any], where: str) -> dict[str, Any]:
        """A block of an answer; redacted thinking has no field for anything but its data."""
        if block.get("type") == "redacted_thinking":
            self.conversation.leave(block, where, "type", "data")
        return block

    def block(self, block: dict[str, Any], where: str) -> Block:
        match block:
            case {"type": "text", "text": str(text), **rest}:
                return TextBlock(text, wire=wire_of(DIALECT, rest))
            case {"type": "tool_result", "tool_use_id": str(call_id)}:
                self.conversation.leave(block, where, "type", "tool_use_id", "content", "is_error")
                return self._result(call_id, block, f"{where}.content")
        return self._media(block, where) or OpaqueBlock(block, DIALECT)

    def _result(self, call_id: str, block: dict[str, Any], where: str) -> ToolResultBlock:
        """A tool result; a part that is neither text nor media becomes text, and is left."""
        content = block.get("content")
        parts = content if isinstance(content, list) else [content] if content is not None else []
        texts: list[str] = []
        media: list[MediaBlock] = []
        for at, part in enumerate(parts):
            place = f"{where}[{at}]"
            match part:
                case str(text):
                    texts.append(text)
                case {"type": "text", "text": str(text)}:
                    self.conversation.leave(part, place, "type", "text")
                    texts.append(text)
                case dict() if found := self._media(part, place):
                    media.append(found)
                case _:
                    self.conversation.rest[place] = part
                    texts.append(dump(part))
        failed = block.get("is_error") is True
        return ToolResultBlock(call_id, "\n".join(texts), failed, tuple(media))

    def _media(self, block: dict[str, Any], where: str) -> MediaBlock | None:
        media = _media(block)
        if media is not None:
            self.conversation.leave(block, where, "type", "source", "title")
            self.conversation.leave(block["source"], f"{where}.source", *_SOURCE)
        return media


def _spoken(blocks: list[Block]) -> list[Message]:
    """Tool results are separate messages, also in the user's name."""
    return [
        Message(role="tool" if results else "user", blocks=tuple(run))
        for results, run in groupby(blocks, lambda block: isinstance(block, ToolResultBlock))
    ]


def _media(block: dict[str, Any]) -> MediaBlock | None:
    title = block.get("title")
    name = title if isinstance(title, str) else None
    match block:
        case {"type": "image", "source": {"type": "url", "url": str(url)}}:
            return image_at(url)
        case {"type": "document", "source": {"type": "url", "url": str(url)}}:
            return MediaBlock("application/pdf", url=url, name=name)
        case {
            "type": "image" | "document",
            "source": {"type": "base64", "media_type": str(kind), "data": str(data)},
        }:
            return MediaBlock(kind, data, name=name)
        case {"type": "document", "source": {"type": "text", "data": str(text)}}:
            return MediaBlock("text/plain", b64encode(text.encode()).decode(), name=name)
    return None
