"""Gemini's generateContent and streamGenerateContent, at the Gemini API and at Vertex AI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mull.neutral.messages import Dialect
from mull.neutral.traits import Traits

if TYPE_CHECKING:
    from mull.dialects.codec import Codec
    from mull.dialects.gemini import answer, asked, decode, encode, history, replay, surface

    CODEC = Codec(encode, decode, replay, answer, asked, history, surface)

__all__ = ["DIALECT", "TRAITS"]

DIALECT: Dialect = "gemini"
TRAITS = Traits(
    "gemini-budget",
    "parts",
    "asked",
    key_header="x-goog-api-key",
    needs_carriers_only=True,
    marks_calls=True,
    tool_names="[a-zA-Z_][a-zA-Z0-9_.-]{0,63}",
    signs_calls=True,
    parameters={
        "temperature": ("generationConfig.temperature",),
        "top_p": ("generationConfig.topP",),
        "top_k": ("generationConfig.topK",),
        "presence_penalty": ("generationConfig.presencePenalty",),
        "frequency_penalty": ("generationConfig.frequencyPenalty",),
        "seed": ("generationConfig.seed",),
        "stop": ("generationConfig.stopSequences",),
    },
    ranges={"temperature": (0, 2), "seed": (-(2**31), 2**31 - 1)},
    defaults={"temperature": 1, "top_p": 0.95, "top_k": 64, "parallel_calls": True},
    unserved=frozenset(
        {
            "generationConfig.candidateCount",
            "generationConfig.logprobs",
            "generationConfig.responseLogprobs",
        }
    ),
    usual={
        "generationConfig.candidateCount": 1,
        "generationConfig.logprobs": 0,
        "generationConfig.responseLogprobs": False,
        "generationConfig.responseModalities": ["TEXT"],
    },
    unneeded=frozenset({"contents[].parts[].functionResponse.name", "labels", "model"}),
)
