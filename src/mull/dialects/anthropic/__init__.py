"""Anthropic Messages: typed content blocks in both directions, signed thinking among them."""

from __future__ import annotations

from mull.neutral.messages import Dialect
from mull.neutral.traits import Traits

__all__ = ["DIALECT", "TRAITS"]

DIALECT: Dialect = "anthropic"
TRAITS = Traits(
    "anthropic-budget",
    "signed",
    "pings",
    key_header="x-api-key",
    needs_limit="always",
    thinks_at_one=True,
    off_forbids_thoughts=True,
    needs_follower=True,
    takes_fillers=True,
    tool_names="[a-zA-Z0-9_-]{1,128}",
    answer_ids="msg_",
    call_ids="toolu_",
    closes_objects=True,
)
