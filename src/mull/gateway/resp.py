"""A client for servers that speak RESP, the protocol of Valkey and Redis.

All callers share one connection: commands are pipelined, and replies arrive in the same order. A
connection that is lost or times out is reopened in the background; until then every command fails
immediately.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple, TypeAlias
from urllib.parse import parse_qs, unquote, urlsplit

from mull.neutral.errors import ConfigError

__all__ = ["PATIENCE", "Address", "Command", "Reply", "RespClient", "RespError", "read_address"]

Command: TypeAlias = Sequence[bytes | str | int]
Reply: TypeAlias = "bytes | int | RespError | list[Reply] | None"
PATIENCE = 0.1
"""Seconds to wait for a reply."""
_SCHEMES = {"valkey": False, "redis": False, "valkeys": True, "rediss": True}
_PORT = 6379
_LONGEST = 512 << 20
_DEEPEST = 8
_CONNECT_PATIENCE = 2.0
_LONGEST_PAUSE = 2.0


class RespError(Exception):
    """The server rejected a command, or its reply is not RESP."""


class Address(NamedTuple):
    """The address of a server and the credentials to log in."""

    host: str
    port: int = _PORT
    user: str | None = None
    password: str | None = None
    database: int = 0
    tls: bool = False
    ca_file: str | None = None


def read_address(url: str) -> Address:
    """The address in a URL such as `valkeys://user:password@host:6379/0`.

    Raises:
        ConfigError: it is not such a URL. The message does not repeat the password.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or _PORT
        database = int(parts.path.strip("/") or 0)
    except ValueError:
        raise ConfigError(_MALFORMED) from None
    query = parse_qs(parts.query)
    if parts.scheme not in _SCHEMES or not parts.hostname or set(query) - {"sslrootcert"}:
        raise ConfigError(_MALFORMED)
    return Address(
        host=parts.hostname,
        port=port,
        user=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
        database=database,
        tls=_SCHEMES[parts.scheme],
        ca_file=query.get("sslrootcert", [None])[0],
    )


_MALFORMED = (
    "cache cannot be this URL: use valkey://HOST:PORT or valkeys://USER:PASSWORD@HOST:PORT/DATABASE"
    " (with TLS), optionally with ?sslrootcert=FILE"
)


