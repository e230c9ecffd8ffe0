"""One connection to an endpoint: how it comes to stand, what it reads, how it ends.

Everything here is the standard library's: asyncio for the socket, ssl for TLS. Reading waits with
two limits (`clock.Patience`); the silence that counts is the socket's own, so any byte ends it.
Closing drops the connection on the spot, whatever was still to come.
"""

from __future__ import annotations

import asyncio
import functools
import math
import os
import re
import socket
import ssl
from typing import NamedTuple

from mull.client.clock import Patience, Verdict, say_seconds
from mull.client.http1 import AnswerReader, ProtocolError, encode_head
from mull.client.proxy import Proxy
from mull.neutral.errors import ConfigError, NetworkError, SilenceError

__all__ = ["Connection", "Place", "connect", "say_error"]

BUFFERED = 1024 * 1024
"""How much may wait to be read before the other side is told to pause."""
KEEPALIVE_SECONDS = 30
_ERRNO = re.compile(r"\[Errno (\d+)\]")


class Place(NamedTuple):
    """Where a connection leads. Connections are shared between requests to equal places."""

    scheme: str
    host: str
    port: int
    proxy: Proxy | None = None

    @property
    def name(self) -> str:
        """The host, and the port where it is not the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (
            host if self.port == (443 if self.scheme == "https" else 80) else f"{host}:{self.port}"
        )


class Connection(asyncio.Protocol):
    """A socket that is read piece by piece. Made by `connect`."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.get_running_loop()
        self.used = False
        self.idle_since = 0.0
        self._name = name
        self._transport: asyncio.Transport | None = None
        self._pieces: list[bytes] = []
        self._size = 0
        self._ended = False
        self._lost: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._patience = Patience(None, None, 0.0)
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        """Whether it can take a request: nothing came unasked, and nobody closed it."""
        return not (self._ended or self._pieces or self._lost)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: the socket stands; with TLS, the second time it is the inner transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """asyncio: bytes came."""
        self._pieces.append(data)
        self._size += len(data)
        if self._size > BUFFERED and self._transport is not None:
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        """asyncio: the other side will say no more."""
        self._ended = True
        self._wake()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio: the socket is gone."""
        self._ended, self._lost = True, exc
        self._wake()

    def start(self, idle: float | None, until: float) -> None:
        """Begin the time of a request, which ends at `until` by the loop's clock."""
        self._stop_timer()
        now = self.loop.time()
        self._patience = Patience(idle, None if until == math.inf else until - now, now)

    def write(self, data: bytes) -> None:
        """Send bytes; they wait in memory until the socket takes them."""
        if self._transport is not None:
            self._transport.write(data)

    async def read(self, extra: float = 0.0) -> bytes:
        """The bytes that are there, or the next that come; none at the end. Silence begins to
        count after `extra` seconds.

        Raises:
            NetworkError: the connection broke, or a limit was reached.
        """
        if not self._pieces and not self._ended:
            await self._wait(extra)
        pieces, self._pieces = self._pieces, []
        if pieces:
            if self._size > BUFFERED and self._transport is not None:
                self._transport.resume_reading()
            self._size = 0
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if self._lost is not None:
            raise NetworkError(f"the connection to {self._name} broke: {say_error(self._lost)}")
        return b""

    def close(self) -> None:
        """Drop it, at once."""
        self._stop_timer()
        if self._transport is not None:
            self._transport.abort()

    async def start_tls(self, context: ssl.SSLContext, host: str) -> None:
        """Speak TLS from here on, as one does behind a proxy."""
        assert self._transport is not None
        transport = await self.loop.start_tls(self._transport, self, context, server_hostname=host)
        self._transport = transport

    async def _wait(self, extra: float) -> None:
        self._waiter = self.loop.create_future()
        self._patience.since = self.loop.time() + extra
        if self._timer is None and (due := self._patience.due()) != math.inf:
            self._timer = self.loop.call_at(due, self._look)
        try:
            await self._waiter
        finally:
            self._waiter = None
            self._patience.since = math.inf
            if extra:
                self._stop_timer()  # it was set with the extra seconds

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _look(self) -> None:
        """The timer: one over the whole answer, so that a chunk costs none of its own."""
        self._timer = None
        patience = self._patience
        if self._waiter is None or self._waiter.done():
            return  # the next wait sets it again
        verdict = patience.judge(self.loop.time())
        if verdict is None:
            self._timer = self.loop.call_at(patience.due(), self._look)
        else:
            self._waiter.set_exception(self._give_up(verdict))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self, verdict: Verdict) -> NetworkError:
        span = say_seconds(verdict.seconds)
        if verdict.silent:
            return SilenceError(f"nothing came from {self._name} for {span}")
        return NetworkError(f"{self._name} was not done after {span}, the limit that was set")


