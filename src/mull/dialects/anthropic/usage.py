"""Token counts of the Messages API in the neutral meaning.

The wire counts tokens read from and written to the cache beside `input_tokens`; neutral `input` is
everything the model read, including the cached parts. Thinking is part of `output_tokens`. Counts
in a stream are cumulative: a later one replaces an earlier one.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from mull.dialects.tables import Counts
from mull.neutral.usage import Usage

__all__ = ["merge_counts", "read_usage", "write_usage"]

_COUNTS = Counts(
    ("input", "input_tokens"),
    ("output", "output_tokens"),
    ("reasoning", "output_tokens_details.thinking_tokens"),
    ("cache_read", "cache_read_input_tokens"),
    ("cache_write", "cache_creation_input_tokens"),
)


def merge_counts(held: dict[str, Any], more: Any) -> bool:
    """Merge later counts into earlier ones; returns whether there were any."""
    if not isinstance(more, dict):
        return False
    for name, value in more.items():
        # Proxies that know only one side of the bill send 0 for the other.
        if value is None or (value == 0 and held.get(name)):
            continue
        held[name] = value
    return bool(more)


def read_usage(counts: dict[str, Any]) -> Usage:
    """The counts so far; missing ones are unknown."""
    read = _COUNTS.read(counts)
    fresh, output = read["input"], read["output"]
    cached = (read["cache_read"] or 0) + (read["cache_write"] or 0)
    spent = None if fresh is None else fresh + cached
    total = None if spent is None or output is None else spent + output
    return Usage(**{**read, "input": spent, "total": total})


def write_usage(usage: Usage) -> dict[str, Any]:
    """The known counts; the wire has no field for a total."""
    counts = asdict(usage)
    if usage.input is not None:
        cached = (usage.cache_read or 0) + (usage.cache_write or 0)
        counts["input"] = max(0, usage.input - cached)
    return _COUNTS.write(counts)
