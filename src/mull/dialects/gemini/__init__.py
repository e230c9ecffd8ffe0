"""Gemini's generateContent and streamGenerateContent, at the Gemini API and at Vertex AI."""

from __future__ import annotations

from mull.neutral.messages import Dialect
from mull.neutral.traits import Traits

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
)
