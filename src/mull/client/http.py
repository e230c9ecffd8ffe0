"""Bytes to an endpoint and back, over connections that are kept.

Decided here: bodies arrive as the socket gives them; leaving the block or cancelling the task
closes the socket at once; a request goes out a second time only where a kept connection was closed
as soon as it had it, and on a new one; redirects are not followed, because the next host would get
the key; nothing packed is asked for, because packing holds small pieces back, but what comes packed
with gzip or deflate is unpacked, a bounded piece at a time. What came before something wrong is
given out first. Proxies and certificates come from the environment (see `proxy` and `connection`).
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple, Self
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from mull._version import __version__
from mull.client.clock import upload_seconds
from mull.client.connection import Address, Connection, Overtime, connect, running_loop
from mull.client.http1 import AnswerReader, ProtocolError, encode_head
from mull.client.pool import Pool
from mull.client.proxy import find_proxy
from mull.neutral.errors import ConfigError, NetworkError, UnusableError

__all__ = ["Answer", "HttpRequest", "Transport", "TransportOptions", "host_of"]

AT_ONCE = 0.5
"""Seconds after a request within which a kept connection that ends was closed already, or was just
being closed: its endpoint has not begun to think about what it was asked."""
HEAD_SECONDS = 30.0
"""How long the head of an answer may take once it has begun."""
UNPACKED = 64 * 1024
"""Bytes that are unpacked at once: what is packed may be a thousand times as long."""
_WBITS = {"gzip": 31, "x-gzip": 31, "deflate": 47}


class HttpRequest(Struct, frozen=True):
    """One request. Its headers hold keys, so they are never shown."""

    method: str
    url: str
    headers: Mapping[str, str] = {}
    body: bytes = b""

    def __repr__(self) -> str:
        return f"HttpRequest({self.method} {self.url})"


class TransportOptions(Struct, frozen=True):
    """`connect` is how many seconds a connection may take to stand."""

    connect: float = 20.0


@lru_cache(maxsize=256)
def host_of(url: str) -> str:
    """The host and port of an address, as a person may see it: no user, password or query."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2] or "the endpoint"
    except ValueError:
        return "the endpoint"


def _ignore(reason: str) -> None:
    pass


class Transport:
    """Sends requests and keeps connections for the next ones. Close it when done: what is under
    way then goes on, and nothing is kept any more.

    It may be used from several event loops, each of which has connections of its own.
    """

    def __init__(self, options: TransportOptions | None = None) -> None:
        self._options = options or TransportOptions()
        self._pool = Pool()

    def send(
        self,
        request: HttpRequest,
        *,
        idle: float | None = None,
        total: float | None = None,
        again: Callable[[str], None] = _ignore,
    ) -> Answer:
        """The answer to a request, for `async with`: entering sends it and waits for the answer's
        head, leaving closes what is still open.

        `idle` is how many seconds the endpoint may be silent, `total` how many all may take.
        `again` is told the reason when the request is about to go out a second time: a connection
        that was kept ended within `AT_ONCE`. That happens once at most, on a new connection.

        Raises:
            ConfigError: the address, a header, a proxy or the certificates cannot be used.
            LocalError: no event loop runs here that can be used.
            NetworkError: the endpoint cannot be reached, or the connection broke.
            SilenceError: nothing came for too long.
        """
        return Answer(request, self._pool, _Limits(self._options.connect, idle, total), again)

    async def close(self) -> None:
        """Close all connections that wait; those in use are closed after it."""
        await self._pool.close()


class _Limits(NamedTuple):
    connect: float
    idle: float | None
    total: float | None


