"""A client of httpx or httpx2 as a transport.

Its proxies, certificates, HTTP version, pool, hooks and authentication apply as they are set. A
timeout that somebody has set applies as well; the default, five seconds without a byte, does not:
models think longer. Redirects are not followed whatever the client would do, and bodies are taken
as they come, so that no event of a stream is held back.
"""

from __future__ import annotations

import asyncio
import sys
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from mull.client.clock import say_seconds
from mull.client.connection import running_loop
from mull.client.foreign_errors import cannot_connect, connection_broke
from mull.client.http import CONNECT_SECONDS, USER_AGENT
from mull.client.transport import HttpRequest, HttpResponse, host_of
from mull.neutral.errors import ConfigError, LocalError, SilenceError

__all__ = ["HttpxTransport"]

_DEFAULT_TIMEOUT = 5.0
"""What a client of httpx has if nobody set a timeout."""

_loops: MutableMapping[Any, weakref.ref[asyncio.AbstractEventLoop]] = weakref.WeakKeyDictionary()
"""The event loop that each client was used on last."""


class HttpxTransport:
    """Sends through an `AsyncClient`, which is not closed."""

    def __init__(self, client: Any, package: str) -> None:
        self._client = client
        self._package: Any = sys.modules[package]

    @asynccontextmanager
    async def send(self, request: HttpRequest, /) -> AsyncGenerator[HttpResponse, None]:
        """The response to a request.

        Raises:
            LocalError: the client is closed, or in use on another event loop.
            NetworkError: the endpoint cannot be reached.
        """
        self._check_usable()
        with self._errors(request):
            built = self._client.build_request(
                request.method,
                request.url,
                headers=self._headers(request),
                content=request.body or None,
                timeout=self._timeout(),
            )
            response = await self._client.send(built, stream=True, follow_redirects=False)
        try:
            yield self._response(request, response)
        finally:
            await response.aclose()

    def _response(self, request: HttpRequest, response: Any) -> HttpResponse:
        headers = dict(response.headers.items())
        if not response.is_stream_consumed:
            return HttpResponse(
                response.status_code, headers, self._pieces(request, response.aiter_raw())
            )
        headers.pop("content-encoding", None)  # a mock's body is there already, decompressed
        return HttpResponse(
            response.status_code, headers, self._pieces(request, response.aiter_bytes())
        )

    async def _pieces(
        self, request: HttpRequest, pieces: AsyncIterator[bytes]
    ) -> AsyncIterator[bytes]:
        with self._errors(request):
            async for piece in pieces:
                yield piece

    def _headers(self, request: HttpRequest) -> dict[bytes, bytes]:
        mine = {"accept-encoding": "identity"}
        if self._client.headers.get("user-agent", "python-httpx").startswith("python-httpx"):
            mine["user-agent"] = USER_AGENT
        return {
            name.encode("ascii"): text.encode("latin-1")
            for name, text in {**mine, **request.headers}.items()
        }

    def _timeout(self) -> Any:
        own, make = self._client.timeout, self._package.Timeout
        return make(None, connect=CONNECT_SECONDS) if own == make(_DEFAULT_TIMEOUT) else own

    def _check_usable(self) -> None:
        if self._client.is_closed:
            raise LocalError("the http_client was closed: give one that is open")
        here, last = running_loop(), _loops.get(self._client)
        before = last() if last is not None else None
        if before is not None and before is not here and not before.is_closed():
            raise LocalError(
                "the http_client is in use on another event loop: give each loop one of its own"
                " (blocking calls have a loop that they share)"
            )
        _loops[self._client] = weakref.ref(here)

    @contextmanager
    def _errors(self, request: HttpRequest) -> Iterator[None]:
        name, package = host_of(request.url), self._package
        try:
            yield
        except package.ReadTimeout:
            span = say_seconds(self._client.timeout.read or 0.0)
            raise SilenceError(
                f"{name} sent nothing for {span}, the timeout of the http_client"
            ) from None
        except (package.InvalidURL, package.UnsupportedProtocol) as error:
            raise ConfigError(f"the http_client cannot send to {name}: {error}") from None
        except (package.ConnectError, package.TimeoutException, package.ProxyError) as error:
            raise cannot_connect(name, error) from None
        except package.TransportError as error:
            raise connection_broke(name, error) from None
        except RuntimeError as error:
            if "loop" not in str(error):
                raise
            raise LocalError(
                "the http_client has connections of another event loop: give each loop one of its"
                " own"
            ) from None
