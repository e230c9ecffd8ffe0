"""What the readers of other programs' requests share: validation, media, calls and results.

Every error names the message, counted from 0 as in the body, and the reason. What is valid but has
no neutral field is not dropped: it is left, by path.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from mull.neutral.blocks import (
    Block,
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ToolCallBlock,
    Wire,
)
from mull.neutral.errors import ConfigError
from mull.neutral.messages import Message
from mull.neutral.patterns import pattern

__all__ = [
    "Calls",
    "Conversation",
    "as_instructions",
    "as_list",
    "as_object",
    "as_text",
    "data_uri",
    "dump",
    "image_at",
    "is_data_uri",
    "kind_of",
    "objects",
]

_DATA_URI = pattern(r"data:([^;,]*)((?:;[^;,]*)*);base64,(.*)", re.DOTALL)
_IMAGE_KINDS = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
}
_encode = msgspec.json.Encoder().encode


class Conversation:
    """A conversation while it is read: the first system prompt is separate from the messages, and
    `rest` is what has no field in them. `effort` is the last that was set within it, and `tools`
    are those that it adds, by name, as they are written; None for one that it removes.
    """

    def __init__(self) -> None:
        self.system = ""
        self.messages: list[Message] = []
        self.rest: dict[str, Any] = {}
        self._results: list[tuple[int, list[Block]]] = []
        self._wordless = 0  # messages of instructions without text
        self.effort: str | None = None
        self.tools: dict[str, dict[str, Any] | None] = {}

    def leave(self, value: Mapping[str, Any], where: str, *known: str) -> None:
        """Keep unknown keys, each by path."""
        for name, held in value.items():
            if name not in known and held is not None:
                self.rest[f"{where}.{name}"] = held

    def add_system(self, text: str, beside: Wire | None = None, wire: Wire | None = None) -> None:
        """A system prompt, or an instruction within the conversation; `beside` is what else its
        client wrote beside the text, `wire` what it wrote in the message."""
        extra = beside is not None or bool(wire and wire.data)
        if not self.system and len(self.messages) == self._wordless and not extra:
            self.system = text
        elif text or extra:
            blocks = (TextBlock(text, wire=beside),) if text or beside else ()
            self.messages.append(Message(role="system", blocks=blocks, wire=wire))

    def add_result(self, result: Block) -> None:
        """A tool result; consecutive ones belong to one message, which `end` completes."""
        if not self.messages or self.messages[-1].role != "tool":
            self._results.append((len(self.messages), []))
            self.messages.append(Message(role="tool", blocks=()))
        self._results[-1][1].append(result)

    def end(self) -> Conversation:
        """The conversation, with each run of results in its message."""
        for at, blocks in self._results:
            self.messages[at] = Message(role="tool", blocks=tuple(blocks))
        return self

    def add_instructions(self, blocks: Iterable[Block], wire: Wire | None = None) -> None:
        """A message of instructions: one text, or its blocks if its client wrote anything else in
        it; `wire` is what it wrote beside them."""
        given = tuple(blocks)
        texts = [block.text for block in given if isinstance(block, TextBlock) and not block.wire]
        if len(texts) == len(given):
            self.add_system("\n\n".join(texts), None, wire)
        else:
            self._wordless += not texts
            self.messages.append(Message(role="system", blocks=given, wire=wire))


def as_instructions(blocks: Iterable[Block], content: Any, dialect: str) -> Iterator[Block]:
    """The blocks of instructions with this content: what is not text stays as it is written, since
    no other dialect has it there."""
    for at, block in enumerate(blocks):
        yield block if isinstance(block, TextBlock) else OpaqueBlock(content[at], dialect)


class Calls:
    """The calls of the last answer that await their results, for lists without ids.

    Each call is in a queue of its id, of its name and of all calls, so that a result finds its call
    without a search: a client may send tens of thousands in any order.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, ToolCallBlock] = {}
        self._queues: dict[tuple[str, str] | None, deque[int]] = {}
        self._names: dict[str, str] = {}

    def expect(self, calls: Iterable[ToolCallBlock]) -> None:
        """Record the calls of an answer."""
        self._waiting, self._queues = dict(enumerate(calls)), {}
        for at, call in self._waiting.items():
            for key in (("id", call.id), ("name", call.name), None):
                self._queues.setdefault(key, deque()).append(at)
            self._names[call.id] = call.name

    def name_of(self, call_id: str) -> str | None:
        """The tool of a call that was made, by its id."""
        return self._names.get(call_id)

    def take(self, call_id: str | None, name: str | None = None) -> str:
        """The id of the call that a result belongs to: its own, otherwise the next of its name."""
        key = None if name is None else ("name", name)
        queue = self._queues.get(key if call_id is None else ("id", call_id))
        while queue:
            if (call := self._waiting.pop(queue.popleft(), None)) is not None:
                return call.id
        return call_id or ""


def as_object(value: Any, where: str) -> dict[str, Any]:
    """The value, which must be an object."""
    if not isinstance(value, dict):
        raise ConfigError(f"{where} is {kind_of(value)}, not an object")
    return value


def as_list(value: Any, where: str) -> list[Any]:
    """The value, which must be a list."""
    if not isinstance(value, list):
        raise ConfigError(f"{where} is {kind_of(value)}, not a list")
    return value


def as_text(value: Any, where: str) -> str:
    """The value, which must be text."""
    if not isinstance(value, str):
        raise ConfigError(f"{where} is {kind_of(value)}, not text")
    return value


def is_data_uri(address: str) -> bool:
    """Whether the URL contains the data itself."""
    return _DATA_URI.fullmatch(address) is not None


def data_uri(address: str, name: str | None = None) -> MediaBlock:
    """The media in a data URL."""
    found = _DATA_URI.fullmatch(address)
    assert found
    return MediaBlock(found[1] + found[2] or "application/octet-stream", found[3], name=name)


def image_at(address: str) -> MediaBlock:
    """The image in a URL, or at it."""
    if is_data_uri(address):
        return data_uri(address)
    ending = address.partition("?")[0].rpartition(".")[2].lower()
    return MediaBlock(_IMAGE_KINDS.get(ending, "image/*"), url=address)


def dump(value: Any) -> str:
    """A value in place of text, as text."""
    return value if isinstance(value, str) else _encode(value).decode()


def objects(values: list[Any], where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a list, each with its place."""
    for index, value in enumerate(values):
        place = f"{where}[{index}]"
        yield place, as_object(value, place)


def kind_of(value: Any) -> str:
    """The kind of a value, for error messages."""
    if value is None:
        return "missing"
    names = {bool: "true or false", int: "a number", float: "a number", str: "text"}
    return names.get(type(value), "a list" if isinstance(value, list) else "an object")
