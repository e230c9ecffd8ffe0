"""What a provider reported for a request, and what follows for the next one.

A report is the best count available: the next estimate is that count, adjusted by what changed
since. The change is counted by characters, so that it does not matter which tokenizer was available
then. A report says nothing about another model, nor about an answer for which the endpoint ran its
own tools: it includes everything they read.
"""

from __future__ import annotations

from itertools import islice

from mull.history.log import Log
from mull.neutral.blocks import OpaqueBlock, ThinkingBlock, Value
from mull.neutral.messages import Message, Origin
from mull.policy.tokens import CHARACTERS, MESSAGE_OVERHEAD, count_blocks

__all__ = ["Reported", "corrected", "last_report"]

LOOKED_AT = 100
"""Messages searched for the last report."""
TELLING = 2000
"""Tokens by characters above which a request shows how many characters a token has. In a smaller
one the difference is mostly what the endpoint adds to every request.
"""
LEAST_RATE, MOST_RATE = 0.25, 2.0
"""Tokens per token counted by characters."""
LEAST_SHARE = 0.5
"""The minimum of the estimate relative to our own count without thinking: hidden content can only
add to it, but an endpoint may discard thinking that it is sent.
"""


class Reported(Value, frozen=True):
    """What one request was counted to contain, by characters, and what its provider reported."""

    counted: int
    input: int


def last_report(log: Log, origin: Origin, characters: int) -> Reported | None:
    """What this origin reported for the last request it answered, if that is still in use.

    `characters` is what the next request contains. If the count of the answered request was not
    recorded, it is that without the messages since.
    """
    since: list[Message] = []
    for entry in islice(log.newest(), LOOKED_AT):
        message = entry.message
        since.append(message)
        if message.usage is None or not message.usage.input or message.origin != origin:
            continue
        if not any(isinstance(block, OpaqueBlock) for block in message.blocks):
            counted = entry.counted
            if counted is None:
                counted = max(characters - sum(map(_spoken, since)), 1)
            return Reported(counted, message.usage.input)
    return None


def _spoken(message: Message) -> int:
    """What a message costs without its thoughts."""
    said = [block for block in message.blocks if not isinstance(block, ThinkingBlock)]
    return MESSAGE_OVERHEAD + count_blocks(said, CHARACTERS)


def corrected(tokens: int, characters: int, last: Reported, thinking: int = 0) -> int:
    """The estimate for a request of so many `tokens` by our own count, and by `characters`;
    `thinking` are those of earlier thinking.
    """
    rate = tokens / characters if characters else 1.0
    if last.counted >= TELLING:
        rate = min(max(last.input / last.counted, LEAST_RATE), MOST_RATE)
    moved = last.input + (characters - last.counted) * rate
    return round(max(moved, (tokens - thinking) * LEAST_SHARE))
