"""OpenAI Chat Completions and the many servers that speak it in their own way."""

from __future__ import annotations

from mull.neutral.messages import Dialect

__all__ = ["DIALECT"]

DIALECT: Dialect = "openai-chat"
