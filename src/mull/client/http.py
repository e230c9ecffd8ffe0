"""Bytes to an endpoint and back, over connections that are kept.

Decided here: bodies arrive as the socket gives them; leaving the block or cancelling the task
closes the socket at once; redirects are not followed, because the next host would get the key;
nothing packed is asked for, because packing holds small pieces back, but what comes packed with
gzip or deflate is unpacked. Proxies and certificates come from the environment (see `proxy` and
`connection`).
"""

from __future__ import annotations

import asyncio
import math
import os
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from mull._version import __version__
from mull.client.clock import upload_seconds
from mull.client.connection import Connection, Place, connect
from mull.client.http1 import AnswerReader, ProtocolError, encode_head
from mull.client.proxy import find_proxy
from mull.neutral.errors import ConfigError, NetworkError

__all__ = ["Answer", "HttpRequest", "Transport", "TransportOptions", "host_of"]

KEPT_SECONDS = 50.0
"""How long a connection is kept for another request; servers close theirs after a minute or so."""
KEPT_PER_PLACE = 8
_WBITS = {"gzip": 31, "x-gzip": 31, "deflate": 47}


@dataclass(frozen=True)
class HttpRequest:
    """One request. Its headers hold keys, so they are never shown."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class TransportOptions:
    """`connect` is how many seconds a connection may take to stand."""

    connect: float = 20.0


def host_of(url: str) -> str:
    """The host and port of an address, as a person may see it: no user, password or query."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2] or "the endpoint"
    except ValueError:
        return "the endpoint"


class Transport:
    """Sends requests and keeps connections for the next ones. Close it when done."""

    def __init__(self, options: TransportOptions | None = None) -> None:
        self._options = options or TransportOptions()
        self._kept: dict[Place, list[Connection]] = {}

    @asynccontextmanager
    async def send(
        self, request: HttpRequest, *, idle: float | None = None, total: float | None = None
    ) -> AsyncIterator[Answer]:
        """Send it, and give the answer once its head is there; leaving closes what is still open.

        `idle` is how many seconds the endpoint may be silent, `total` how many all may take.

        Raises:
            ConfigError: the address, a header, a proxy or the certificates cannot be used.
            NetworkError: the endpoint cannot be reached, or the connection broke.
            SilenceError: nothing came for too long.
        """
        place, head = _address(request)
        loop = asyncio.get_running_loop()
        until = math.inf if total is None else loop.time() + total
        answer = None
        while answer is None:
            connection = self._take(place)
            if connection is None:
                patience = min(self._options.connect, max(until - loop.time(), 0.0))
                connection = await connect(place, patience)
            connection.start(idle, until)
            answer = Answer(connection, place.name, request.method)
            try:
                connection.write(head + request.body)
                if not await answer.open(upload_seconds(len(request.body))):
                    answer = None  # it was closed while it was kept, before it got the request
                    continue
                yield answer
            finally:
                if answer is not None and answer.reusable:
                    self._keep(place, connection)
                else:
                    connection.close()

    async def close(self) -> None:
        """Close all connections."""
        for connections in self._kept.values():
            for connection in connections:
                connection.close()
        self._kept.clear()
        await asyncio.sleep(0)  # lets the sockets go

    def _take(self, place: Place) -> Connection | None:
        loop = asyncio.get_running_loop()
        kept = self._kept.get(place, [])
        while kept:
            connection = kept.pop()
            if connection.loop is not loop:
                continue  # of a loop that has ended
            if connection.is_open and loop.time() - connection.idle_since < KEPT_SECONDS:
                return connection
            connection.close()
        return None

    def _keep(self, place: Place, connection: Connection) -> None:
        kept = self._kept.setdefault(place, [])
        connection.used = True
        connection.idle_since = connection.loop.time()
        kept.append(connection)
        if len(kept) > KEPT_PER_PLACE:
            kept.pop(0).close()


class Answer:
    """What came back: the head at once, the body as it comes."""

    def __init__(self, connection: Connection, name: str, method: str) -> None:
        self._connection = connection
        self._name = name
        self._reader = AnswerReader(method)
        self._first = b""
        self._packed: zlib._Decompress | None = None
        self.status = 0
        self.headers: dict[str, str] = {}

    @property
    def reusable(self) -> bool:
        """Whether it was read to its end, and its connection can be used again."""
        return self._reader.reusable and self._connection.is_open

    async def open(self, extra: float) -> bool:
        """Wait for the head. False if a kept connection turned out to be closed."""
        reader = self._reader
        while not reader.status:
            try:
                data = await self._connection.read(extra)
            except NetworkError as error:
                if self._connection.used and type(error) is NetworkError and not reader.touched:
                    return False
                raise
            if not data and self._connection.used and not reader.touched:
                return False
            self._first += self._feed(data)
        self.status, self.headers = reader.status, reader.headers
        coding = self.headers.get("content-encoding", "identity").lower()
        if coding in _WBITS:
            self._packed = zlib.decompressobj(_WBITS[coding])
        elif coding not in ("identity", ""):
            raise NetworkError(f"{self._name} packed its answer ({coding}) although not asked to")
        return True

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while True:
            piece, self._first = self._first, b""
            if not piece:
                if self._reader.done:
                    raise StopAsyncIteration
                piece = self._feed(await self._connection.read())
            if piece and self._packed is not None:
                piece = self._unpack(self._packed, piece)
            if piece:
                return piece

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
        try:
            if data:
                return self._reader.feed(data)
            self._reader.close()
        except ProtocolError as error:
            raise NetworkError(f"the connection to {self._name} broke: {error}") from None
        return b""

    def _unpack(self, packed: zlib._Decompress, piece: bytes) -> bytes:
        try:
            return packed.decompress(piece)
        except zlib.error as error:
            raise NetworkError(f"{self._name} packed its answer wrongly: {error}") from None


def _address(request: HttpRequest) -> tuple[Place, bytes]:
    """Where a request goes, and its head."""
    parts, port = _split(request.url)
    host = parts.hostname or ""
    proxy = find_proxy(parts.scheme, host, port, os.environ)
    place = Place(parts.scheme, host, port, proxy)
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
