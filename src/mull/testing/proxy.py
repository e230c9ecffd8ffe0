"""A proxy on loopback that breaks what passes it, at the position it is told.

    with StrictServer("anthropic", script) as server:
        with FaultProxy(server.url, [Fault("cut", 3, "event")]) as proxy:
            ...  # let your client talk to proxy.url: the first answer ends after two events

Each request takes the next fault of the list, None for none; those after the last are not harmed.
A response is fetched whole before it is passed on, so that every position of it is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from mull.testing.faults import Fault, Response, inflict
from mull.testing.server import Recorded, Reply, ScriptedServer

__all__ = ["FaultProxy"]

_HOP = frozenset({"connection", "content-length", "expect", "host", "transfer-encoding"})
_GONE = Reply.json({"error": {"message": "nothing answers behind the proxy"}}, 502)


class FaultProxy(ScriptedServer):
    """Forwards requests to the plain HTTP server at `upstream`, and its responses back with faults.

    `responses` are those received, complete and in order, `faults` what was done to each.
    """

    def __init__(
        self, upstream: str, faults: Iterable[Fault | None] = (), *, port: int = 0
    ) -> None:
        super().__init__(self._pass_on, port=port)
        self._upstream = urlsplit(upstream)
        self._left = iter(faults)
        self.responses: list[Response] = []
        self.faults: list[Fault | None] = []

    def harm(self, faults: Iterable[Fault | None]) -> None:
        """Replace the planned faults of the following requests."""
        self._left = iter(faults)

    async def _pass_on(self, recorded: Recorded) -> Reply:
        try:
            response = read_response(await self._fetched(recorded))
        except (OSError, EOFError, ValueError):
            return _GONE
        fault = next(self._left, None)
        self.responses.append(response)
        self.faults.append(fault)
        return Reply(raw=inflict(response, fault))

    async def _fetched(self, recorded: Recorded) -> bytes:
        """Everything the server sends for a request, until it closes."""
        host, port = self._upstream.hostname or "127.0.0.1", self._upstream.port or 80
        reader, writer = await asyncio.open_connection(host, port)
        try:
            path = self._upstream.path.rstrip("/") + recorded.path
            kept = {n: v for n, v in recorded.headers.items() if n not in _HOP}
            kept |= {"host": self._upstream.netloc, "connection": "close"}
            kept |= {"content-length": str(len(recorded.body))}
            lines = [f"{recorded.method} {path} HTTP/1.1", *(f"{n}: {v}" for n, v in kept.items())]
            writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + recorded.body)
            await writer.drain()
            return await reader.read()
        finally:
            writer.transport.abort()


def read_response(raw: bytes) -> Response:
    """A complete response, parsed from the wire.

    Raises:
        ValueError: it is not a response, or incomplete.
    """
    top, found, body = raw.partition(b"\r\n\r\n")
    first, *lines = top.decode("latin-1").split("\r\n")
    if not found or not first.startswith("HTTP/"):
        raise ValueError(f"not a response: {raw[:80]!r}")
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    headers.pop("connection", None)
    chunked = headers.get("transfer-encoding", "").lower() == "chunked"
    head = "\r\n".join([first, *(f"{n}: {v}" for n, v in headers.items())]) + "\r\n\r\n"
    chunks = _chunks(body) if chunked else [body]
    return Response(_sized(head, headers, body, chunked=chunked), chunks, chunked)


def _sized(head: str, headers: Mapping[str, str], body: bytes, *, chunked: bool) -> bytes:
    """The head; if the body ended with the connection, its length is added."""
    if not chunked and "content-length" not in headers:
        head = head.removesuffix("\r\n") + f"content-length: {len(body)}\r\n\r\n"
    return head.encode("latin-1")


def _chunks(body: bytes) -> list[bytes]:
    chunks: list[bytes] = []
    while True:
        line, found, body = body.partition(b"\r\n")
        size = int(line.partition(b";")[0], 16)
        if not found or len(body) < size:
            raise ValueError("the response is incomplete")
        if size == 0:
            return chunks
        chunks.append(body[:size])
        body = body[size + len(b"\r\n") :]
