"""Where a key goes in a request."""

from __future__ import annotations

from mull.neutral.target import Target
from mull.neutral.traits import TRAITS

__all__ = ["MASK", "key_headers"]

MASK = "***"


def key_headers(target: Target, key: str) -> dict[str, str]:
    """The headers that carry a key to this target."""
    name = target.compat.auth or TRAITS[target.dialect].key_header
    return {"authorization": f"Bearer {key}"} if name == "bearer" else {name: key}