class Answer:
    """What came back: the head at once, the body as it comes. Made by `Transport.send`."""

    def __init__(
        self, request: HttpRequest, pool: Pool, limits: _Limits, again: Callable[[str], None]
    ) -> None:
        self._request = request
        self._pool = pool
        self._limits = limits
        self._again = again
        self._connection: Connection
        self._name = ""
        self._reader = AnswerReader(request.method)
        self._first = self._ahead = b""
        self._packed: _Packed | None = None
        self._fault: NetworkError | None = None
        self._drains = False
        self.status: int = 0
        self.headers: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        place, head = _address(self._request)
        data = head + self._request.body
        loop = running_loop()
        total = self._limits.total
        until = math.inf if total is None else loop.time() + total
        await self._pool.open()
        kept = await self._pool.take(place)
        if kept is None or not await self._ask_kept(kept, data, until):
            patience = min(self._limits.connect, max(until - loop.time(), 0.0))
            self._connection = await connect(place, patience)
            self._connection.ask(data, self._limits.idle, until)
            await self._hear(len(data))
        return self

    async def __aexit__(self, error: object, *_: object) -> None:
        if not self._reader.reusable:
            if error is not None or not self._drains or not self._reader.keeps:
                self._connection.close()
                return
            self._connection.drain(self._reader)
        self._pool.keep(self._connection)

    async def _ask_kept(self, connection: Connection, data: bytes, until: float) -> bool:
        """Ask on a connection that was used before. False if it was closed before it heard."""
        began, self._connection = connection.loop.time(), connection
        connection.ask(data, self._limits.idle, until)
        try:
            await self._hear(len(data))
        except NetworkError as error:
            if self._reader.touched:
                raise
            self._pool.drop(connection.place)
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
            self._open()
        except Overtime:
            connection.close()
            text = (
                f"{self._name} did not finish the head of its response within {HEAD_SECONDS:.0f} s"
            )
            raise UnusableError(text) from None
        except BaseException:
            connection.close()
            raise

    def _open(self) -> None:
        self.status, self.headers = self._reader.status, self._reader.headers
        coding = self.headers.get("content-encoding", "identity").lower()
        if coding in _WBITS:
            self._packed = _Packed(_WBITS[coding])
        elif coding not in ("identity", ""):
            raise UnusableError(
                f"{self._name} compressed its response ({coding}) although mull did not ask for it"
            )

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        piece, self._ahead = self._ahead, b""
        packed = self._packed
        while not piece:
            if packed is not None and packed.holds_more:
                piece = self._unpack(packed, b"")
                continue
            piece, self._first = self._first, b""
            if not piece:
                if self._fault is not None:
                    raise self._fault
                if self._reader.has_body:
                    raise StopAsyncIteration
                try:
                    piece = self._feed(await self._connection.read())
                except Overtime:
                    raise StopAsyncIteration from None
            if piece and packed is not None:
                piece = self._unpack(packed, piece)
        return piece

    async def peek(self) -> bytes:
        """The first bytes of the body, without taking them."""
        if not self._ahead:
            self._ahead = await anext(self, b"")
        return self._ahead

    def finish_within(self, seconds: float) -> None:
        """Take what comes in so many seconds from now for the rest of the body."""
        self._connection.end_by(self._connection.loop.time() + seconds)

    def drain(self) -> None:
        """Nothing of the rest is wanted: leaving does not drop the connection at once, but keeps
        it for another request if that rest is short."""
        self._drains = True

    async def read(self, limit: int) -> bytes:
        """The rest of the body, cut at `limit` bytes."""
        pieces: list[bytes] = []
        size = 0
        async for piece in self:
            pieces.append(piece)
            size += len(piece)
            if size >= limit:
                break
        return b"".join(pieces)[:limit]

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

    def _unpack(self, packed: _Packed, piece: bytes) -> bytes:
        piece = packed.feed(piece)
        if packed.fault is not None:
            said = f"{self._name} compressed its response incorrectly: {packed.fault}"
            self._fault = UnusableError(said)
        return piece


class _Packed:
    """Unpacks a body, at most `UNPACKED` bytes at once."""

    def __init__(self, wbits: int) -> None:
        self._inflate = zlib.decompressobj(wbits)
        self._tail = b""
        self.holds_more = False
        self.fault: zlib.error | None = None

    def feed(self, data: bytes) -> bytes:
        """The next bytes; where it `holds_more`, feed nothing to get them."""
        if self._inflate.eof or self.fault is not None:
            self.holds_more = False
            return b""  # what follows the packed body is no part of it
        data, before = self._tail + data, self._inflate.copy()
        try:
            piece = self._inflate.decompress(data, UNPACKED)
        except zlib.error as error:
            self.fault, self.holds_more = error, False
            return _salvage(before, data)
        self._tail = self._inflate.unconsumed_tail
        self.holds_more = bool(self._tail) or len(piece) == UNPACKED
        return piece


def _salvage(inflate: zlib._Decompress, data: bytes) -> bytes:
    """What can be unpacked before the byte that is wrong."""
    pieces: list[bytes] = []
    try:
        for at in range(len(data)):
            pieces.append(inflate.decompress(data[at : at + 1]))
    except zlib.error:
        pass
    return b"".join(pieces)


def _address(request: HttpRequest) -> tuple[Address, bytes]:
    """Where a request goes, and its head."""
    parts, port = _split(request.url)
    host = parts.hostname or ""
    proxy = find_proxy(parts.scheme, host, port, os.environ)
    place = Address(parts.scheme, host, port, proxy)
    headers = {
        "host": place.name,
        "user-agent": f"mull/{__version__}",
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
