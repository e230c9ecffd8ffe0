"""Anthropic Messages: typed content blocks in both directions, signed thinking among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mull.neutral.messages import Dialect
from mull.neutral.traits import Traits

if TYPE_CHECKING:
    from mull.dialects.anthropic import answer, asked, decode, encode, history, replay, surface
    from mull.dialects.codec import Codec

    CODEC = Codec(encode, decode, replay, answer, asked, history, surface)

__all__ = ["DIALECT", "TRAITS"]

DIALECT: Dialect = "anthropic"
TRAITS = Traits(
    "anthropic-budget",
    "signed",
    "pings",
    key_header="x-api-key",
    needs_limit="always",
    off_forbids_thoughts=True,
    needs_follower="any",
    takes_fillers=True,
    tool_names="[a-zA-Z0-9_-]{1,128}",
    answer_ids="msg_",
    call_ids="toolu_",
    closes_objects=True,
    needs_schema=True,
    strict_tools="closed",
    parameters={
        "temperature": ("temperature",),
        "top_p": ("top_p",),
        "top_k": ("top_k",),
        "stop": ("stop_sequences",),
        "parallel_calls": ("!tool_choice.disable_parallel_tool_use",),
        "user": ("metadata.user_id",),
    },
    ranges={"temperature": (0, 1)},
    thinking_ranges={"temperature": (1, 1), "top_p": (0.95, 1), "top_k": ()},
    defaults={"temperature": 1, "parallel_calls": True},
    id_length=256,
    blank_stops=False,
    headers=frozenset({"anthropic-beta"}),
    usual={
        "service_tier": "auto",
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    },
    unneeded=frozenset(
        {
            "messages[].content[].cache_control",
            "messages[].content[].content[].cache_control",
            "messages[].content[].content[]",
            "messages[].content[].caller",
            "system[].cache_control",
            "thinking.display",
            "cache_control",
            "tools[].cache_control",
            "tools[].defer_loading",
            "tools[].eager_input_streaming",
        }
    ),
)
