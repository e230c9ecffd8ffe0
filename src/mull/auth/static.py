"""Where a key goes in a request."""

from __future__ import annotations

from mull.neutral.messages import Dialect
from mull.neutral.target import Target

__all__ = ["MASK", "key_headers"]

MASK = "***"
_BY_DIALECT: dict[Dialect, str] = {"anthropic": "x-api-key", "gemini": "x-goog-api-key"}


def key_headers(target: Target, key: str) -> dict[str, str]:
    """The headers that carry a key to this target."""
    name = target.compat.auth or _BY_DIALECT.get(target.dialect, "bearer")
    return {"authorization": f"Bearer {key}"} if name == "bearer" else {name: key}
