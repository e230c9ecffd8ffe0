"""Where a key goes in a request."""

from __future__ import annotations

from mull.auth.clouds import CLOUDS
from mull.dialects.traits import TRAITS
from mull.neutral.target import Target

__all__ = ["MASK", "key_headers"]

MASK = "***"


def key_headers(target: Target, key: str) -> dict[str, str]:
    """The headers that carry a key to this target; a cloud's is a token."""
    name: str = target.compat.auth or TRAITS[target.dialect].key_header
    if name == "bearer" or name in CLOUDS:
        name = "authorization"
    return {name: f"Bearer {key}" if name.endswith("authorization") else key}
