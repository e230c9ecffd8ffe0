"""Message lists of the Messages API, with the system prompt beside them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from msgspec.structs import replace

from mull.dialects.anthropic import DIALECT
from mull.dialects.anthropic.decode import ChunkInterpreter
from mull.dialects.anthropic.media import write_media
from mull.dialects.anthropic.messages import write_result
from mull.dialects.extras import Extras, leftover, unread
from mull.dialects.foreign import Conversation, as_list, dump, image_at, objects
from mull.dialects.past import AnswerReader
from mull.neutral.blocks import (
    Block,
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    Wire,
    wire_of,
)
from mull.neutral.errors import ConfigError
from mull.neutral.messages import PAUSES, Message
from mull.neutral.target import Target

__all__ = ["BODY", "is_own", "read_history"]

BODY = ("messages", "system")
"""Where a request has its messages, and its system prompt if that is separate."""
_ONLY_HERE = (
    "tool_use",
    "server_tool_use",
    "tool_result",
    "redacted_thinking",
    "document",
    "compaction",
)

_BILLING = "x-anthropic-billing-header:"
"""The beginning of a text that is not sent, and so nothing beside it."""
_MARKER = "cache_control"
"""Cache markers of a request: not content."""
_ANSWERED: Mapping[str, tuple[str, ...]] = {
    "text": ("type", "text", "citations"),
    "thinking": ("type", "thinking", "signature"),
    "redacted_thinking": ("type", "data"),
    "tool_use": ("type", "id", "name", "input", "caller"),
}
"""The keys of the blocks of an answer that its provider wrote. To blocks of other kinds a client
adds nothing but cache markers, as far as anybody can tell."""
_SOURCE = ("type", "url", "media_type", "data")


def read_history(messages: Sequence[Any], system: Any, written_by: Target | None) -> Conversation:
    """The conversation in the list.

    Raises:
        ConfigError: a message is invalid; says which and why.
    """
    reader = _Reader()
    answers = AnswerReader(DIALECT, ChunkInterpreter, written_by)
    conversation = reader.conversation
    for block in reader.instructions(system, "system"):
        if isinstance(block, TextBlock):
            conversation.add_system(block.text, block.wire)
        else:
            conversation.add_instructions([block])
    for where, message in objects(list(messages), "messages"):
        content, place = message.get("content"), f"{where}.content"
        paused = str(message.get("stop_reason")) in PAUSES
        known = ("role", "content", *(("stop_reason",) * paused))
        reader.leave_keys(message, where, known)
        extras = Extras(DIALECT)
        extras.add(unread(message, known))
        match message.get("role"):
            case "user":
                said = [reader.block(block, at) for at, block in reader.blocks(content, place)]
                conversation.messages += _spoken(said, extras.wire())
            case "assistant":
                found = reader.blocks(content, place)
                blocks = [reader.answered(block, at, extras) for at, block in found]
                response = {"type": "message", "role": "assistant", "content": blocks}
                read = answers.read(response, where)
                read = replace(read, wire=extras.wire()) if extras.wire() else read
                conversation.messages.append(_paused(read) if paused else read)
            case "system":
                conversation.add_instructions(
                    reader.instructions(content, place), Wire(DIALECT, extras.held)
                )
            case role:
                raise ConfigError(f"{where}.role is {role!r}: it must be user or assistant")
    if conversation.messages and _is_to_go_on(conversation.messages[-1]):
        conversation.messages[-1] = _paused(conversation.messages[-1])
    return conversation


def _is_to_go_on(last: Message) -> bool:
    """Whether a request ends with the model's own unfinished answer, not with words that the client
    put into its mouth.
    """
    own = any(isinstance(block, OpaqueBlock | ThinkingBlock) for block in last.blocks)
    return last.role == "assistant" and own and not last.tool_calls


def _paused(answer: Message) -> Message:
    return answer if answer.is_paused else replace(answer, stop_reason="pause_turn")


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
            found.append((place, block))
        return found

    def leave_keys(self, message: dict[str, Any], where: str, known: Sequence[str]) -> None:
        """Leave the unknown keys of a message. The effort that it sets from here on is a wish of
        the request, which has no places for it in other dialects."""
        for key, value in unread(message, known).items():
            match key, value:
                case "output_config", {"effort": str(effort)}:
                    self.conversation.effort = effort
                    self.conversation.leave(value, f"{where}.{key}", "effort")
                case _:
                    self.conversation.rest[f"{where}.{key}"] = value

    def instructions(self, content: Any, where: str) -> Iterator[TextBlock | OpaqueBlock]:
        """The texts of a system prompt, each with what is beside it, and blocks of other kinds,
        such as those that add and remove tools."""
        for place, block in self.blocks(content, where):
            match block:
                case {"type": "text", "text": str(text), **rest}:
                    self.conversation.leave(rest, place)
                    wire = None if text.startswith(_BILLING) else wire_of(DIALECT, rest)
                    yield TextBlock(text, wire=wire)
                case _:
                    self._change_tools(block)
                    yield OpaqueBlock(block, DIALECT)

    def _change_tools(self, block: dict[str, Any]) -> None:
        """Note which tools a block adds or removes; other dialects have them beside the messages
        alone."""
        tools = self.conversation.tools
        match block:
            case {"type": "tool_addition", "tool": {"definition": {"name": str(name)} as added}}:
                tools[name] = added
            case {"type": "tool_addition", "tool": {"name": str(name)}} if (
                tools.get(name, 0) is None
            ):
                del tools[name]
            case {"type": "tool_removal", "tool": {"name": str(name)}}:
                tools[name] = None

    def answered(self, block: dict[str, Any], where: str, extras: Extras) -> dict[str, Any]:
        """A block of an answer as its provider sent it, without what its client added."""
        kind = str(block.get("type"))
        known = _ANSWERED.get(kind)
        added = unread(block, known) if known is not None else _marker(block)
        extras.add(added, kind)
        self.conversation.leave(added, where)
        return unread(block, tuple(added)) if added else block

    def block(self, block: dict[str, Any], where: str) -> Block:
        match block:
            case {"type": "text", "text": str(text), **rest}:
                self.conversation.leave(rest, where)
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
        result = ToolResultBlock(call_id, "\n".join(texts), failed, tuple(media))
        return replace(result, wire=wire_of(DIALECT, leftover(block, write_result(result))))

    def _media(self, block: dict[str, Any], where: str) -> MediaBlock | None:
        media = _media(block)
        if media is None:
            return None
        self.conversation.leave(block, where, "type", "source", "title")
        self.conversation.leave(block["source"], f"{where}.source", *_SOURCE)
        return replace(media, wire=wire_of(DIALECT, leftover(block, write_media(media) or {})))


def _marker(block: dict[str, Any]) -> dict[str, Any]:
    return {_MARKER: block[_MARKER]} if _MARKER in block else {}


def _spoken(blocks: list[Block], wire: Wire | None) -> list[Message]:
    """Tool results are separate messages, also in the user's name."""
    said = [
        Message(role="tool" if results else "user", blocks=tuple(run), wire=wire)
        for results, run in groupby(blocks, lambda block: isinstance(block, ToolResultBlock))
    ]
    return said or ([Message(role="user", wire=wire)] if wire else [])


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
