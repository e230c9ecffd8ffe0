"""A gateway that does nothing: granian in front of mull's own HTTP client, bytes in and bytes out.

`python -m bench.serving.passing PORT UPSTREAM` serves until it is ended.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from granian.constants import Interfaces
from granian.server.embed import Server

from mull.client.http import HttpClient
from mull.client.transport import HttpRequest

_transport = HttpClient()
_HEADERS = [(b"content-type", b"application/octet-stream")]


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Pass a request on, and its answer back."""
    if scope["type"] != "http":
        return
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    request = HttpRequest(
        "POST", sys.argv[2] + scope["path"], {"content-type": "application/json"}, body
    )
    async with _transport.send(request) as answer:
        await send({"type": "http.response.start", "status": answer.status, "headers": _HEADERS})
        async for piece in answer:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


if __name__ == "__main__":
    server = Server(
        app,
        address="127.0.0.1",
        port=int(sys.argv[1]),
        interface=Interfaces.ASGI,
        log_enabled=False,
    )
    asyncio.run(server.serve())
