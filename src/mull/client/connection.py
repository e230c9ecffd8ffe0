"""One connection to an endpoint: how it comes to stand, what it reads, how it ends.

Everything here is the standard library's: asyncio for the socket, ssl for TLS. Nothing asks for
more than every event loop of asyncio's kind has, uvloop's too. Reading waits with two limits
(`clock.Patience`); the silence that counts is the socket's own, so any byte ends it. Closing drops
the connection on the spot, whatever was still to come. A connection belongs to the event loop and
to the process that made it: after a fork it is the parent's, and the child leaves it alone.
"""

from __future__ import annotations

import asyncio
import math
import os
import socket
import ssl
from itertools import chain, zip_longest
from typing import Any, cast

from msgspec import Struct

from mull.client.certificates import Trust, say_ssl_error
from mull.client.clock import Patience, Verdict, say_seconds
from mull.client.http1 import AnswerReader, ProtocolError, encode_head
from mull.client.proxy import Proxy
from mull.neutral.errors import (
    ConfigError,
    LocalError,
    NetworkError,
    SilenceError,
    UnusableError,
)
from mull.neutral.patterns import pattern

__all__ = [
    "Address",
    "Connection",
    "Overtime",
    "connect",
    "given_up",
    "running_loop",
    "say_error",
    "untrusted",
]

BUFFERED = 1024 * 1024
"""How much may wait to be read before the other side is told to pause."""
DRAINED = 64 * 1024
"""How much may follow the end of an answer before its connection is dropped."""
DRAIN_SECONDS = 0.25
"""How long the rest of an answer may take that nobody waits for."""
KEEPALIVE_SECONDS = 30
NEXT_ADDRESS_SECONDS = 0.25
"""How long one of a host's addresses may be silent before the next is tried beside it."""
_ERRNO = pattern(r"\[Errno (\d+)\]")


class Address(Struct, frozen=True):
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


def running_loop() -> asyncio.AbstractEventLoop:
    """The event loop of the caller.

    Raises:
        LocalError: there is none that mull can use.
    """
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise LocalError(
            "mull's asynchronous calls need asyncio (its own event loop, uvloop's, or anyio over"
            " either), and none is running here: under trio, run the blocking calls in a thread"
        ) from None


class Overtime(NetworkError):
    """The moment has come that was set with `end_by`. Whoever set it deals with it."""