class RespClient:
    """Sends commands to one server."""

    def __init__(self, address: Address, *, patience: float = PATIENCE) -> None:
        self._address = address
        self._patience = patience
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._first: asyncio.Future[None] | None = None
        self._waiting: deque[tuple[int, asyncio.Future[list[Reply]]]] = deque()
        self._tls = self._context() if address.tls else None

    def _context(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cafile=self._address.ca_file)
        except OSError as error:
            raise ConfigError(
                f"cannot read the certificates in {self._address.ca_file}: {error.strerror}"
            ) from None

    async def ask(self, commands: Sequence[Command]) -> list[Reply]:
        """Send these commands together and return their replies.

        Raises:
            OSError: the server cannot be reached or does not reply in time.
            RespError: the server rejects the login.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(self._patience):
                if self._writer is None:
                    await asyncio.shield(self._connected())
                return await self._send(commands)
        except TimeoutError:
            late = TimeoutError("the server did not reply in time")
            if loop.time() - began < 2 * self._patience:  # otherwise this process was busy
                self._drop(late)
            raise late from None

    def _send(self, commands: Sequence[Command]) -> asyncio.Future[list[Reply]]:
        if self._writer is None:
            raise ConnectionError("the server cannot be reached")
        future: asyncio.Future[list[Reply]] = asyncio.get_running_loop().create_future()
        self._waiting.append((len(commands), future))
        self._writer.write(b"".join(map(_packed, commands)))
        return future

    def _connected(self) -> asyncio.Future[None]:
        """A future for the first attempt to connect; later attempts continue in the background."""
        if self._first is not None and not self._first.done():
            return self._first
        if self._connecting is not None:
            raise ConnectionError("the server cannot be reached")
        loop = asyncio.get_running_loop()
        self._first = loop.create_future()
        self._connecting = loop.create_task(self._connect(self._first))
        return self._first

    async def _connect(self, first: asyncio.Future[None]) -> None:
        """Try to connect until it succeeds."""
        pause = 0.05
        while True:
            try:
                async with asyncio.timeout(_CONNECT_PATIENCE):
                    await self._open()
                break
            except (OSError, RespError) as error:
                if not first.done():
                    first.set_exception(error)
                    first.exception()  # retrieved in case nobody awaits it any more
            await asyncio.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 2)
        self._connecting = None
        if not first.done():
            first.set_result(None)

    async def _open(self) -> None:
        where = self._address
        reader, writer = await asyncio.open_connection(where.host, where.port, ssl=self._tls)
        try:
            writer.write(b"".join(map(_packed, _greeting(where))))
            for _ in _greeting(where):
                reply = await _read(reader)
                if isinstance(reply, RespError):
                    raise reply
        except BaseException:
            writer.close()
            raise
        self._writer = writer
        self._reading = asyncio.get_running_loop().create_task(self._read_all(reader, writer))

    async def _read_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read replies and pass them to their callers until the connection ends."""
        try:
            while True:
                replies = [await _read(reader)]
                count, future = self._waiting.popleft()
                replies += [await _read(reader) for _ in range(count - 1)]
                if not future.done():
                    future.set_result(replies)
        except (OSError, RespError, EOFError, IndexError) as error:
            if self._writer is writer:
                self._drop(ConnectionError(f"the connection was lost: {error}"))

    def _drop(self, error: OSError) -> None:
        """Abandon the connection: fail all waiting callers and open a new connection."""
        writer, self._writer = self._writer, None
        if writer is None:
            return
        writer.transport.abort()
        if self._reading is not None and self._reading is not asyncio.current_task():
            self._reading.cancel()
        waiting, self._waiting = self._waiting, deque()
        for _, future in waiting:
            if not future.done():
                future.set_exception(error)
                future.exception()
        if self._connecting is None:
            self._connected()

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection now."""
        return self._writer is not None

    async def close(self) -> None:
        """Close the connection."""
        for task in (self._connecting, self._reading):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        self._connecting = self._reading = None
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _greeting(address: Address) -> list[Command]:
    commands: list[Command] = []
    if address.password is not None:
        user = () if address.user is None else (address.user,)
        commands.append(("AUTH", *user, address.password))
    if address.database:
        commands.append(("SELECT", address.database))
    return commands or [("PING",)]


def _packed(command: Command) -> bytes:
    pieces = [b"*%d\r\n" % len(command)]
    for word in command:
        data = word if isinstance(word, bytes) else str(word).encode()
        pieces.append(b"$%d\r\n%b\r\n" % (len(data), data))
    return b"".join(pieces)


async def _read(reader: asyncio.StreamReader, depth: int = 0) -> Reply:
    """One reply.

    Raises:
        EOFError: the connection ended.
        RespError: the data is not RESP.
    """
    try:
        line = await reader.readuntil(b"\r\n")
    except asyncio.LimitOverrunError:
        raise RespError("a line is too long") from None
    kind, rest = line[:1], line[1:-2]
    match kind:
        case b"+":
            return rest
        case b"-":
            return RespError(rest.decode("utf-8", "replace")[:200])
        case b":":
            return _number(rest)
        case b"$":
            length = _number(rest)
            if length < 0:
                return None
            return (await reader.readexactly(length + 2))[:-2]
        case b"*" if depth < _DEEPEST:
            return [await _read(reader, depth + 1) for _ in range(_number(rest))]
    raise RespError(f"not a RESP reply: {line[:40]!r}")


def _number(text: bytes) -> int:
    if not text.removeprefix(b"-").isdigit() or len(text) > 20 or int(text) > _LONGEST:
        raise RespError(f"not a RESP length: {text[:40]!r}")
    return int(text)
