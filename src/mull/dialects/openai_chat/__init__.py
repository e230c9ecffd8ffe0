"""OpenAI Chat Completions and the many servers that implement it in their own way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mull.neutral.messages import Dialect
from mull.neutral.traits import Traits

if TYPE_CHECKING:
    from mull.dialects.codec import Codec
    from mull.dialects.openai_chat import answer, asked, decode, encode, history, replay, surface

    CODEC = Codec(encode, decode, replay, answer, asked, history, surface)

__all__ = ["DIALECT", "TRAITS"]

DIALECT: Dialect = "openai-chat"
TRAITS = Traits(
    "openai-effort",
    "fields",
    "switch",
    takes_fillers=True,
    tools_api="openai-responses",
    answer_ids="chatcmpl-",
    envelope="encrypted",
    strict_tools="whole",
    parameters={
        "temperature": ("temperature",),
        "top_p": ("top_p",),
        "top_k": ("top_k",),
        "presence_penalty": ("presence_penalty",),
        "frequency_penalty": ("frequency_penalty",),
        "seed": ("seed", "random_seed"),
        "stop": ("stop",),
        "parallel_calls": ("parallel_tool_calls",),
        "verbosity": ("verbosity",),
        "user": ("user",),
        "cache_key": ("prompt_cache_key",),
    },
    ranges={"temperature": (0, 2)},
    defaults={
        "temperature": 1,
        "top_p": 1,
        "presence_penalty": 0,
        "frequency_penalty": 0,
        "parallel_calls": True,
    },
    id_length=64,
    headers=frozenset({"openai-beta"}),
    attended=frozenset({"store"}),
    unserved=frozenset({"audio", "logprobs", "modalities", "n", "top_logprobs"}),
    usual={
        "logprobs": False,
        "modalities": ["text"],
        "n": 1,
        "service_tier": "auto",
        "store": False,
        "top_logprobs": 0,
    },
    unneeded=frozenset(
        {
            "messages[].tool_calls[].index",
            "metadata",
            "stream_options",
            "stream_options.include_obfuscation",
            "thinking.keep",
        }
    ),
)
