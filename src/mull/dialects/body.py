"""Putting a request body together: fragments merge, nothing is overwritten by accident."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

__all__ = ["dump", "merge"]

_encode = msgspec.json.Encoder().encode


def merge(body: dict[str, Any], *fragments: Mapping[str, Any] | None) -> dict[str, Any]:
    """Merge fragments into the body, objects key by key; later fragments win. Changes `body`."""
    for fragment in fragments:
        for key, value in (fragment or {}).items():
            held = body.get(key)
            if isinstance(held, dict) and isinstance(value, Mapping):
                body[key] = merge(dict(held), value)
            else:
                body[key] = value
    return body


def dump(body: Mapping[str, Any]) -> bytes:
    """The body as it goes out."""
    return _encode(body)
