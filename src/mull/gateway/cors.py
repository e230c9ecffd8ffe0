"""CORS: preflight responses, and the headers that let a page in a browser read other responses."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from mull.gateway.http import Headers, Send

__all__ = ["is_preflight", "permit", "shared_with"]

_MAX_AGE = "600"
_READABLE = "retry-after, x-mull-notes"


def is_preflight(method: str, headers: Mapping[str, str]) -> bool:
    """Whether this is a preflight request of a browser."""
    return method == "OPTIONS" and "access-control-request-method" in headers


async def permit(send: Send, headers: Mapping[str, str]) -> None:
    """Accept a preflight request. The request that follows is checked itself."""
    allowed: Headers = [
        ("access-control-allow-methods", "GET, POST, DELETE"),
        ("access-control-allow-headers", headers.get("access-control-request-headers", "*")),
        ("access-control-max-age", _MAX_AGE),
    ]
    raw = [(name.encode(), value.encode("latin-1")) for name, value in allowed]
    await send({"type": "http.response.start", "status": 204, "headers": raw})
    await send({"type": "http.response.body", "body": b""})


def shared_with(origin: str, send: Send) -> Send:
    """A `send` whose responses a page from this origin may read."""
    added = (
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", _READABLE.encode()),
        (b"vary", b"origin"),
    )

    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *added]}
        await send(message)

    return sending