async def connect(place: Place, seconds: float) -> Connection:
    """A new connection, within so many seconds.

    Raises:
        ConfigError: the trusted certificates cannot be read.
        NetworkError: it cannot be had; says why.
    """
    near, proxy = place.name, place.proxy
    hint = f"\n(through the proxy that {proxy.variable} names)" if proxy else ""
    try:
        async with asyncio.timeout(seconds):
            return await _connect(place)
    except TimeoutError:
        told = f"it does not answer within {say_seconds(seconds)}"
        raise NetworkError(f"cannot connect to {near}: {told}{hint}") from None
    except socket.gaierror as error:
        who = proxy.host if proxy else near
        raise NetworkError(f"cannot find {who}: {say_error(error)}{hint}") from None
    except ssl.SSLCertVerificationError as error:
        raise NetworkError(
            f"cannot trust {near}: {error.verify_message}.\n"
            "For a certificate authority of your own, set SSL_CERT_FILE to its certificate"
        ) from None
    except ssl.SSLError as error:
        raise NetworkError(f"cannot speak TLS with {near}: {say_error(error)}{hint}") from None
    except OSError as error:
        raise NetworkError(f"cannot connect to {near}: {say_error(error)}{hint}") from None


async def _connect(place: Place) -> Connection:
    proxy = place.proxy
    host, port = (proxy.host, proxy.port) if proxy else (place.host, place.port)
    secure = place.scheme == "https"
    context = _trust() if secure else None
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(
        lambda: Connection(place.name),
        host,
        port,
        ssl=context if not proxy else None,
        happy_eyeballs_delay=0.25,
    )
    try:
        _keep_alive(connection)
        if proxy and context is not None:
            await _tunnel(connection, place, proxy)
            await connection.start_tls(context, place.host)
    except BaseException:
        connection.close()
        raise
    return connection


async def _tunnel(connection: Connection, place: Place, proxy: Proxy) -> None:
    """Have the proxy connect to the place itself."""
    authority = (
        f"[{place.host}]:{place.port}" if ":" in place.host else f"{place.host}:{place.port}"
    )
    headers = {"host": authority}
    if proxy.authorization:
        headers["proxy-authorization"] = proxy.authorization
    connection.write(encode_head("CONNECT", authority, headers))
    reader = AnswerReader("HEAD")  # what follows the head is the place's
    try:
        while not reader.status:
            if not (data := await connection.read()):
                reader.close()
            reader.feed(data)
    except ProtocolError as error:
        raise ConnectionError(f"the proxy {proxy.host} failed: {error}") from None
    if not 200 <= reader.status < 300:
        raise ConnectionError(f"the proxy {proxy.host} answered {reader.status}")


def _keep_alive(connection: Connection) -> None:
    """A model may think for minutes without a byte: probes keep the way open meanwhile, and find
    out if the other side is gone."""
    transport = connection._transport
    assert transport is not None
    sock = transport.get_extra_info("socket")
    for level, name, value in (
        (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
        (socket.IPPROTO_TCP, "TCP_KEEPIDLE", KEEPALIVE_SECONDS),
        (socket.IPPROTO_TCP, "TCP_KEEPINTVL", KEEPALIVE_SECONDS // 2),
    ):
        if (option := getattr(socket, name, None)) is not None:
            sock.setsockopt(level, option, value)


def _trust() -> ssl.SSLContext:
    """The trusted certificates: the system's, or those of SSL_CERT_FILE and SSL_CERT_DIR."""
    return _trust_of(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@functools.lru_cache(maxsize=4)
def _trust_of(file: str | None, folder: str | None) -> ssl.SSLContext:
    for name, path in (("SSL_CERT_FILE", file), ("SSL_CERT_DIR", folder)):
        if path and not any(os.path.exists(part) for part in path.split(os.pathsep)):
            raise ConfigError(f"{name} names {path!r}, which does not exist")
    try:
        context = ssl.create_default_context()
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"the trusted certificates cannot be read: {say_error(error)}") from None
    context.set_alpn_protocols(["http/1.1"])
    return context


def say_error(error: Exception) -> str:
    """An operating system's error in a few words."""
    if isinstance(error, ssl.SSLError):
        return (error.reason or "it broke off").lower().replace("_", " ")
    if isinstance(error, socket.gaierror):
        return error.strerror or "its name cannot be looked up"
    # asyncio puts addresses in the place of the system's words, or joins several errors in one.
    number = _ERRNO.search(str(error))
    if number is not None:
        return os.strerror(int(number.group(1))).lower()
    return str(error) or type(error).__name__
