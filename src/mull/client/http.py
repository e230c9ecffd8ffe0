"""mull's own client: bytes to an endpoint and back, over connections that are kept.

Decided here: bodies arrive as the socket gives them; leaving the block or cancelling the task
closes the socket at once; a request goes out a second time only where a kept connection was closed
as soon as it had it, and on a new one; redirects are not followed, because the next host would get
the key; nothing compressed is asked for, because compression holds small pieces back. Proxies and
certificates are given, or come from the environment (see `proxy` and `certificates`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import lru_cache
from typing import Literal, Self
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from mull._version import __version__
from mull.client.answer import Answer, ignore
from mull.client.certificates import Cert, Trust, Verify
from mull.client.clock import upload_seconds
from mull.client.connection import Address, Connection, Overtime, connect, running_loop
from mull.client.http1 import AnswerReader, ProtocolError, encode_head
from mull.client.pool import Pool
from mull.client.proxy import Proxy, find_proxy, given_proxy
from mull.client.transport import HttpRequest, host_of
from mull.neutral.errors import ConfigError, NetworkError, UnusableError

__all__ = ["USER_AGENT", "HttpClient"]

USER_AGENT = f"mull/{__version__}"
AT_ONCE = 0.5
"""Seconds after a request within which a kept connection that ends was closed already, or was just
being closed: its endpoint has not begun to think about what it was asked."""
CONNECT_SECONDS = 20.0
"""How long a connection may take to stand."""
HEAD_SECONDS = 30.0
"""How long the head of an answer may take once it has begun."""


class HttpClient:
    """Sends requests over HTTP/1.1 and keeps connections for the next ones. Close it when done:
    requests in progress then continue, and no connection is kept any more.

    `proxy` is the address of an HTTP or HTTPS proxy, with user and password if it needs them, for
    all requests; False means none, and None leaves it to the environment. `verify` is False to
    trust any server, a file or folder of certificate authorities, or an `ssl.SSLContext`. `cert` is
    a client certificate: a file, or a pair of certificate and key, or with the key's password.

    It can be used from several event loops, each of which has connections of its own.

    Raises:
        ConfigError: the proxy or the certificates cannot be used.
    """

    def __init__(
        self,
        *,
        proxy: str | Literal[False] | None = None,
        verify: Verify = True,
        cert: Cert | None = None,
        connect_seconds: float = CONNECT_SECONDS,
    ) -> None:
        self._proxy = given_proxy(proxy) if isinstance(proxy, str) else proxy
        self._trust = Trust(verify, cert)
        self._patience = connect_seconds
        self._pool = Pool()

    def send(
        self,
        request: HttpRequest,
        /,
        *,
        idle: float | None = None,
        total: float | None = None,
        again: Callable[[str], None] = ignore,
    ) -> Answer:
        """The answer to a request, for `async with`; see `answer.Client`.

        A request goes out a second time if a connection that was kept ended within `AT_ONCE`. That
        happens once at most, on a new connection, and `again` is told the reason.
        """
        way = _Way(self._pool, self._trust, self._proxy)
        return _OwnAnswer(request, way, _Limits(self._patience, idle, total), again)

    async def close(self) -> None:
        """Close all connections that wait; those in use are closed after it."""
        await self._pool.close()


class _Limits(Struct, frozen=True):
    connect: float
    idle: float | None
    total: float | None


class _Way(Struct, frozen=True):
    pool: Pool
    trust: Trust
    proxy: Proxy | Literal[False] | None


class _OwnAnswer(Answer):
    """An answer that is read from a connection."""

    def __init__(
        self, request: HttpRequest, way: _Way, limits: _Limits, again: Callable[[str], None]
    ) -> None:
        super().__init__()
        self._request = request
        self._way = way
        self._limits = limits
        self._again = again
        self._connection: Connection
        self._reader = AnswerReader(request.method)

    async def __aenter__(self) -> Self:
        pool = self._way.pool
        place, head = _address(self._request, self._way.proxy)
        data = head + self._request.body
        loop = running_loop()
        total = self._limits.total
        until = math.inf if total is None else loop.time() + total
        await pool.open()
        kept = await pool.take(place)
        if kept is None or not await self._ask_kept(kept, data, until):
            patience = min(self._limits.connect, max(until - loop.time(), 0.0))
            self._connection = await connect(place, patience, self._way.trust)
            self._connection.ask(data, self._limits.idle, until)
            await self._hear(len(data))
        return self

    async def __aexit__(self, kind: object, error: object, trace: object, /) -> None:
        if not self._reader.reusable:
            if error is not None or not self._drains or not self._reader.keeps:
                self._connection.close()
                return
            self._connection.drain(self._reader)
        self._way.pool.keep(self._connection)

    async def _ask_kept(self, connection: Connection, data: bytes, until: float) -> bool:
        """Ask on a connection that was used before. False if it was closed before it heard."""
        began, self._connection = connection.loop.time(), connection
        connection.ask(data, self._limits.idle, until)
        try:
            await self._hear(len(data))
        except NetworkError as error:
            if self._reader.touched:
                raise
            self._way.pool.drop(connection.place)
            now = connection.loop.time()
            if type(error) is not NetworkError or now > min(began + AT_ONCE, until):
                raise
            self._again(str(error))
            return False
        return True

    async def _hear(self, sent: int) -> None:
        """Wait for the head of the answer to so many bytes."""
        connection, extra = self._connection, upload_seconds(sent)
        self._name = connection.place.name
        begun = False
        try:
            while not self._reader.status:
                self._first += self._feed(await connection.read(extra))
                if self._reader.in_head != begun:
                    begun = self._reader.in_head
                    connection.end_by(connection.loop.time() + HEAD_SECONDS if begun else math.inf)
            self._open(self._reader.status, self._reader.headers)
        except Overtime:
            connection.close()
            text = (
                f"{self._name} did not finish the head of its response within {HEAD_SECONDS:.0f} s"
            )
            raise UnusableError(text) from None
        except BaseException:
            connection.close()
            raise

    async def _receive(self) -> bytes:
        if self._reader.has_body:
            raise StopAsyncIteration
        try:
            return self._feed(await self._connection.read())
        except Overtime:
            raise StopAsyncIteration from None

    def finish_within(self, seconds: float) -> None:
        """Take what comes in so many seconds from now for the rest of the body."""
        self._connection.end_by(self._connection.loop.time() + seconds)

    def _feed(self, data: bytes) -> bytes:
        kind = UnusableError if data else NetworkError
        try:
            if data:
                piece = self._reader.feed(data)
                if self._reader.fault is not None:
                    self._fault = self._broke(UnusableError, self._reader.fault)
                return piece
            self._reader.close()
        except ProtocolError as error:
            raise self._broke(kind, error) from None
        return b""

    def _broke(self, kind: type[NetworkError], error: ProtocolError) -> NetworkError:
        return kind(f"the connection to {self._name} broke: {error}")


def _address(request: HttpRequest, given: Proxy | Literal[False] | None) -> tuple[Address, bytes]:
    """Where a request goes, and its head."""
    parts, port = _split(request.url)
    host = parts.hostname or ""
    proxy = find_proxy(parts.scheme, host, port, os.environ) if given is None else given or None
    place = Address(parts.scheme, host, port, proxy)
    headers = {
        "host": place.name,
        "user-agent": USER_AGENT,
        "accept-encoding": "identity",
        **{name.lower(): value for name, value in request.headers.items()},
    }
    if request.body or request.method not in ("GET", "HEAD"):
        headers["content-length"] = str(len(request.body))
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if proxy and parts.scheme == "http":
        path = f"http://{place.name}{path}"
        if proxy.authorization:
            headers["proxy-authorization"] = proxy.authorization
    try:
        return place, encode_head(request.method, path, headers)
    except ProtocolError as error:
        raise ConfigError(f"the request to {place.name} cannot be sent: {error}") from None


@lru_cache(maxsize=256)
def _split(url: str) -> tuple[SplitResult, int]:
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        host = (parts.hostname or "").encode("idna" if not url.isascii() else "ascii").decode()
    except (ValueError, UnicodeError):
        parts, host, port = urlsplit(""), "", 0
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError(f"the address of {host_of(url)} is not an http or https address")
    if host != parts.hostname:
        parts = parts._replace(netloc=host if not parts.port else f"{host}:{parts.port}")
    return parts, port
