"""Message lists of Converse, with the system prompt beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from mull.dialects.bedrock_converse import DIALECT
from mull.dialects.bedrock_converse.decode import ChunkInterpreter
from mull.dialects.bedrock_converse.media import read_media
from mull.dialects.foreign import (
    Conversation,
    as_instructions,
    as_list,
    as_object,
    dump,
    objects,
)
from mull.dialects.past import AnswerReader
from mull.neutral.blocks import Block, MediaBlock, OpaqueBlock, TextBlock, ToolResultBlock, wire_of
from mull.neutral.errors import ConfigError
from mull.neutral.messages import Message
from mull.neutral.target import Target

__all__ = ["BODY", "is_own", "read_history"]

BODY = ("messages", "system")
"""Where a request has its messages, and its system prompt if that is separate."""
_ONLY_HERE = frozenset({"text", "toolUse", "toolResult", "reasoningContent"})

_MARKER = "cachePoint"
"""Cache markers of a request: not content."""


def read_history(messages: Sequence[Any], system: Any, written_by: Target | None) -> Conversation:
    """The conversation in the list.

    Raises:
        ConfigError: a message is invalid; says which and why.
    """
    conversation = Conversation()
    reader = _Reader(conversation)
    answers = AnswerReader(DIALECT, ChunkInterpreter, written_by)
    for text in reader.instructions(system, "system"):
        conversation.add_system(text)
    for where, message in objects(list(messages), "messages"):
        blocks = reader.blocks(message.get("content"), f"{where}.content")
        conversation.leave(message, where, "role", "content")
        match message.get("role"):
            case "user":
                conversation.messages += _spoken([reader.block(one, at) for at, one in blocks])
            case "assistant":
                told = {"role": "assistant", "content": [block for _, block in blocks]}
                response = {"output": {"message": told}}
                conversation.messages.append(answers.read(response, where))
            case "system":
                given = (reader.block(one, at) for at, one in blocks)
                written = [one for _, one in blocks]
                conversation.add_instructions(as_instructions(given, written, DIALECT))
            case role:
                raise ConfigError(f"{where}.role is {role!r}: it must be user or assistant")
    return conversation


def is_own(message: Mapping[str, Any]) -> bool:
    """Whether such a message exists in no other dialect: the only key of a block names its kind."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else ()
    return any(
        isinstance(block, dict) and len(block) == 1 and not _ONLY_HERE.isdisjoint(block)
        for block in blocks
    )


class _Reader:
    """Reads the blocks of messages; cache markers are left."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def blocks(self, content: Any, where: str) -> list[tuple[str, dict[str, Any]]]:
        found = []
        given = [] if content is None else as_list(content, where)
        for place, block in objects(given, where):
            if _MARKER in block:
                self._conversation.rest[f"{place}.{_MARKER}"] = block[_MARKER]
            if rest := {name: value for name, value in block.items() if name != _MARKER}:
                found.append((place, rest))
        return found

    def instructions(self, content: Any, where: str) -> list[str]:
        """The texts of a system prompt; blocks of other kinds are left."""
        texts = []
        for place, block in self.blocks(content, where):
            match block:
                case {"text": str(text)}:
                    self._conversation.leave(block, place, "text")
                    texts.append(text)
                case _:
                    self._conversation.rest[place] = block
        return texts

    def block(self, block: dict[str, Any], where: str) -> Block:
        match block:
            case {"text": str(text), **rest}:
                return TextBlock(text, wire=wire_of(DIALECT, rest))
            case {"toolResult": {"toolUseId": str(call_id)} as held} if "type" not in held:
                place = f"{where}.toolResult"
                self._conversation.leave(block, where, "toolResult")
                self._conversation.leave(held, place, "toolUseId", "content", "status")
                return self._result(call_id, held, f"{place}.content")
        return read_media(block) or OpaqueBlock(block, DIALECT)

    def _result(self, call_id: str, held: dict[str, Any], where: str) -> ToolResultBlock:
        """A tool result; a part that is neither text nor media becomes text, and is left."""
        texts: list[str] = []
        media: list[MediaBlock] = []
        given = held.get("content")
        for place, part in objects([] if given is None else as_list(given, where), where):
            match part:
                case {"text": str(text), **rest} if not rest:
                    texts.append(text)
                case {"json": value, **rest} if not rest:
                    texts.append(dump(value))
                case _ if found := read_media(part):
                    media.append(found)
                case _:
                    self._conversation.rest[place] = part
                    texts.append(dump(as_object(part, place)))
        failed = held.get("status") == "error"
        return ToolResultBlock(call_id, "\n".join(texts), failed, tuple(media))


def _spoken(blocks: list[Block]) -> list[Message]:
    """Tool results are separate messages, also in the user's name."""
    return [
        Message(role="tool" if results else "user", blocks=tuple(run))
        for results, run in groupby(blocks, lambda block: isinstance(block, ToolResultBlock))
    ]
