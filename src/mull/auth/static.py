"""Where a key goes in a request."""

from __future__ import annotations

from mull.auth.clouds import CLOUDS
from mull.dialects.traits import TRAITS
from mull.neutral.target import Target

__all__ = ["MASK", "key_headers"]

MASK = "***"


def key_headers(target: Target, key: str, *, fetched: bool = False) -> dict[str, str]:
    """The headers that carry a key to this target; a cloud's is a token. Azure takes both, in
    different headers: there, what a function has `fetched` is a token of Microsoft Entra.
    """
    name: str = target.compat.auth or TRAITS[target.dialect].key_header
    if name == "azure":
        name = "bearer" if fetched or _is_json_web_token(key) else "api-key"
    if name == "bearer" or name in CLOUDS:
        name = "authorization"
    return {name: f"Bearer {key}" if name.endswith("authorization") else key}


def _is_json_web_token(key: str) -> bool:
    return key.startswith("eyJ") and key.count(".") == 2