class Connection(asyncio.Protocol):
    """A socket that is read piece by piece. Made by `connect`."""

    _transport: asyncio.Transport

    def __init__(self, place: Address) -> None:
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self.place = place
        self._process = os.getpid()
        self._pieces: list[bytes] = []
        self._size = 0
        self._ended = False
        self._lost: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._patience = Patience(None, None, 0.0)
        self._timer: asyncio.TimerHandle | None = None
        self._rest: AnswerReader | None = None
        self._drained = 0
        self._kept_seconds = 0.0
        self._late = False
        self._settled = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """Whether it can take a request: nothing came unasked, and nobody closed it."""
        return not (self._ended or self._pieces or self._transport.is_closing())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: the socket stands; with TLS, the second time it is the inner transport."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name

    def data_received(self, data: bytes) -> None:
        """asyncio: bytes came."""
        if self._rest is not None:
            self._throw_away(self._rest, data)
            return
        self._pieces.append(data)
        self._size += len(data)
        if self._size > BUFFERED and not self._transport.is_closing():
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        """asyncio: the other side will say no more."""
        self._ended = True
        self._settled.set()
        self._wake()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio: the socket is gone."""
        self._ended, self._lost = True, exc
        self._settled.set()
        self._wake()

    def ask(self, data: bytes, idle: float | None, until: float) -> None:
        """Send a request; its time begins, and ends at `until` by the loop's clock. What the socket
        does not take at once waits in memory."""
        self._transport.write(data)
        self._stop_timer()
        now = self.loop.time()
        self._patience = Patience(idle, None if until == math.inf else until - now, now)

    def end_by(self, moment: float) -> None:
        """Read until this moment by the loop's clock at most, whatever comes: then, `Overtime`."""
        self._stop_timer()  # the next wait sets it anew
        self._patience.ends, self._late = moment, False

    def rest(self, seconds: float) -> None:
        """Wait for another request, for so many seconds at most."""
        self._stop_timer()
        self._kept_seconds = seconds
        patience = seconds if self._rest is None else min(seconds, DRAIN_SECONDS)
        self._timer = self.loop.call_later(patience, self.close)

    def drain(self, reader: AnswerReader) -> None:
        """Throw the rest of an answer away as it comes, without anybody waiting for it: the
        connection rests after it, or is dropped if that is too long."""
        self._rest, self._drained = reader, 0
        self._settled.clear()
        pieces, self._pieces, size, self._size = self._pieces, [], self._size, 0
        if size > BUFFERED and not self._transport.is_closing():
            self._transport.resume_reading()
        for piece in pieces:
            if self._rest is not None:
                self._throw_away(self._rest, piece)

    @property
    def is_draining(self) -> bool:
        """Whether the rest of an answer is still to come."""
        return self._rest is not None

    async def settled(self) -> None:
        """Wait until the rest of the answer is gone, or the connection is."""
        await self._settled.wait()

    def _throw_away(self, reader: AnswerReader, data: bytes) -> None:
        self._drained += len(data)
        try:
            reader.feed(data)
        except ProtocolError:
            self.close()
            return
        if reader.reusable:
            self._rest = None
            self._settled.set()
            if self._timer is not None:
                self.rest(self._kept_seconds)
        elif reader.done or self._drained > DRAINED:
            self.close()

    def write(self, data: bytes) -> None:
        """Send bytes; they wait in memory until the socket takes them."""
        self._transport.write(data)

    async def read(self, extra: float = 0.0) -> bytes:
        """The bytes that are there, or the next that come; none at the end. Silence begins to
        count after `extra` seconds.

        Raises:
            NetworkError: the connection broke, or a limit was reached.
        """
        if (verdict := self._patience.judge(self.loop.time())) is not None:
            if verdict.limit != "closing" or self._late or not self._pieces:
                raise self._give_up(verdict)
            self._late = True  # what came meanwhile came in time, for all that is known
        if not self._pieces and not self._ended:
            waiter = self._waiter = self.loop.create_future()
            self._patience.since = self.loop.time() + extra
            if self._timer is None:
                self._set_timer()
            try:
                await waiter
            finally:
                self._waiter = None
                self._patience.since = math.inf
                if extra:
                    self._stop_timer()  # it was set with the extra seconds
        pieces = self._pieces
        if pieces:
            self._pieces = []
            if self._size > BUFFERED and not self._transport.is_closing():
                self._transport.resume_reading()
            self._size = 0
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if self._lost is not None:
            raise _broke(self.place.name, self._lost)
        return b""

    def close(self) -> None:
        """Drop it, at once."""
        self._stop_timer()
        self._ended, self._rest = True, None
        self._settled.set()
        if os.getpid() != self._process:
            return  # to close it here would silence it in the process that it belongs to
        if not self.loop.is_closed():
            self._transport.abort()
        elif sock := getattr(self._transport.get_extra_info("socket"), "_sock", None):
            sock.close()  # asyncio would leave it to the collector; uvloop has closed its own

    async def start_tls(self, context: ssl.SSLContext, host: str) -> str | None:
        """Speak TLS from here on, also inside TLS; the protocol that was agreed on, if any."""
        inner = await self.loop.start_tls(self._transport, self, context, server_hostname=host)
        self._transport = cast(asyncio.Transport, inner)
        agreed: str | None = self._transport.get_extra_info("ssl_object").selected_alpn_protocol()
        return agreed

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _set_timer(self) -> None:
        if (due := self._patience.due()) != math.inf:
            self._timer = self.loop.call_at(due, self._look)

    def _look(self) -> None:
        """The timer: one over the whole answer, so that a chunk costs none of its own."""
        self._timer = None
        if self._waiter is None or self._waiter.done():
            return  # the next wait sets it again
        verdict = self._patience.judge(self.loop.time())
        if verdict is None:
            self._set_timer()
        else:
            self._waiter.set_exception(self._give_up(verdict))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self, verdict: Verdict) -> NetworkError:
        return given_up(self.place.name, verdict)


def given_up(name: str, verdict: Verdict) -> NetworkError:
    """The error for a limit that was reached."""
    span = say_seconds(verdict.seconds)
    if verdict.limit == "idle":
        return SilenceError(f"{name} sent nothing for {span}")
    if verdict.limit == "closing":
        return Overtime(f"{name} was not finished after {span}")
    return NetworkError(f"{name} was not finished after {span}, the time limit")


def _broke(name: str, error: Exception) -> NetworkError:
    said = f"the connection to {name} broke: {say_error(error)}"
    reason = error.reason or "" if isinstance(error, ssl.SSLError) else ""
    if "ALERT" in reason and "CERT" in reason:
        return UnusableError(f"{said}.\nGive it a client certificate that it accepts with cert=")
    return NetworkError(said)


async def connect(place: Address, seconds: float, trust: Trust) -> Connection:
    """A new connection, within so many seconds.

    Raises:
        ConfigError: the certificates cannot be read.
        NetworkError: it cannot be had; says why.
    """
    near, proxy = place.name, place.proxy
    hint = _through(place)
    try:
        async with asyncio.timeout(seconds):
            return await _connect(place, trust)
    except TimeoutError:
        told = f"no answer within {say_seconds(seconds)}"
        raise NetworkError(f"cannot connect to {near}: {told}{hint}") from None
    except socket.gaierror as error:
        who = proxy.host if proxy else near
        raise NetworkError(f"cannot find {who}: {say_error(error)}{hint}") from None
    except OSError as error:
        raise NetworkError(f"cannot connect to {near}: {say_error(error)}{hint}") from None


