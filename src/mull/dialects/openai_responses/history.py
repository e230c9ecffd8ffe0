"""Reads input items of the Responses API, and the separate instructions.

Items from the model (reasoning, calls, assistant messages, items of hosted tools) and items for the
model share one list; consecutive items from the model form one answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mull.dialects.foreign import (
    Conversation,
    as_list,
    as_object,
    as_text,
    data_uri,
    image_at,
    is_data_uri,
    objects,
)
from mull.dialects.openai_responses import DIALECT
from mull.dialects.openai_responses.decode import ChunkInterpreter
from mull.dialects.openai_responses.messages import RESULTS
from mull.dialects.openai_responses.shapes import FREE_CALL
from mull.dialects.past import AnswerReader
from mull.neutral.blocks import Block, MediaBlock, OpaqueBlock, TextBlock, ToolResultBlock
from mull.neutral.errors import ConfigError
from mull.neutral.messages import Message
from mull.neutral.target import Target

__all__ = ["BODY", "is_own", "read_history"]

BODY = ("input", "instructions")
"""The fields of a request that hold its messages and its separate system prompt."""
_ITEMS = ("reasoning", "function_call", "function_call_output")

_PART_KEYS = ("type", "text", "image_url", "file_data", "filename", "file_url")
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
    return reader.conversation


def is_own(message: Mapping[str, Any]) -> bool:
    """Whether no other dialect has such an item."""
    return message.get("type") in _ITEMS


class _Reader:
    def __init__(self, answers: AnswerReader) -> None:
        self.conversation = Conversation()
        self._answers = answers
        self._answer: list[dict[str, Any]] = []
        self._where = ""

    def add(self, item: dict[str, Any], where: str) -> None:
        kind, role = item.get("type", "message"), item.get("role")
        if kind == "message" and role == "assistant":
            self._continue_answer(_full_message(item, where), where)
        elif kind == "message":
            self.end_answer()
            self._add_message(role, item, where)
        elif isinstance(kind, str) and kind.endswith("_output"):
            self.end_answer()
            self._add_result(item, where)
        else:
            self._continue_answer(item, where)

    def end_answer(self) -> None:
        """End the current answer: the next item is input for the model."""
        if self._answer:
            response = {"status": "completed", "output": self._answer}
            self.conversation.messages.append(self._answers.read(response, self._where))
            self._answer = []

    def _continue_answer(self, item: dict[str, Any], where: str) -> None:
        if item["type"] in _READ and item.get("status") != "completed":
            self.conversation.leave({"status": item.get("status")}, where)
        self._where = self._where if self._answer else where
        self._answer.append(item)

    def _add_message(self, role: Any, item: dict[str, Any], where: str) -> None:
        self.conversation.leave(item, where, "type", "role", "content")
        self._leave_details(item.get("content"), f"{where}.content")
        blocks = _content(item.get("content"), f"{where}.content")
        match role:
            case "user":
                self.conversation.messages.append(Message(role="user", blocks=blocks))
            case "system" | "developer":
                self.conversation.add_instruction(blocks, f"{where}.content")
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
            blocks = _content(item.get("output"), f"{where}.output")
            text = "".join(b.text for b in blocks if isinstance(b, TextBlock))
            media = tuple(b for b in blocks if isinstance(b, MediaBlock))
            result = ToolResultBlock(call_id, text, media=media)
        messages = self.conversation.messages
        before = messages.pop().blocks if messages and messages[-1].role == "tool" else ()
        messages.append(Message(role="tool", blocks=(*before, result)))


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
            return TextBlock(text)
        case {"type": "input_image", "image_url": str(url)}:
            return image_at(url)
        case {"type": "input_file", "file_data": str(data), "filename": str(name)} if is_data_uri(
            data
        ):
            return data_uri(data, name)
        case {"type": "input_file", "file_url": str(url)}:
            return MediaBlock("application/octet-stream", url=url)
    return OpaqueBlock(part, DIALECT)
