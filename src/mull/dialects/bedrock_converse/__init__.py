"""Amazon Bedrock's Converse: content blocks without types, streamed as binary messages."""

from __future__ import annotations

from mull.neutral.messages import Dialect

__all__ = ["DIALECT"]

DIALECT: Dialect = "bedrock-converse"
