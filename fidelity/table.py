"""The table of cases: each scene, on the endpoints where it has been seen to fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from fidelity.content import (
    FIELDS,
    INTERLEAVED,
    blank_thought,
    empty_field,
    interleaved,
    mirrored,
    mirrored_details,
    observed_field,
    raw_reasoning,
    redacted,
    redacted_between,
    signed_calls,
    signed_text,
    signed_without_text,
    summaries,
)
from fidelity.endpoints import ENDPOINTS
from fidelity.requirements import (
    COUNTED,
    bound,
    counted,
    foreign_field,
    tag_in_thought,
    thought_only,
    unthinking_turn,
    usage_shapes,
)
from fidelity.rounds import compacted, parallel, resumed, switched, tool_round, two_rounds, unlisted
from fidelity.streams import (
    DELTAS,
    FRAMES,
    TAGS,
    broken,
    cut_off,
    delta_case,
    framed,
    json_in_thought,
    tagged,
)
from fidelity.wire import Json

__all__ = ["all_cases"]

CALLS = ("blocking", "streaming")

UNLISTED = {
    "anthropic": "claude-nova-9",
    "openai": "gpt-9-nova",
    "gemini": "gemini-9-pro",
    "kimi": "kimi-k9-preview",
    "deepseek": "deepseek-v9",
    "openrouter": "anthropic/claude-nova-9",
}

SWITCHES = (
    ("anthropic", "openai"),
    ("anthropic", "gemini"),
    ("anthropic", "kimi"),
    ("openai", "anthropic"),
    ("openai", "gemini"),
    ("gemini", "anthropic"),
    ("gemini", "deepseek"),
    ("kimi", "anthropic"),
    ("kimi", "openai"),
    ("deepseek", "gemini"),
    ("deepseek", "kimi"),
    ("openrouter", "openai"),
)

MAIN = ("anthropic", "openai", "gemini", "kimi", "deepseek", "openrouter")

_Scene = Callable[[str, str], Json]

BOTH: Mapping[_Scene, Sequence[str]] = {
    tool_round: tuple(ENDPOINTS),
    redacted: ("anthropic", "bedrock", "openrouter", "openai"),
    signed_without_text: ("anthropic", "openai", "gemini"),
    empty_field: ("kimi", "deepseek"),
    observed_field: tuple(FIELDS),
    interleaved: tuple(INTERLEAVED),
    counted: tuple(COUNTED),
}
"""Scenes that are played with a client's blocking and with its streaming call."""

STREAMED: Mapping[_Scene, Sequence[str]] = {
    two_rounds: tuple(ENDPOINTS),
    parallel: tuple(ENDPOINTS),
    resumed: tuple(ENDPOINTS),
    compacted: ("anthropic", "openai", "gemini", "kimi", "deepseek", "openrouter", "vllm"),
    redacted_between: ("anthropic", "openrouter"),
    blank_thought: ("anthropic", "kimi", "deepseek"),
    mirrored_details: ("openrouter",),
    tagged: tuple(TAGS),
    tag_in_thought: ("anthropic", "kimi", "openrouter", "vllm"),
    thought_only: ("anthropic", "kimi", "deepseek", "compatible"),
    unthinking_turn: ("deepseek", "gemini", "anthropic"),
    cut_off: ("anthropic", "gemini", "kimi", "compatible"),
}


def all_cases() -> Iterator[Json]:
    """Every case, in a fixed order."""
    for scene, names in BOTH.items():
        yield from (scene(name, way) for name in names for way in CALLS)
    for scene, names in STREAMED.items():
        yield from (scene(name, "streaming") for name in names)
    yield from (unlisted(name, model, "streaming") for name, model in UNLISTED.items())
    yield from (switched(first, other, "streaming") for first, other in SWITCHES)
    yield from (framed(name, frame) for name in MAIN[:4] for frame in FRAMES)
    yield from (delta_case(name) for name in DELTAS)
    yield from (broken(name, where) for name in MAIN[:4] for where in ("thought", "call", "error"))
    yield from (usage_shapes(shape) for shape in ("zeros-first", "with-finish"))
    single = (signed_text, signed_calls, mirrored, summaries, raw_reasoning, json_in_thought)
    yield from (scene(way) for scene in (*single, foreign_field, bound) for way in CALLS)
