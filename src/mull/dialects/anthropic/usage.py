"""Token counts of the Messages API in the neutral meaning.

The wire counts what was read from the cache and what was written to it beside `input_tokens`;
neutral `input` is everything the model read, the cached parts included. Thinking is part of
`output_tokens`. Counts in a stream are cumulative: a later one replaces an earlier one.
"""

from __future__ import annotations

from typing import Any

from mull.neutral.usage import Usage

__all__ = ["merge_counts", "read_usage"]


def merge_counts(held: dict[str, Any], more: Any) -> bool:
    """Take later counts into earlier ones; whether there were any."""
    if not isinstance(more, dict):
        return False
    for name, value in more.items():
        # Proxies that know only one side of the bill put 0 for the other.
        if value is None or (value == 0 and held.get(name)):
            continue
        held[name] = value
    return bool(more)


def read_usage(counts: dict[str, Any]) -> Usage:
    """The counts so far; what was not said is unknown."""
    fresh, output = _count(counts, "input_tokens"), _count(counts, "output_tokens")
    cache_read = _count(counts, "cache_read_input_tokens")
    cache_write = _count(counts, "cache_creation_input_tokens")
    spent = None if fresh is None else fresh + (cache_read or 0) + (cache_write or 0)
    details = counts.get("output_tokens_details")
    return Usage(
        input=spent,
        output=output,
        reasoning=_count(details, "thinking_tokens") if isinstance(details, dict) else None,
        total=None if spent is None or output is None else spent + output,
        cache_read=cache_read,
        cache_write=cache_write,
    )


def _count(counts: dict[str, Any], name: str) -> int | None:
    value = counts.get(name)
    return value if type(value) is int and value >= 0 else None
