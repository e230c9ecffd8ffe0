"""OpenAI Chat Completions and the many servers that speak it in their own way."""

from __future__ import annotations

from mull.neutral.messages import Dialect
from mull.neutral.traits import Traits

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
)
