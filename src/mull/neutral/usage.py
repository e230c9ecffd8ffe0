"""Token counts as providers report them, with one meaning for all.

`input` is everything the model read, cached or not; `cache_read` and `cache_write` are parts of it.
`output` is everything the model produced, including reasoning; `reasoning` is that part. Dialects
whose wire counts reasoning beside the output (Gemini) add it before they build this value, so it is
counted once everywhere. Unknown is None, never 0.
"""

from __future__ import annotations

from msgspec.structs import astuple

from mull.neutral.blocks import Value

__all__ = ["Usage", "add_usage"]


class Usage(Value, frozen=True, omit_defaults=False):
    """What one answer cost, as reported by the provider."""

    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    total: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None


def add_usage(one: Usage | None, other: Usage | None) -> Usage | None:
    """The sum of two answers; a count that one of them did not report is unknown."""
    if one is None or other is None:
        return None
    pairs = zip(astuple(one), astuple(other), strict=True)
    return Usage(*(None if a is None or b is None else a + b for a, b in pairs))
