"""How much of the context window the results of one round of tool calls may take.

The calls of one answer share half of what is still free, so that even text of twice the usual
density leaves the model room to go on. Tools measure text in bytes: no tokenizer is fast enough to
be asked after every line.
"""

from __future__ import annotations

__all__ = ["BYTES_PER_TOKEN", "LEAST", "result_allowance", "room"]

BYTES_PER_TOKEN = 3
"""Below what code and prose have, above what hex digits have."""
LEAST = 100
"""Tokens that a result always gets: less would not even say what was left out."""
_LEAST_SHARE = 8
"""A window that is nearly full is compressed before the next request: an eighth is free again."""


def result_allowance(usable: int | None, used: int, calls: int) -> int | None:
    """Tokens for each result of an answer with so many calls; None if the window is unknown."""
    if usable is None:
        return None
    free = max((usable - used) // 2, usable // _LEAST_SHARE)
    return max(LEAST, free // max(calls, 1))


def room(tokens: int | None, most: int) -> int:
    """Bytes of text for an allowance, at most `most`."""
    return most if tokens is None else min(most, max(tokens, LEAST) * BYTES_PER_TOKEN)
