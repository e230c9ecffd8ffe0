"""A server at a URL: streamable HTTP with the SDK's own transport, and limits around it.

No response is read beyond the maximum message size, and the server's HTTP status is kept: the SDK
only reports that there was an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mull.agent.mcp.bodies import bounded
from mull.agent.mcp.lines import MOST_BYTES, too_large
from mull.agent.mcp.settled import Settled
from mull.client.proxy import is_loopback

if TYPE_CHECKING:
    import httpx2
    from mcp import MCPError
    from mcp.client._transport import TransportStreams

__all__ = ["AddressTransport"]

_CONNECT_SECONDS = 30
# the SDK's own messages
_STAND_INS = ("Server returned an error response", "Not Found", "Session terminated")
_TOO_LONG = "Server-sent event exceeded"


class AddressTransport:
    """Connects to the URL while it is entered; `status` is that of a rejection, if there was
    one.
    """

    def __init__(self, settled: Settled, auth: httpx2.Auth | None = None) -> None:
        self._settled = settled
        self._auth = auth
        self.status: int | None = None
        self._broke = False
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
        client = self._client_class()(
            headers={"accept-encoding": "identity", **settled.headers},
            auth=self._auth,
            # the caller sets the time limit
            timeout=httpx2.Timeout(_CONNECT_SECONDS, read=None),
            # a local server needs no proxy
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

    def _client_class(self) -> type[httpx2.AsyncClient]:
        import httpx2

        broke = self._break

        class Client(httpx2.AsyncClient):
            async def send(self, *args: Any, **kwargs: Any) -> httpx2.Response:
                try:
                    return await super().send(*args, **kwargs)
                except Exception:  # any error makes the SDK end the connection
                    broke()
                    raise

        return Client

    async def _look_at(self, response: httpx2.Response) -> None:
        if response.request.method != "POST":  # other rejections may be legitimate
            response.stream = bounded(response, lambda: None)
            return
        refused = response.status_code >= HTTPStatus.BAD_REQUEST
        self.status = response.status_code if refused else None
        self._broke = False
        response.stream = bounded(response, self._break)

    def _break(self) -> None:
        self._broke = True

    def is_lost(self, error: MCPError) -> bool:
        """Whether this error means that the connection is lost.

        The code alone does not tell: servers use the same one for their own errors.
        """
        from mcp_types import CONNECTION_CLOSED

        # the protocol says 404 for an unknown session; many servers say 400
        if self.status in (HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST):
            return error.message in _STAND_INS or "session" in error.message.lower()
        return error.code == CONNECTION_CLOSED and self._broke and _TOO_LONG not in error.message

    def how_it_ended(self) -> str:
        """The server's last response, for the user."""
        from http.client import responses

        if self.status is None:
            return f"{self._settled.shown_url} broke the connection"
        words = f"{self.status} {responses.get(self.status, '')}".rstrip()
        hint = ""
        if self.status == HTTPStatus.UNAUTHORIZED and not self._settled.has_key:
            hint = f": log in with `mull mcp login {self._settled.name}`"
        return f"{self._settled.shown_url} answered {words}{hint}"

    def explain(self, error: BaseException, said: str) -> str:
        """The reason of a failure, where the SDK says too little."""
        import httpx2

        if isinstance(error, httpx2.TransportError):
            return f"cannot reach {self._settled.shown_url}: {said}"
        if self.status is not None and said in _STAND_INS:
            return self.how_it_ended()
        return too_large() if _TOO_LONG in said or too_large() in said else said
