"""Which thinking of a history is sent: strip first, then include (BR-005).

A turn runs from one user message to the next, with all its tool rounds, so that a tool chain never
loses its own earlier steps. Messages are never changed: filtering returns copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import msgspec

from mull.neutral.blocks import ThinkingBlock
from mull.neutral.messages import Message

__all__ = [
    "StripPolicy",
    "extract_thinking_blocks",
    "filter_thinking_for_context",
    "has_thinking",
    "starts_turn",
    "thinking_to_reasoning_field",
    "turn_start",
    "without_thinking",
]

StripPolicy: TypeAlias = Literal["all", "allButLast", "none"]


def extract_thinking_blocks(content: Message | Iterable[Message]) -> tuple[ThinkingBlock, ...]:
    """All thinking blocks of a message or of several, in order (REQ-THINK-002.1)."""
    messages = (content,) if isinstance(content, Message) else content
    return tuple(block for message in messages for block in message.thinking)


def filter_thinking_for_context(
    messages: Sequence[Message], policy: StripPolicy
) -> tuple[Message, ...]:
    """The messages with the thinking that the strip policy keeps (REQ-THINK-002.2).

    `allButLast` keeps the last turn that has thinking. Messages that lose nothing are the same
    objects as before.
    """
    if policy == "none":
        return tuple(messages)
    kept = _last_thinking_turn(messages) if policy == "allButLast" else range(0)
    return tuple(
        message if at in kept else without_thinking(message) for at, message in enumerate(messages)
    )


def thinking_to_reasoning_field(blocks: Iterable[ThinkingBlock]) -> str | None:
    """The blocks as one reasoning string, or None if nothing is left (REQ-THINK-002.3, EC-007).

    Chunks of raw reasoning are joined as they came; parts of a summary are paragraphs.
    """
    text = ""
    for block in blocks:
        between = "\n\n" if text and block.kind == "summary" else ""
        text += between + block.thought if block.thought else ""
    return text or None


def starts_turn(message: Message) -> bool:
    """Whether a turn starts here on the wire: with a message in the user's name."""
    return message.is_spoken


def turn_start(messages: Sequence[Message]) -> int:
    """Where the last turn starts; everything before it is complete."""
    starts = (at for at in range(len(messages) - 1, -1, -1) if starts_turn(messages[at]))
    return next(starts, 0)


def has_thinking(message: Message) -> bool:
    """Whether there is thinking that could be shown or sent."""
    thinking = message.thinking
    return bool(thinking) and any(not block.is_blank for block in thinking)


def without_thinking(message: Message) -> Message:
    """The message without its thinking; the same object if it has none."""
    blocks = tuple(b for b in message.blocks if not isinstance(b, ThinkingBlock))
    if len(blocks) == len(message.blocks):
        return message
    return msgspec.structs.replace(message, blocks=blocks)


def _last_thinking_turn(messages: Sequence[Message]) -> range:
    end = len(messages)
    found = False
    for at in range(len(messages) - 1, -1, -1):
        found = found or has_thinking(messages[at])
        if starts_turn(messages[at]):
            if found:
                return range(at, end)
            end = at
    return range(0, end if found else 0)
