"""Requests over somebody else's client: a transport of the caller's, httpx, httpx2 or aiohttp.

A transport only sends and receives. The limits are mull's: silence counts from one chunk to the
next, and reaching a limit cancels what the transport is waiting for, which closes its socket. What
was given is never closed here: it is the caller's.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from inspect import iscoroutine
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, TypeVar

from mull.client.answer import Answer, ignore
from mull.client.clock import Patience, upload_seconds
from mull.client.connection import (
    DRAIN_SECONDS,
    DRAINED,
    Overtime,
    given_up,
    running_loop,
    say_error,
)
from mull.client.http import HttpClient
from mull.client.http1 import ProtocolError, encode_head
from mull.client.transport import HttpRequest, HttpResponse, Transport, host_of
from mull.neutral.errors import ConfigError, LocalError, NetworkError

if TYPE_CHECKING:
    from mull.client.answer import Client

__all__ = ["AiohttpSession", "ForeignClient", "HttpxClient", "SomeClient", "client_over"]

_T = TypeVar("_T")


class HttpxClient(Protocol):
    """An `AsyncClient` of httpx or httpx2, as far as mull uses it."""

    def build_request(self, *args: Any, **kwargs: Any) -> Any:
        """A request with the client's own headers."""

    def send(self, *args: Any, **kwargs: Any) -> Awaitable[Any]:
        """Send it."""


class AiohttpSession(Protocol):
    """A `ClientSession` of aiohttp, as far as mull uses it."""

    def request(self, *args: Any, **kwargs: Any) -> Any:
        """Send a request."""

    @property
    def auto_decompress(self) -> bool:
        """Whether bodies come decompressed."""


SomeClient: TypeAlias = Transport | HttpxClient | AiohttpSession
"""What can be given as `http_client`."""

_TAKEN = "an httpx.AsyncClient, an httpx2.AsyncClient, an aiohttp.ClientSession or a mull.Transport"
_INSTEAD = {
    ("httpx", "Client"): "httpx.AsyncClient",
    ("httpx2", "Client"): "httpx2.AsyncClient",
    ("requests", "Session"): "httpx.AsyncClient",
}
"""Clients that block, which cannot be interrupted at once, and what to use in their place."""


def client_over(given: object) -> Client:
    """A client that sends through what was given as `http_client`.

    Raises:
        ConfigError: that is nothing that mull can send through.
    """
    if isinstance(given, HttpClient):
        return given
    if transport := _known(given):
        return ForeignClient(transport)
    if isinstance(given, type) or not callable(getattr(given, "send", None)):
        what = f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
        raise ConfigError(f"http_client must be {_TAKEN}, not {what}")
    return ForeignClient(given)  # type: ignore[arg-type]


def _known(given: object) -> Transport | None:
    """The transport over a client of a known library; nothing is imported to find out."""
    for kind in type(given).__mro__:
        package, name = kind.__module__.partition(".")[0], kind.__name__
        if package in ("httpx", "httpx2") and name == "AsyncClient":
            from mull.client.foreign_httpx import HttpxTransport

            return HttpxTransport(given, package)
        if (package, name) == ("aiohttp", "ClientSession"):
            from mull.client.foreign_aiohttp import AiohttpTransport

            return AiohttpTransport(given)
        if instead := _INSTEAD.get((package, name)):
            raise ConfigError(
                f"http_client must be asynchronous, and {package}.{name} is not: use {instead},"
                " which works for blocking calls too"
            )
    return None


