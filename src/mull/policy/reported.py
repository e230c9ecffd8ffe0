"""What a provider said that a request held, and what follows from it for the next one.

A report is the best count there is: the next estimate is that count, moved by what changed since.
What changed is counted by characters, so that it does not matter which tokenizer was at hand then.
A report says nothing about another model, nor of an answer for which the endpoint ran tools of its
own: it adds up everything that they read.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from mull.history.log import Log
from mull.neutral.blocks import Block, OpaqueBlock, ThinkingBlock, Value
from mull.neutral.messages import Message, Origin
from mull.policy.tokens import CHARACTERS, MESSAGE_OVERHEAD, count_blocks

__all__ = ["Reported", "corrected", "last_report"]

LOOKED_AT = 100
"""Messages that are searched for the last report."""
TELLING = 2000
"""Tokens by characters from which a request says how many of them a token has. In a smaller one
the difference is mostly what the endpoint adds to every request."""
LEAST_RATE, MOST_RATE = 0.25, 2.0
"""Tokens for one that was counted by characters."""
LEAST_SHARE = 0.5
"""How much of our own count the estimate is at least: what is hidden can only add to it."""


class Reported(Value, frozen=True):
    """What one request was counted to hold, by characters, and what its provider said it held."""

    counted: int
    input: int


def last_report(log: Log, origin: Origin, characters: int) -> Reported | None:
    """What this origin reported of the last request it answered, if that is still in use.

    `characters` is what the next request holds. Where nobody wrote down what the answered one was
    counted to hold, it is that without what was said since.
    """
    since = 0
    for entry in islice(log.newest(), LOOKED_AT):
        message = entry.message
        since += MESSAGE_OVERHEAD + count_blocks(_spoken(message), CHARACTERS)
        if message.origin != origin or message.usage is None or not message.usage.input:
            continue
        if not any(isinstance(block, OpaqueBlock) for block in message.blocks):
            counted = max(characters - since, 1) if entry.counted is None else entry.counted
            return Reported(counted, message.usage.input)
    return None


def _spoken(message: Message) -> Iterator[Block]:
    return (block for block in message.blocks if not isinstance(block, ThinkingBlock))


def corrected(tokens: int, characters: int, last: Reported) -> int:
    """The estimate for a request of so many `tokens` by our own count, and by `characters`."""
    rate = tokens / characters if characters else 1.0
    if last.counted >= TELLING:
        rate = min(max(last.input / last.counted, LEAST_RATE), MOST_RATE)
    moved = last.input + (characters - last.counted) * rate
    return round(max(moved, tokens * LEAST_SHARE))
