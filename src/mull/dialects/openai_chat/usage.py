"""Token counts from wherever a server of this dialect puts them.

Names differ more than places: each count is the first of its known names. Reasoning is a part of
`completion_tokens`, unless the total shows that it was counted beside them (xAI, Perplexity).
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from mull.dialects.tables import Counts
from mull.neutral.usage import Usage

__all__ = ["find_usage", "read_usage", "write_usage"]

_COUNTS = Counts(
    ("input", "prompt_tokens", "input_tokens"),
    ("output", "completion_tokens", "output_tokens"),
    ("total", "total_tokens"),
    (
        "reasoning",
        "completion_tokens_details.reasoning_tokens",
        "output_tokens_details.reasoning_tokens",
        "reasoning_tokens",
    ),
    (
        "cache_read",
        "prompt_tokens_details.cached_tokens",
        "input_tokens_details.cached_tokens",
        "prompt_cache_hit_tokens",
        "cached_tokens",
        "cache_read_input_tokens",
    ),
    (
        "cache_write",
        "prompt_tokens_details.cache_write_tokens",
        "prompt_tokens_details.cache_creation_tokens",
        "input_tokens_details.cache_write_tokens",
        "input_tokens_details.cache_creation_tokens",
        "cache_creation_input_tokens",
    ),
)


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
    read = _COUNTS.read(raw)
    given, output, reasoning = read["input"], read["output"], read["reasoning"]
    if reasoning and output is not None:
        if given is not None and read["total"] == given + output + reasoning:
            output += reasoning
        else:
            # Some servers count slightly more thinking than output (vercel/ai 83e6510).
            reasoning = min(reasoning, output)
    return Usage(**{**read, "output": output, "reasoning": reasoning})


def write_usage(usage: Usage) -> dict[str, Any]:
    """The known counts; clients expect the first three, so these are always there."""
    always = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    return {**always, **_COUNTS.write(asdict(usage))}
