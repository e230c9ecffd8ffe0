"""How much of the context window the results of one round of tool calls may take.

The calls of one answer share half of the free space, so that even text of twice the usual density
leaves the model room to continue. Tools measure text in bytes: no tokenizer is fast enough to be
called after every line.
"""

from __future__ import annotations

__all__ = ["BYTES_PER_TOKEN", "LEAST", "result_allowance", "room"]

BYTES_PER_TOKEN = 3
"""Bytes per token: below those of code and prose, above those of hex digits."""
LEAST = 100
"""Minimum tokens of a result: less would not even say what was left out."""
_LEAST_SHARE = 8
"""A nearly full window is compressed before the next request: then an eighth is free again."""


def result_allowance(usable: int | None, used: int, calls: int) -> int | None:
    """Tokens for each result of an answer with this many calls; None if the window is unknown."""
    if usable is None:
        return None
    free = max((usable - used) // 2, usable // _LEAST_SHARE)
    return max(LEAST, free // max(calls, 1))


def room(tokens: int | None, most: int) -> int:
    """Bytes of text for an allowance, at most `most`."""
    return most if tokens is None else min(most, max(tokens, LEAST) * BYTES_PER_TOKEN)
