"""Putting a request body together: fragments merge, nothing is overwritten by accident."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from mull.neutral.request import WireRequest

__all__ = ["dump", "merge", "with_extra"]

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


def with_extra(wire: WireRequest, extra: Mapping[str, Any]) -> WireRequest:
    """The request with the caller's own fields merged into its body; others keep their bytes."""
    body: dict[str, Any] = msgspec.json.decode(wire.body, type=dict[str, msgspec.Raw])
    held = {name: msgspec.json.decode(body[name]) for name in extra if name in body}
    return replace(wire, body=dump({**body, **merge(held, extra)}))
