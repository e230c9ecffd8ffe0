"""A server at an address: streamable HTTP by the SDK's own transport, with limits around it.

No answer is read beyond the largest message, and what the server said in a status is kept: the
SDK tells only that there was an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mull.agent.mcp.lines import MOST_BYTES, too_large
from mull.agent.mcp.settled import Settled
from mull.client.proxy import is_loopback

if TYPE_CHECKING:
    import httpx2
    from mcp import MCPError
    from mcp.client._transport import TransportStreams

__all__ = ["AddressTransport"]

_CONNECT_SECONDS = 30
# the SDK's own words
_STAND_INS = ("Server returned an error response", "Not Found", "Session terminated")
_TOO_LONG = "Server-sent event exceeded"


class AddressTransport:
    """Speaks to the address while it is entered; `status` is its answer, if that was a refusal."""

    def __init__(self, settled: Settled) -> None:
        self._settled = settled
        self.status: int | None = None
        self.ended = asyncio.Event()

    async def __aenter__(self) -> TransportStreams:
        self._open = self._streams()
        return await self._open.__aenter__()

    async def __aexit__(self, *reason: Any) -> bool | None:
        return await self._open.__aexit__(*reason)

    @asynccontextmanager
    async def _streams(self) -> AsyncIterator[TransportStreams]:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        settled = self._settled
        assert settled.url is not None
        client = httpx2.AsyncClient(
            headers={"accept-encoding": "identity", **settled.headers},
            # how long an answer may take is for the caller to say
            timeout=httpx2.Timeout(_CONNECT_SECONDS, read=None),
            # a proxy has no business with a server on this machine
            trust_env=not is_loopback(urlsplit(settled.url).hostname or ""),
            event_hooks={"response": [self._look_at]},
        )
        async with (
            client,
            streamable_http_client(
                settled.url, http_client=client, max_sse_event_size=MOST_BYTES
            ) as streams,
        ):
            yield streams

    async def _look_at(self, response: httpx2.Response) -> None:
        if response.request.method == "POST":  # the others may be refused by right
            refused = response.status_code >= HTTPStatus.BAD_REQUEST
            self.status = response.status_code if refused else None
        # the SDK limits the events of a stream itself
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _limited(response.stream)

    def is_lost(self, error: MCPError) -> bool:
        """Whether this error means that there is no connection any more."""
        from mcp_types import CONNECTION_CLOSED

        # the protocol says 404 to a session that is not known any more; many servers say 400
        if self.status in (HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST):
            return error.message in _STAND_INS or "session" in error.message.lower()
        return error.code == CONNECTION_CLOSED and _TOO_LONG not in error.message

    def how_it_ended(self) -> str:
        """What the address said last, for a person."""
        from http.client import responses

        if self.status is None:
            return f"{self._settled.shown_url} broke the connection"
        words = f"{self.status} {responses.get(self.status, '')}".rstrip()
        return f"{self._settled.shown_url} answered {words}"

    def explain(self, error: BaseException, said: str) -> str:
        """The reason of a failure, where the SDK's words are too few."""
        import httpx2

        if isinstance(error, httpx2.TransportError):
            return f"cannot reach {self._settled.shown_url}: {said}"
        if self.status is not None and said in _STAND_INS:
            return self.how_it_ended()
        return too_large() if _TOO_LONG in said or too_large() in said else said


def _limited(stream: Any) -> Any:
    """The stream of a body that fails once it is too long."""
    import httpx2

    class Limited(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for piece in stream:
                size += len(piece)
                if size > MOST_BYTES:
                    raise httpx2.StreamError(too_large())
                yield piece

        async def aclose(self) -> None:
            await stream.aclose()

    return Limited()
