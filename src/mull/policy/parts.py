"""What each part of a request costs: a count by purpose.

The overhead tokens of a message count for its role.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import add, sub

from msgspec import Struct
from msgspec.structs import astuple

from mull.neutral.blocks import (
    Block,
    MediaBlock,
    OpaqueBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Value,
)
from mull.neutral.messages import Message, Role
from mull.policy.tokens import MESSAGE_OVERHEAD

__all__ = ["Counted", "Parts", "Sums", "count_message", "count_parts"]


class Parts(Value, frozen=True):
    """Tokens by purpose. Parts of messages add up to the parts of a request."""

    frame: int = 0
    """What the endpoint itself adds around a request."""
    system: int = 0
    """The system prompt and system messages."""
    tools: int = 0
    """The definitions of tools, and the schema of the answer."""
    user: int = 0
    """The text of user messages."""
    answers: int = 0
    """The text of the model's answers."""
    calls: int = 0
    """Tool calls in answers, with their arguments."""
    results: int = 0
    """Tool results."""
    thinking: int = 0
    """Thinking that is sent back."""
    other: int = 0
    """Media, and what only the model's maker understands."""
    surplus: int = 0
    """What the provider counts beyond all of these; 0 except where a meter corrects its counts."""

    @property
    def total(self) -> int:
        """All parts together."""
        return sum(astuple(self))

    def __add__(self, more: Parts) -> Parts:
        return Parts(*map(add, astuple(self), astuple(more)))

    def __sub__(self, less: Parts) -> Parts:
        return Parts(*map(sub, astuple(self), astuple(less)))


_SPEAKER: dict[Role, str] = {
    "system": "system",
    "user": "user",
    "assistant": "answers",
    "tool": "results",
}


_PART_OF: dict[type[Block], str] = {
    ThinkingBlock: "thinking",
    ToolCallBlock: "calls",
    ToolResultBlock: "results",
    MediaBlock: "other",
    OpaqueBlock: "other",
}
"""What a block is; a text is its speaker's."""


def count_message(message: Message, count: Callable[[Block], int]) -> dict[str, int]:
    """The tokens of a message by part, block by block."""
    speaker = _SPEAKER[message.role]
    found = {"results" if message.carries_results else speaker: MESSAGE_OVERHEAD}
    for block in message.blocks:
        part = _PART_OF.get(type(block), speaker)
        found[part] = found.get(part, 0) + count(block)
    return found


def count_parts(messages: Iterable[Message], count: Callable[[Block], int]) -> Parts:
    """The tokens of messages."""
    found: dict[str, int] = {}
    for message in messages:
        for part, tokens in count_message(message, count).items():
            found[part] = found.get(part, 0) + tokens
    return Parts(**found)


class Counted(Struct, frozen=True):
    """The tokens of a message by part, as `count_message` gives them, and their total when they are
    estimated from characters."""

    parts: Mapping[str, int]
    characters: int


class Sums:
    """Adds up the tokens of messages."""

    __slots__ = ("_found", "characters")

    def __init__(self) -> None:
        self._found: dict[str, int] = {}
        self.characters = 0

    def add(self, counted: Counted) -> None:
        """Add a message."""
        found = self._found
        for part, tokens in counted.parts.items():
            found[part] = found.get(part, 0) + tokens
        self.characters += counted.characters

    def remove(self, counted: Counted) -> None:
        """Take a message out that was added."""
        for part, tokens in counted.parts.items():
            self._found[part] -= tokens
        self.characters -= counted.characters

    @property
    def parts(self) -> Parts:
        """The sums."""
        return Parts(**self._found)