def _through(place: Address) -> str:
    proxy = place.proxy
    return f"\n(through the proxy {proxy.whence})" if proxy else ""


async def _connect(place: Address, trust: Trust) -> Connection:
    proxy, is_tls = place.proxy, place.scheme == "https"
    host, port = (proxy.host, proxy.port) if proxy else (place.host, place.port)
    context = trust.for_endpoint() if is_tls else None
    connection = await _dial(place, await _addresses(host, port))
    try:
        _keep_alive(connection)
        if proxy and proxy.scheme == "https":
            await _speak_tls(connection, trust.for_proxy(), host, f"the proxy {host}")
        if proxy and is_tls:
            await _tunnel(connection, place, proxy)
        if context is not None:
            await _speak_tls(connection, context, place.host, place.name)
    except BaseException:
        connection.close()
        raise
    return connection


async def _speak_tls(connection: Connection, context: ssl.SSLContext, host: str, name: str) -> None:
    try:
        spoken = await connection.start_tls(context, host)
    except ssl.SSLCertVerificationError as error:
        raise untrusted(name, error) from None
    except ssl.SSLError as error:
        # Whoever speaks no TLS there will not do so in a second either.
        kind = UnusableError if error.reason == "WRONG_VERSION_NUMBER" else NetworkError
        told = f"{say_error(error)}{_through(connection.place)}"
        raise kind(f"cannot speak TLS with {name}: {told}") from None
    if spoken not in (None, "http/1.1"):
        raise ConfigError(
            f"the ssl.SSLContext given as verify offers {spoken} to {name}, and mull's own client"
            " speaks HTTP/1.1 only: offer no other protocol, or give an http_client"
        )


def untrusted(name: str, error: ssl.SSLCertVerificationError) -> UnusableError:
    """The error for a certificate that cannot be trusted."""
    return UnusableError(
        f"cannot trust {name}: {error.verify_message}.\n"
        "For your own certificate authority, set SSL_CERT_FILE to its certificate"
    )


async def _addresses(host: str, port: int) -> list[tuple[str, int]]:
    """A host's addresses, the kinds in turns."""
    # Text would always be taken for a name in another script, whose tables are slow to load.
    name = host.encode("ascii" if host.isascii() else "idna")
    try:
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    first = [_address(one[4]) for one in found if one[0] == found[0][0]]
    others = [_address(one[4]) for one in found if one[0] != found[0][0]]
    return [one for one in chain(*zip_longest(first, others)) if one is not None]


def _address(found: tuple[Any, ...]) -> tuple[str, int]:
    host, port, *more = found
    scope = more[1] if len(more) > 1 else 0
    return (f"{host}%{scope}" if scope and "%" not in host else host), port


async def _dial(place: Address, addresses: list[tuple[str, int]]) -> Connection:
    """A connection to the first address that answers. While one is silent the next is tried beside
    it, so that a dead way costs a moment (RFC 8305); asyncio can do so itself, uvloop cannot."""
    loop = asyncio.get_running_loop()
    tries: list[asyncio.Future[tuple[Any, Connection]]] = []
    won = None
    left = iter(addresses)
    try:
        while won is None:
            address = next(left, None)
            if address is not None:
                trying = loop.create_connection(lambda: Connection(place), *address)
                tries.append(asyncio.ensure_future(trying))
            going = [one for one in tries if not one.done()]
            if not going:
                tries[-1].result()  # all have failed; what the last one met is raised
            pause = NEXT_ADDRESS_SECONDS if address is not None else None
            await asyncio.wait(going, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            won = next(filter(_stands, tries), None)
        return won.result()[1]
    finally:
        for one in tries:
            if one is not won and not one.cancel() and _stands(one):
                one.result()[1].close()


def _stands(trying: asyncio.Future[Any]) -> bool:
    return trying.done() and not trying.cancelled() and trying.exception() is None


async def _tunnel(connection: Connection, place: Address, proxy: Proxy) -> None:
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
    sock = connection._transport.get_extra_info("socket")
    for level, name, value in (
        (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
        (socket.IPPROTO_TCP, "TCP_KEEPIDLE", KEEPALIVE_SECONDS),
        (socket.IPPROTO_TCP, "TCP_KEEPINTVL", KEEPALIVE_SECONDS // 2),
    ):
        if (option := getattr(socket, name, None)) is not None:
            sock.setsockopt(level, option, value)


def say_error(error: Exception) -> str:
    """An operating system's error in a few words."""
    if isinstance(error, ssl.SSLError):
        return say_ssl_error(error)
    if isinstance(error, socket.gaierror):
        return error.strerror or "its name cannot be looked up"
    # asyncio puts addresses in the place of the system's words, or joins several errors in one.
    number = _ERRNO.search(str(error))
    if number is not None:
        return os.strerror(int(number.group(1))).lower()
    return str(error) or type(error).__name__
