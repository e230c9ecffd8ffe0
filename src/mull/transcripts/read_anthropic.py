"""Lists of messages as the Messages API takes them, with the system prompt beside them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from mull.neutral.blocks import Block, MediaBlock, OpaqueBlock, TextBlock, ToolResultBlock
from mull.neutral.errors import ConfigError
from mull.neutral.messages import Message
from mull.neutral.target import Target
from mull.transcripts.answers import AnswerReader
from mull.transcripts.foreign import Conversation, as_list, as_text, dump, image_at, objects

__all__ = ["read_anthropic"]

_MARKER = "cache_control"
"""Where a request wants a cache to end: nothing that was said."""


def read_anthropic(messages: Sequence[Any], system: Any, written_by: Target | None) -> Conversation:
    """The conversation in the list.

    Raises:
        ConfigError: a message is not one; says which and why.
    """
    conversation = Conversation()
    answers = AnswerReader("anthropic", written_by)
    for _, block in _blocks(system, "system"):
        conversation.add_system(as_text(block.get("text"), "system.text"))
    for where, message in objects(list(messages), "messages"):
        content = [block for _, block in _blocks(message.get("content"), f"{where}.content")]
        match message.get("role"):
            case "user":
                conversation.messages += _spoken([_block(block) for block in content])
            case "assistant":
                response = {"type": "message", "role": "assistant", "content": content}
                conversation.messages.append(answers.read(response, where))
            case "system":
                conversation.add_system("\n\n".join(dump(b.get("text", "")) for b in content))
            case role:
                raise ConfigError(f"{where}.role is {role!r}: it must be user or assistant")
    return conversation


def _blocks(content: Any, where: str) -> list[tuple[str, dict[str, Any]]]:
    if content is None:
        return []
    if isinstance(content, str):
        return [(where, {"type": "text", "text": content})]
    return [
        (place, {name: value for name, value in block.items() if name != _MARKER})
        for place, block in objects(as_list(content, where), where)
    ]


def _spoken(blocks: list[Block]) -> list[Message]:
    """Results of tools are messages of their own, also in the user's name."""
    return [
        Message(role="tool" if results else "user", blocks=tuple(run))
        for results, run in groupby(blocks, lambda block: isinstance(block, ToolResultBlock))
    ]


def _block(block: dict[str, Any]) -> Block:
    match block:
        case {"type": "text", "text": str(text), **rest}:
            return TextBlock(text, extra=rest or None)
        case {"type": "tool_result", "tool_use_id": str(call_id)}:
            return _result(call_id, block)
    return _media(block) or OpaqueBlock(block)


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
