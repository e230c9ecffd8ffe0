"""Messages and where they came from, with their exact JSON form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import dropwhile
from typing import Literal, TypeAlias

import msgspec

from mull.neutral.blocks import (
    Block,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Value,
    Wire,
)
from mull.neutral.errors import ConfigError
from mull.neutral.former import Reader
from mull.neutral.usage import Usage

__all__ = [
    "FAILED",
    "PAUSES",
    "Dialect",
    "Message",
    "Origin",
    "Role",
    "Status",
    "assistant",
    "message_from_json",
    "message_to_json",
    "messages_from_json",
    "messages_to_json",
    "user",
    "whole_system",
]

Dialect: TypeAlias = Literal[
    "openai-chat", "openai-responses", "anthropic", "gemini", "bedrock-converse"
]
"""The wire format of an endpoint."""
Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
"""The role of a message."""
Status: TypeAlias = Literal[
    "complete", "interrupted", "truncated", "truncated_in_reasoning", "no_answer", "error"
]
"""How an answer ended."""
_RESULTS = frozenset({ToolResultBlock})
PAUSES = frozenset({"pause_turn", "compaction"})
"""The stop reasons of an answer that its provider continues once it gets it back (Anthropic: at a
hosted tool, and after compaction)."""
FAILED = "failed"
"""The stop reason of an answer that a failure ended. An interrupted answer has none."""


class Origin(Value, frozen=True):
    """Which endpoint and model wrote a message. Carriers are sent back only to an equal
    origin.

    `account` distinguishes the keys of one provider where several are in use.
    """

    provider: str
    dialect: Dialect
    model: str
    endpoint: str | None = None
    account: str | None = None


class Message(Value, frozen=True):
    """One message. `status`, `origin`, `stop_reason` and `usage` belong to assistant messages.

    An assistant message without an origin was written outside mull; the caller vouches for it.
    `wire` holds what else its client wrote in it and in the blocks of an answer, which are replaced
    by the stored ones.
    """

    role: Role
    status: Status | None = None
    stop_reason: str | None = None
    origin: Origin | None = None
    blocks: tuple[Block, ...] = ()
    usage: Usage | None = None
    wire: Wire | None = None

    @property
    def text(self) -> str:
        """The visible text, in order."""
        return "".join([b.text for b in self.blocks if isinstance(b, TextBlock)])

    @property
    def thinking(self) -> tuple[ThinkingBlock, ...]:
        """The thinking blocks, in order."""
        if ThinkingBlock not in map(type, self.blocks):  # most messages, and several times each
            return ()
        return tuple([b for b in self.blocks if isinstance(b, ThinkingBlock)])

    @property
    def tool_calls(self) -> tuple[ToolCallBlock, ...]:
        """The tool calls, in order."""
        if ToolCallBlock not in map(type, self.blocks):
            return ()
        return tuple([b for b in self.blocks if isinstance(b, ToolCallBlock)])

    @property
    def carries_results(self) -> bool:
        """Whether it contains tool results; some APIs send results in the user's name."""
        if self.role != "user":
            return self.role == "tool"
        if not self.blocks or type(self.blocks[0]) is not ToolResultBlock:
            return False
        return _RESULTS.issuperset(map(type, self.blocks))

    @property
    def is_paused(self) -> bool:
        """Whether the provider paused this answer and will continue it in the next one."""
        return self.role == "assistant" and self.stop_reason in PAUSES

    @property
    def is_spoken(self) -> bool:
        """Whether it contains a message of the user; tool results do not count."""
        return self.role == "user" and not self.carries_results


def whole_system(system: str, messages: Sequence[Message]) -> tuple[str, tuple[Message, ...]]:
    """The system prompt with the instructions that the messages begin with, and the rest of them.
    A prompt in whose parts a client wrote more than text is read as such messages."""
    rest = tuple(dropwhile(lambda message: message.role == "system", messages))
    leading = (message.text for message in messages[: len(messages) - len(rest)])
    return "\n\n".join(filter(None, (system, *leading))), rest


def user(text: str) -> Message:
    """A user's message of plain text."""
    return Message(role="user", blocks=(TextBlock(text),))


def assistant(
    *blocks: Block,
    origin: Origin | None = None,
    status: Status = "complete",
    stop_reason: str | None = None,
    usage: Usage | None = None,
) -> Message:
    """An assistant's message of the given blocks."""
    return Message(
        role="assistant",
        status=status,
        stop_reason=stop_reason,
        origin=origin,
        blocks=blocks,
        usage=usage,
    )


_encoder = msgspec.json.Encoder()


@cache  # creating a decoder takes longer than importing this file
def _message() -> Reader[Message]:
    return Reader(Message)


@cache
def _messages() -> Reader[tuple[Message, ...]]:
    return Reader(tuple[Message, ...])


def message_to_json(message: Message) -> bytes:
    """The message as one line of JSON."""
    return _encoder.encode(message)


def message_from_json(data: bytes | str) -> Message:
    """The message that `message_to_json` wrote.

    Raises:
        ConfigError: the JSON is not a message; says where and why.
    """
    try:
        return _message()(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"not a message: {error}") from None


def messages_to_json(messages: Iterable[Message]) -> bytes:
    """Messages as a JSON array."""
    return _encoder.encode(list(messages))


def messages_from_json(data: bytes | str) -> tuple[Message, ...]:
    """The messages that `messages_to_json` wrote.

    Raises:
        ConfigError: the JSON is not a list of messages; says where and why.
    """
    try:
        return _messages()(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"not a list of messages: {error}") from None
