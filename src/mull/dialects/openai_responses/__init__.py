"""The OpenAI Responses API and the servers that speak it."""

from __future__ import annotations

from mull.neutral.messages import Dialect
from mull.neutral.traits import Traits

__all__ = ["DIALECT", "TRAITS"]

DIALECT: Dialect = "openai-responses"
TRAITS = Traits(
    "responses",
    "items",
    "summary",
    needs_follower=True,
    api="Responses API",
    buffer=25_000,
    answer_ids="resp_",
    envelope="encrypted",
)
