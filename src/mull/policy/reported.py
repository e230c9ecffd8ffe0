"""What a provider said that a request held, and what follows from it for the next one.

A report is the best count there is: the next estimate is that count, moved by what changed since.
What changed is counted by characters, so that it does not matter which tokenizer was at hand then.
A report says nothing about another model, nor of an answer for which the endpoint ran tools of its
own: it adds up everything that they read.
"""

from __future__ import annotations

from itertools import islice

from mull.history.log import Log
from mull.neutral.blocks import OpaqueBlock, Value
from mull.neutral.messages import Origin

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


def last_report(log: Log, origin: Origin) -> Reported | None:
    """What this origin reported of the last request it answered, if that is still in use."""
    for entry in islice(log.newest(), LOOKED_AT):
        message = entry.message
        if entry.counted is None or message.origin != origin or message.usage is None:
            continue
        if message.usage.input and not any(isinstance(b, OpaqueBlock) for b in message.blocks):
            return Reported(entry.counted, message.usage.input)
    return None


def corrected(tokens: int, characters: int, last: Reported) -> int:
    """The estimate for a request of so many `tokens` by our own count, and by `characters`."""
    rate = tokens / characters if characters else 1.0
    if last.counted >= TELLING:
        rate = min(max(last.input / last.counted, LEAST_RATE), MOST_RATE)
    moved = last.input + (characters - last.counted) * rate
    return round(max(moved, tokens * LEAST_SHARE))
