"""What the readers of other programs' requests share: validation, media, calls and results.

Every error names the message, counted from 0 as in the body, and the reason. What is valid but has
no neutral field is not dropped: it is left, by path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from mull.neutral.blocks import Block, MediaBlock, OpaqueBlock, TextBlock, ToolCallBlock
from mull.neutral.errors import ConfigError
from mull.neutral.messages import Message
from mull.neutral.patterns import pattern

__all__ = [
    "Calls",
    "Conversation",
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
    `rest` is what has no field in them.
    """

    def __init__(self) -> None:
        self.system = ""
        self.messages: list[Message] = []
        self.rest: dict[str, Any] = {}

    def leave(self, value: Mapping[str, Any], where: str, *known: str) -> None:
        """Keep unknown keys, each by path."""
        for name, held in value.items():
            if name not in known and held is not None:
                self.rest[f"{where}.{name}"] = held

    def add_system(self, text: str) -> None:
        """A system prompt, or an instruction within the conversation."""
        if not self.system and not self.messages:
            self.system = text
        elif text:
            self.messages.append(Message(role="system", blocks=(TextBlock(text),)))

    def add_instruction(self, blocks: Sequence[Block], where: str) -> None:
        """A system prompt in blocks, at `where`; what is not text is left."""
        self.add_system("\n\n".join(b.text for b in blocks if isinstance(b, TextBlock)))
        for at, block in enumerate(blocks):
            if not isinstance(block, TextBlock):
                kept = block.data if isinstance(block, OpaqueBlock) else msgspec.to_builtins(block)
                self.rest[f"{where}[{at}]"] = kept


class Calls:
    """The calls of the last answer that await their results, for lists without ids."""

    def __init__(self) -> None:
        self._waiting: list[ToolCallBlock] = []
        self._names: dict[str, str] = {}

    def expect(self, calls: Iterable[ToolCallBlock]) -> None:
        """Record the calls of an answer."""
        self._waiting = list(calls)
        self._names |= {call.id: call.name for call in self._waiting}

    def name_of(self, call_id: str) -> str | None:
        """The tool of a call that was made, by its id."""
        return self._names.get(call_id)

    def take(self, call_id: str | None, name: str | None = None) -> str:
        """The id of the call that a result belongs to: its own, otherwise the next of its name."""
        for call in self._waiting:
            if call.id == call_id or (call_id is None and name in (None, call.name)):
                self._waiting.remove(call)
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
