"""The OpenAI Responses API and the servers that speak it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mull.neutral.messages import Dialect
from mull.neutral.traits import Traits

if TYPE_CHECKING:
    from mull.dialects.codec import Codec
    from mull.dialects.openai_responses import (
        answer,
        asked,
        decode,
        encode,
        history,
        replay,
        surface,
    )

    CODEC = Codec(encode, decode, replay, answer, asked, history, surface)

__all__ = ["DIALECT", "TRAITS"]

DIALECT: Dialect = "openai-responses"
TRAITS = Traits(
    "responses",
    "items",
    "summary",
    needs_follower="own",
    api="Responses API",
    buffer=25_000,
    answer_ids="resp_",
    envelope="encrypted",
    strict_tools="whole",
    parameters={
        "temperature": ("temperature",),
        "top_p": ("top_p",),
        "parallel_calls": ("parallel_tool_calls",),
        "verbosity": ("text.verbosity",),
        "user": ("user",),
        "metadata": ("metadata",),
        "cache_key": ("prompt_cache_key",),
    },
    ranges={"temperature": (0, 2)},
    defaults={"temperature": 1, "top_p": 1, "parallel_calls": True},
    id_length=64,
    headers=frozenset({"openai-beta", "x-codex-beta-features"}),
    attended=frozenset({"context_management", "store"}),
    usual={
        "background": False,
        "include": ["reasoning.encrypted_content"],
        "service_tier": "auto",
        "top_logprobs": 0,
        "truncation": "disabled",
    },
    unserved=frozenset({"include.message.output_text.logprobs", "top_logprobs"}),
    unneeded=frozenset(
        {
            "client_metadata",
            "context_management",
            "input[].content[].annotations",
            "input[].content[].detail",
            "input[].content[].logprobs",
            "input[].id",
            "input[].internal_chat_message_metadata_passthrough",
            "input[].output[].detail",
            "input[].status",
            "store",
            "stream_options",
            "stream_options.include_obfuscation",
        }
    ),
)
