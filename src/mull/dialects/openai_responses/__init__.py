"""The OpenAI Responses API and the servers that speak it."""

from __future__ import annotations

from mull.neutral.messages import Dialect

__all__ = ["DIALECT"]

DIALECT: Dialect = "openai-responses"
