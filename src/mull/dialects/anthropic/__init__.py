"""Anthropic Messages: typed content blocks in both directions, signed thinking among them."""

from __future__ import annotations

from mull.neutral.messages import Dialect

__all__ = ["DIALECT"]

DIALECT: Dialect = "anthropic"
