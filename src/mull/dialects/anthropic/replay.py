"""Which thinking is sent back."""

from __future__ import annotations

from mull.dialects.anthropic import DIALECT
from mull.dialects.replay import SignedReplay

__all__ = ["REPLAY"]

REPLAY = SignedReplay(DIALECT)
