"""Amazon Bedrock's Converse: content blocks without types, streamed as binary messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mull.neutral.messages import Dialect
from mull.neutral.traits import Traits

if TYPE_CHECKING:
    from mull.dialects.bedrock_converse import answer, asked, decode, encode, history, replay
    from mull.dialects.codec import Codec

    CODEC = Codec(encode, decode, replay, answer, asked, history, None)

__all__ = ["DIALECT", "TRAITS"]

DIALECT: Dialect = "bedrock-converse"
TRAITS = Traits(
    "anthropic-budget",
    "signed",
    "thoughts",
    needs_limit="budget",
    off_forbids_thoughts=True,
    needs_follower="any",
    call_ids="tooluse_",
    closes_objects=True,
    needs_schema=True,
    strict_tools="closed",
    parameters={
        "temperature": ("inferenceConfig.temperature",),
        "top_p": ("inferenceConfig.topP",),
        "top_k": (
            "additionalModelRequestFields.top_k",
            "additionalModelRequestFields.inferenceConfig.topK",
        ),
        "stop": ("inferenceConfig.stopSequences",),
        "metadata": ("requestMetadata",),
    },
    ranges={"temperature": (0, 1)},
    thinking_ranges={"temperature": (1, 1), "top_p": (0.95, 1), "top_k": ()},
    defaults={"parallel_calls": True},
    blank_stops=False,
)
