"""Lists of messages as the Messages API takes them, with the system prompt beside them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from mull.dialects.anthropic.decode import ChunkInterpreter
from mull.dialects.foreign import Conversation, as_list, as_text, dump, image_at, objects
from mull.dialects.past import AnswerReader
from mull.neutral.blocks import Block, MediaBlock, OpaqueBlock, TextBlock, ToolResultBlock
from mull.neutral.errors import ConfigError
from mull.neutral.messages import Message
from mull.neutral.target import Target

__all__ = ["read_history"]

_MARKER = "cache_control"
"""Where a request wants a cache to end: nothing that was said."""


def read_history(messages: Sequence[Any], system: Any, written_by: Target | None) -> Conversation:
    """The conversation in the list.

    Raises:
        ConfigError: a message is not one; says which and why.
    """
    reader = _Reader()
    answers = AnswerReader("anthropic", ChunkInterpreter, written_by)
    conversation = reader.conversation
    for place, block in reader.blocks(system, "system"):
        conversation.add_system(as_text(block.get("text"), "system.text"))
        conversation.leave(block, place, "type", "text")
    for where, message in objects(list(messages), "messages"):
        content = reader.blocks(message.get("content"), f"{where}.content")
        conversation.leave(message, where, "role", "content")
        match message.get("role"):
            case "user":
                said = [reader.block(block, place) for place, block in content]
                conversation.messages += _spoken(said)
            case "assistant":
                blocks = [block for _, block in content]
                response = {"type": "message", "role": "assistant", "content": blocks}
                conversation.messages.append(answers.read(response, where))
            case "system":
                texts = [dump(block.get("text", "")) for _, block in content]
                conversation.add_system("\n\n".join(texts))
            case role:
                raise ConfigError(f"{where}.role is {role!r}: it must be user or assistant")
    return conversation


class _Reader:
    """Reads the blocks of messages; markers of a cache are left."""

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

    def block(self, block: dict[str, Any], where: str) -> Block:
        match block:
            case {"type": "text", "text": str(text), **rest}:
                return TextBlock(text, extra=rest or None)
            case {"type": "tool_result", "tool_use_id": str(call_id)}:
                self.conversation.leave(block, where, "type", "tool_use_id", "content", "is_error")
                return _result(call_id, block)
        media = _media(block)
        if media is None:
            return OpaqueBlock(block)
        self.conversation.leave(block, where, "type", "source", "title")
        return media


def _spoken(blocks: list[Block]) -> list[Message]:
    """Results of tools are messages of their own, also in the user's name."""
    return [
        Message(role="tool" if results else "user", blocks=tuple(run))
        for results, run in groupby(blocks, lambda block: isinstance(block, ToolResultBlock))
    ]


def _result(call_id: str, block: dict[str, Any]) -> ToolResultBlock:
    content = block.get("content")
    parts = content if isinstance(content, list) else [content] if content is not None else []
    texts: list[str] = []
    media: list[MediaBlock] = []
    for part in parts:
        if isinstance(part, dict) and (found := _media(part)):
            media.append(found)
        elif isinstance(part, dict) and part.get("type") == "text":
            texts.append(dump(part.get("text", "")))
        else:
            texts.append(dump(part))
    failed = block.get("is_error") is True
    return ToolResultBlock(call_id, "\n".join(texts), failed, tuple(media))


def _media(block: dict[str, Any]) -> MediaBlock | None:
    title = block.get("title")
    name = title if isinstance(title, str) else None
    match block:
        case {"type": "image", "source": {"type": "url", "url": str(url)}}:
            return image_at(url)
        case {"type": "document", "source": {"type": "url", "url": str(url)}}:
            return MediaBlock("application/pdf", url=url, name=name)
        case {"source": {"type": "base64", "media_type": str(kind), "data": str(data)}}:
            return MediaBlock(kind, data, name=name)
        case {"type": "document", "source": {"type": "text", "data": str(text)}}:
            return MediaBlock("text/plain", b64encode(text.encode()).decode(), name=name)
    return None
