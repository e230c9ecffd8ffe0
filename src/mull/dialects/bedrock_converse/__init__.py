"""Amazon Bedrock's Converse: content blocks without types, streamed as binary messages."""

from __future__ import annotations

from mull.neutral.messages import Dialect
from mull.neutral.traits import Traits

__all__ = ["DIALECT", "TRAITS"]

DIALECT: Dialect = "bedrock-converse"
TRAITS = Traits(
    "anthropic-budget",
    "signed",
    "thoughts",
    needs_limit="budget",
    thinks_at_one=True,
    off_forbids_thoughts=True,
    needs_follower=True,
    call_ids="tooluse_",
    closes_objects=True,
)
