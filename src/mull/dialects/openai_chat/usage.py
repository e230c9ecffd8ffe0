"""Token counts from wherever a server of this dialect puts them.

Names differ more than places: each count is the first of its known names. Reasoning is a part of
`completion_tokens`, except where the total shows that it was counted beside them (xAI, Perplexity).
"""

from __future__ import annotations

from typing import Any

from mull.neutral.usage import Usage

__all__ = ["find_usage", "read_usage"]


def find_usage(chunk: dict[str, Any]) -> dict[str, Any] | None:
    """The usage object of a chunk or response: at the top, in a choice, or in `x_groq`."""
    usage = chunk.get("usage")
    if usage and isinstance(usage, dict):
        return usage
    choices = chunk.get("choices")
    places = [*choices] if isinstance(choices, list) else []
    places.append(chunk.get("x_groq"))
    for place in places:
        usage = place.get("usage") if isinstance(place, dict) else None
        if usage and isinstance(usage, dict):
            return usage
    return None


def read_usage(raw: dict[str, Any]) -> Usage:
    """The counts in mull's meaning: output includes reasoning, unknown is None."""
    prompt = _details(raw, "prompt_tokens_details", "input_tokens_details")
    completion = _details(raw, "completion_tokens_details", "output_tokens_details")
    given = _count(raw, "prompt_tokens", "input_tokens")
    output = _count(raw, "completion_tokens", "output_tokens")
    total = _count(raw, "total_tokens")
    reasoning = _first(_count(completion, "reasoning_tokens"), _count(raw, "reasoning_tokens"))
    if reasoning and output is not None:
        if given is not None and total == given + output + reasoning:
            output += reasoning
        else:
            # Some servers count a token or two more thoughts than answer (vercel/ai 83e6510).
            reasoning = min(reasoning, output)
    return Usage(
        input=given,
        output=output,
        reasoning=reasoning,
        total=total,
        cache_read=_first(
            _count(prompt, "cached_tokens"),
            _count(raw, "prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens"),
        ),
        cache_write=_first(
            _count(prompt, "cache_write_tokens", "cache_creation_tokens"),
            _count(raw, "cache_creation_input_tokens"),
        ),
    )


def _details(raw: dict[str, Any], *names: str) -> dict[str, Any]:
    for name in names:
        found = raw.get(name)
        if isinstance(found, dict):
            return found
    return {}


def _count(raw: dict[str, Any], *names: str) -> int | None:
    for name in names:
        value = raw.get(name)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return None


def _first(*counts: int | None) -> int | None:
    return next((count for count in counts if count is not None), None)
