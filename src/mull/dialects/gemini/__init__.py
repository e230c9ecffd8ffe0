"""Gemini's generateContent and streamGenerateContent, at the Gemini API and at Vertex AI."""

from __future__ import annotations

from mull.neutral.messages import Dialect

__all__ = ["DIALECT"]

DIALECT: Dialect = "gemini"
