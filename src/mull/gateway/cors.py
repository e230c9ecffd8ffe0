"""What a browser wants to hear before a page may call this server, and with each answer to it."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from mull.gateway.http import Headers, Send

__all__ = ["is_preflight", "permit", "shared_with"]

_MAX_AGE = "600"
_READABLE = "retry-after, x-mull-notes"


def is_preflight(method: str, headers: Mapping[str, str]) -> bool:
    """Whether a browser asks if a page may send a request."""
    return method == "OPTIONS" and "access-control-request-method" in headers


async def permit(send: Send, headers: Mapping[str, str]) -> None:
    """Say that it may: what is asked for is up to the request itself."""
    told: Headers = [
        ("access-control-allow-methods", "GET, POST, DELETE"),
        ("access-control-allow-headers", headers.get("access-control-request-headers", "*")),
        ("access-control-max-age", _MAX_AGE),
    ]
    raw = [(name.encode(), value.encode("latin-1")) for name, value in told]
    await send({"type": "http.response.start", "status": 204, "headers": raw})
    await send({"type": "http.response.body", "body": b""})


def shared_with(origin: str, send: Send) -> Send:
    """A `send` whose answers the page may read."""
    told = (
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", _READABLE.encode()),
        (b"vary", b"origin"),
    )

    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *told]}
        await send(message)

    return sending