class ForeignClient:
    """Sends through a transport, within mull's limits."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def send(
        self,
        request: HttpRequest,
        /,
        *,
        idle: float | None = None,
        total: float | None = None,
        again: Callable[[str], None] = ignore,
    ) -> Answer:
        """The answer to a request, for `async with`; see `answer.Client`. It is sent once."""
        return _ForeignAnswer(request, self._transport, idle, total)

    async def close(self) -> None:
        """Nothing is closed: the transport belongs to whoever gave it."""


class _ForeignAnswer(Answer):
    """An answer that a transport brings."""

    def __init__(
        self,
        request: HttpRequest,
        transport: Transport,
        idle: float | None,
        total: float | None,
    ) -> None:
        super().__init__()
        self._request = request
        self._transport = transport
        self._idle, self._total = idle, total
        self._name = host_of(request.url)
        self._exchange: AbstractAsyncContextManager[HttpResponse]
        self._pieces: AsyncIterator[bytes]
        self._over = False

    async def __aenter__(self) -> Self:
        self._loop = running_loop()
        self._patience = Patience(self._idle, self._total, self._loop.time())
        _check_sendable(self._request)
        self._exchange = _checked(self._transport.send(self._request))
        extra = upload_seconds(len(self._request.body))
        response = await self._within(self._exchange.__aenter__(), extra)
        try:
            self._pieces = aiter(response.chunks)
            headers = {name.lower(): text for name, text in response.headers.items()}
            self._open(response.status, headers)
        except BaseException as error:
            await self._exchange.__aexit__(type(error), error, error.__traceback__)
            raise
        return self

    async def __aexit__(self, kind: Any, error: Any, trace: Any, /) -> None:
        try:
            if self._drains and error is None:
                await self._drain_rest()
            if isinstance(self._pieces, AsyncGenerator):
                await self._pieces.aclose()
        finally:
            with suppress(OSError):  # the answer is over, whatever becomes of its connection
                await self._exchange.__aexit__(kind, error, trace)

    async def _drain_rest(self) -> None:
        """Read the rest if it is short, because a client keeps only connections that were read to
        their end. It has mostly come by now."""
        left = DRAINED
        with suppress(OSError, NetworkError, StopAsyncIteration):
            async with asyncio.timeout(DRAIN_SECONDS):
                while left > 0 and not self._over:
                    left -= len(await anext(self._pieces))

    async def _receive(self) -> bytes:
        if self._over:
            raise StopAsyncIteration
        try:
            return bytes(await self._within(anext(self._pieces)))
        except (StopAsyncIteration, Overtime):
            self._over = True
            raise StopAsyncIteration from None

    def finish_within(self, seconds: float) -> None:
        """Take what comes in so many seconds from now for the rest of the body."""
        self._patience.ends = self._loop.time() + seconds

    async def _within(self, step: Awaitable[_T], extra: float = 0.0) -> _T:
        """Wait for a step of the transport's, and no longer than the limits allow."""
        patience = self._patience
        patience.since = self._loop.time() + extra
        due = patience.due()
        try:
            async with asyncio.timeout_at(None if due == math.inf else due) as limit:
                return await step
        except OSError as error:  # a TimeoutError is one
            verdict = patience.judge(due) if limit.expired() else None
            if verdict is not None:
                raise given_up(self._name, verdict) from None
            told = say_error(error)
            raise NetworkError(f"the connection to {self._name} broke: {told}") from None
        finally:
            patience.since = math.inf


def _check_sendable(request: HttpRequest) -> None:
    """Other libraries would show a header's value in their error.

    Raises:
        ConfigError: a header holds what HTTP does not allow.
    """
    try:
        encode_head(request.method, "/", request.headers)
    except ProtocolError as error:
        said = f"the request to {host_of(request.url)} cannot be sent: {error}"
        raise ConfigError(said) from None


def _checked(exchange: Any) -> AbstractAsyncContextManager[HttpResponse]:
    """What a transport's `send` returned, which is easily a coroutine.

    Raises:
        LocalError: it cannot be entered.
    """
    if isinstance(exchange, AbstractAsyncContextManager):
        return exchange
    if iscoroutine(exchange):
        exchange.close()
    raise LocalError(
        "send() of the http_client must return an asynchronous context manager"
        f" (contextlib.asynccontextmanager makes one), not a {type(exchange).__name__}"
    )
