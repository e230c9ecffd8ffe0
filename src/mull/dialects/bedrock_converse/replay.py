"""Which thoughts go back."""

from __future__ import annotations

from mull.dialects.bedrock_converse import DIALECT
from mull.dialects.replay import SignedReplay

__all__ = ["REPLAY"]

REPLAY = SignedReplay(DIALECT)
