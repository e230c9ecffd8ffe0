"""What one request does differently from what was asked, because the endpoint rejected it.

A lesson applies from now on; an amendment applies once. Settings, log and target stay unchanged:
`prepare` makes the request from them and leaves out, or lowers, what the amendment names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from mull.dialects.extras import bare_tool, without_extras
from mull.dialects.registry import replay
from mull.neutral.blocks import (
    Block,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Value,
)
from mull.neutral.messages import Dialect, Message
from mull.neutral.parameters import PARAMETERS, ParameterName, Parameters
from mull.neutral.request import RequestOptions
from mull.policy.reasoning import turn_start
from mull.policy.reported import Reported

__all__ = ["UNAMENDED", "Amendment", "Part", "amend_messages", "amend_options", "thought_name"]

Part: TypeAlias = (
    ParameterName
    | Literal[
        "thinking",
        "budget",
        "summary",
        "tool_choice",
        "whole_answer",
        "reasoning_field",
        "empty_end",
        "native_format",
        "extras",
    ]
)
"""What a request can do without: any thinking; the number or the summary it asks for; values from
the caller; a non-streamed answer; the user's own field for reasoning; an empty answer at the end;
the endpoint's own mechanism for schemas; fields specific to its dialect.
"""


class Amendment(Value, frozen=True):
    """What is different this once.

    `limit` is the maximum tokens of the answer, including thinking: any larger number is lowered.
    `thoughts` are left out by their `thought_name`, `keys` are not sent back with earlier answers,
    and `marks_calls` marks this turn's unsigned calls as not the model's own. `counted` is the true
    count of a request that was too long, newer than any report in the log. `calls` makes all tool
    calls take their plainest form, or become text.
    """

    without: frozenset[Part] = frozenset()
    limit: int | None = None
    thoughts: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()
    marks_calls: bool = False
    counted: Reported | None = None
    calls: Literal["plain", "text"] | None = None


UNAMENDED = Amendment()
_UNSAID = Parameters()


def thought_name(thought: ThinkingBlock) -> str:
    """A short name for a thinking block as it is sent; equal blocks have the same name."""
    from hashlib import blake2b

    return blake2b(msgspec.json.encode(thought, order="sorted"), digest_size=8).hexdigest()


def amend_options(options: RequestOptions, amendment: Amendment) -> RequestOptions:
    """The caller's options as far as they apply."""
    changes: dict[str, Any] = {}
    if "thinking" in amendment.without:
        changes["least_thinking"] = True
    for name in amendment.without.intersection(PARAMETERS):
        changes[name] = getattr(_UNSAID, name)
    if "tool_choice" in amendment.without:
        changes["tool_choice"] = None
    if "native_format" in amendment.without:
        changes["plain_format"] = True
    if "extras" in amendment.without:
        changes["wire"], changes["headers"] = None, {}
        changes["tools"] = tuple(map(bare_tool, options.tools))
    if "whole_answer" in amendment.without:
        changes["stream"] = True
    if amendment.limit is not None and options.max_tokens is not None:
        changes["max_tokens"] = min(options.max_tokens, amendment.limit)
    return replace(options, **changes) if changes else options


def amend_messages(
    messages: Sequence[Message],
    amendment: Amendment,
    dialect: Dialect,
    refused: frozenset[str] = frozenset(),
) -> Sequence[Message]:
    """The messages of a view as they are sent, without the keys that the endpoint refused before;
    the same object if nothing is amended."""
    if amendment == UNAMENDED and not refused:
        return messages
    amended = list(messages)
    if refused or "extras" in amendment.without:
        names = None if "extras" in amendment.without else refused
        bare = (without_extras(one, names) for one in amended)
        amended = [new for new, old in zip(bare, amended, strict=True) if new is old or new.blocks]
    if "empty_end" in amendment.without and amended and says_nothing(amended[-1]):
        amended.pop()
    if amendment.keys:
        amended = [_without_keys(one, amendment.keys, dialect) for one in amended]
    if amendment.marks_calls:
        start = turn_start(amended)
        amended[start:] = map(replay(dialect).marked, amended[start:])
    if amendment.calls == "plain":
        amended = [_with_plain_calls(one) for one in amended]
    elif amendment.calls == "text":
        amended = _calls_as_text(amended)
    same = len(amended) == len(messages) and all(map(_is_same, amended, messages))
    return messages if same else tuple(amended)


def says_nothing(message: Message) -> bool:
    """Whether it is an answer without text or calls; one with text is the user's own prefill."""
    return message.role == "assistant" and all(
        isinstance(block, ThinkingBlock)
        or (isinstance(block, TextBlock) and not block.text.strip())
        for block in message.blocks
    )


def _without_keys(message: Message, keys: frozenset[str], dialect: Dialect) -> Message:
    """The answer without these keys; the same object if it has none."""
    if message.role != "assistant":
        return message
    blocks = tuple(replay(dialect).without_keys(block, keys) for block in message.blocks)
    same = all(map(_is_same, blocks, message.blocks))
    return message if same else replace(message, blocks=blocks)


def _with_plain_calls(message: Message) -> Message:
    if not message.tool_calls:
        return message
    blocks = tuple(map(_plain_call, message.blocks))
    same = all(map(_is_same, blocks, message.blocks))
    return message if same else replace(message, blocks=blocks)


def _plain_call(block: Block) -> Block:
    """A call with what every API supports: a plain name, and an object encoded by us."""
    if not isinstance(block, ToolCallBlock):
        return block
    name = re.sub(r"\W", "_", block.name, flags=re.ASCII).lstrip("_0123456789")[:64] or "tool"
    if name == block.name and block.arguments is None:
        return block
    return replace(block, name=name, arguments=None)


def _calls_as_text(messages: Sequence[Message]) -> list[Message]:
    """The calls and results of a conversation as text."""
    names: dict[str, str] = {}
    out: list[Message] = []
    for message in messages:
        blocks: list[Block] = []
        for block in message.blocks:
            if isinstance(block, ToolCallBlock):
                names[block.id] = block.name
                given = msgspec.json.encode(block.input).decode()
                block = TextBlock(f"\n\n(Called {block.name} with {given})")
            elif isinstance(block, ToolResultBlock):
                name = names.get(block.call_id, "a tool")
                blocks += block.media
                block = TextBlock(f"(Result of {name})\n{block.output}")
            blocks.append(block)
        role = "user" if message.role == "tool" else message.role
        same = all(map(_is_same, blocks, message.blocks))
        out.append(message if same else replace(message, role=role, blocks=tuple(blocks)))
    return out


def _is_same(one: object, other: object) -> bool:
    return one is other
