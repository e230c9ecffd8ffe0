"""A scripted HTTP server on loopback, for tests of anything that talks to a model.

    with ScriptedServer([Reply.events({"choices": [...]}, "[DONE]")]) as server:
        ...  # talk to server.url
    assert server.requests[0].json["model"] == "gpt-5"

Each request takes the next reply of the script. A reply is a head and steps: bytes are sent at
once, a `Gate` waits until the test opens it, a `Pause` lasts as long as it says, `CUT` and `RESET`
break the connection, `STALL` says nothing more until the other side leaves. The server runs in a
thread of its own, so that blocking and asynchronous code can use it alike.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import threading
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self, TypeAlias

import msgspec

__all__ = ["CUT", "RESET", "STALL", "Gate", "Pause", "Recorded", "Reply", "ScriptedServer", "Step"]


_LONGEST_HEAD = 64 * 1024
_LET_IN = 10
"""Event loop iterations in which an accepted connection is certainly taken over."""


class Gate:
    """A place in a script where the server waits until the test opens it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened = False
        self._reached = threading.Event()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    def open(self) -> None:
        """Let the server continue, now and whenever it comes here again."""
        with self._lock:
            self._opened = True
            waiting, self._waiting = self._waiting, []
        for loop, future in waiting:
            loop.call_soon_threadsafe(_finish, future)

    def wait_reached(self, timeout: float = 30) -> bool:
        """Block until the server is here; False if that takes too long."""
        return self._reached.wait(timeout)

    async def pass_through(self) -> None:
        """The server's side: return once the gate is open."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        with self._lock:
            if not self._opened:
                self._waiting.append((loop, future))
            else:
                future.set_result(None)
        self._reached.set()
        await future


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class _Cut:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


class Pause(NamedTuple):
    """Send nothing for this many seconds."""

    seconds: float


CUT: Final = _Cut("CUT")
"""Break the connection here, without a proper end."""
RESET: Final = _Cut("RESET")
"""Break it with a connection reset."""
STALL: Final = Gate()
"""A gate that is never opened."""

Step: TypeAlias = bytes | Gate | Pause | _Cut


@dataclass(frozen=True)
class Reply:
    """One response. `before` happens before the head is sent, `steps` are its body.

    The body is chunked, one chunk per step, unless the headers contain a content-length or
    `connection: close`, which end it in those ways. `raw` is instead the complete response on the
    wire, including head and framing.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    steps: Sequence[Step] = ()
    before: Sequence[Step] = ()
    raw: Sequence[Step] | None = None

    @classmethod
    def json(cls, value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
        """A whole JSON document."""
        body = msgspec.json.encode(value)
        head = {"content-type": "application/json", "content-length": str(len(body))}
        return cls(status, {**head, **(headers or {})}, (body,))

    @classmethod
    def events(cls, *events: Any, status: int = 200) -> Reply:
        """A stream of server-sent events: steps are passed through, text and values become data."""
        return cls(status, {"content-type": "text/event-stream"}, tuple(map(_as_step, events)))

    @classmethod
    def hang_up(cls) -> Reply:
        """The connection breaks before any response."""
        return cls(before=(CUT,))


def _as_step(event: Any) -> Step:
    if isinstance(event, bytes | Gate | Pause | _Cut):
        return event
    data = event.encode() if isinstance(event, str) else msgspec.json.encode(event)
    return b"data: " + data + b"\n\n"


@dataclass(eq=False)
class Recorded:
    """A received request. `connection` numbers the TCP connections from 0."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int
    _left: threading.Event = field(default_factory=threading.Event)

    @property
    def json(self) -> Any:
        """The body, parsed as JSON."""
        return msgspec.json.decode(self.body)

    def wait_left(self, timeout: float = 30) -> bool:
        """Block until the other side closed before the reply was complete; False if it did not."""
        return self._left.wait(timeout)


Script: TypeAlias = Iterable[Reply] | Callable[[Recorded], Reply | Awaitable[Reply]]


class ScriptedServer:
    """Plays a script of replies, or calls a function for each. Use it with `with`.

    `tls` is a server's SSL context; without one it speaks plain HTTP. `port` is a required port;
    otherwise any free one is used.
    """

    def __init__(
        self, script: Script = (), *, tls: ssl.SSLContext | None = None, port: int = 0
    ) -> None:
        self._script = script if callable(script) else _in_order(script)
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._came = threading.Condition()
        self.port: int = port
        self.requests: list[Recorded] = []
        self.connections: int = 0

    @property
    def url(self) -> str:
        """The server's address, without a trailing slash."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def wait_requests(self, count: int = 1, timeout: float = 30) -> bool:
        """Block until this many requests have arrived; False if that takes too long."""
        with self._came:
            return self._came.wait_for(lambda: len(self.requests) >= count, timeout)

    def start(self) -> None:
        """Start listening, as `with` does.

        Raises:
            OSError: the port is not available.
        """
        self._thread.start()
        try:
            self._call(self._start())
        except OSError:  # the port is taken
            self._end()
            raise

    def stop(self) -> None:
        """Break every connection and stop listening."""
        self._call(self._stop())
        self._end()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.__exit__)

    def _call(self, step: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(step, self._loop).result()

    async def _start(self) -> None:
        self._server = await asyncio.start_server(
            self._connected, "127.0.0.1", self.port, ssl=self._tls, limit=_LONGEST_HEAD
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        assert self._server is not None
        for listening in self._server.sockets:
            self._loop.remove_reader(listening.fileno())
        for _ in range(_LET_IN):  # asyncio would forget a connection that is just being accepted
            await asyncio.sleep(0)
        self._server.close()
        left = _others()
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await asyncio.sleep(0)  # releases the closed transports

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        number, self.connections = self.connections, self.connections + 1
        connection = _Connection(reader, writer, number)
        try:
            while recorded := await connection.read_request():
                with self._came:
                    self.requests.append(recorded)
                    self._came.notify_all()
                reply = self._script(recorded)
                if isinstance(reply, Awaitable):
                    reply = await reply
                if not await connection.play(reply, recorded):
                    break
        except (OSError, EOFError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()


def _others() -> set[asyncio.Task[Any]]:
    """All other tasks of this event loop."""
    return asyncio.all_tasks() - {asyncio.current_task()}


def _in_order(replies: Iterable[Reply]) -> Callable[[Recorded], Reply]:
    left = iter(replies)

    def next_reply(recorded: Recorded) -> Reply:
        missing = {"error": {"message": f"no reply is scripted for {recorded.path}"}}
        return next(left, None) or Reply.json(missing, 404)

    return next_reply


def _socket_of(writer: asyncio.StreamWriter) -> socket.socket:
    """The socket below a connection."""
    found: socket.socket = writer.get_extra_info("socket")
    return found


def _size_of(line: bytes) -> int:
    """The size at the start of a chunk; its extensions are ignored."""
    try:
        return int(line.partition(b";")[0], 16)
    except ValueError:
        raise EOFError(f"not a chunk size: {line!r}") from None


def _unpacked(body: bytes, encoding: str) -> bytes:
    """A request's body, decompressed."""
    if encoding not in ("gzip", "deflate"):
        return body
    try:
        return zlib.decompress(body, wbits=47)  # 32 and more: detects which of the two it is
    except zlib.error:
        return body


class _Connection:
    """One TCP connection: requests in, replies out, one after the other."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._number = number
        self._early = b""
        if writer.get_extra_info("sslcontext") is None:  # asyncio's TLS would wait forever
            writer.transport.set_write_buffer_limits(0)  # what was sent is on its way before a cut

    async def read_request(self) -> Recorded | None:
        """The next request, or None if the other side is done."""
        try:
            head = self._early + await self._reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        self._early = b""
        first, *lines = head.decode("latin-1").split("\r\n")
        words = first.split(" ")
        if len(words) != 3:  # whatever this client speaks, it is not HTTP
            return None
        pairs = (line.partition(":") for line in lines if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        if headers.get("expect", "").lower() == "100-continue":
            await self._send(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = _unpacked(await self._read_body(headers), headers.get("content-encoding", ""))
        return Recorded(words[0], words[1], headers, body, self._number)

    async def _read_body(self, headers: Mapping[str, str]) -> bytes:
        if "chunked" not in headers.get("transfer-encoding", "").lower():
            length = headers.get("content-length", "0")
            return await self._reader.readexactly(int(length) if length.isdecimal() else 0)
        chunks = []
        while size := _size_of(await self._reader.readuntil(b"\r\n")):
            chunks.append(await self._reader.readexactly(size))
            await self._reader.readexactly(len(b"\r\n"))
        while await self._reader.readuntil(b"\r\n") != b"\r\n":
            pass  # trailers
        return b"".join(chunks)

    async def play(self, reply: Reply, recorded: Recorded) -> bool:
        """Send a reply; returns whether the connection can be reused."""
        playing = asyncio.ensure_future(self._play(reply, recorded))
        leaving = asyncio.ensure_future(self._reader.read(1))
        try:
            await asyncio.wait({playing, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if leaving.done() and not leaving.cancelled() and not self._take(leaving):
                if not playing.done() or playing.exception():
                    recorded._left.set()
                return False
            return await playing
        except OSError:  # nobody was there to receive it
            recorded._left.set()
            return False
        except asyncio.CancelledError:
            return False
        finally:
            for task in (playing, leaving):
                task.cancel()
            await asyncio.gather(playing, leaving, return_exceptions=True)

    def _take(self, leaving: asyncio.Future[bytes]) -> bytes:
        """What arrived during the reply: nothing means that the other side disconnected."""
        self._early = b"" if leaving.exception() else leaving.result()
        return self._early

    async def _play(self, reply: Reply, recorded: Recorded) -> bool:
        if not await self._steps(reply.before, lambda data: data):
            return False
        headers = {name.lower(): value for name, value in reply.headers.items()}
        if reply.raw is not None:
            return await self._steps(reply.raw, lambda data: data)
        last = recorded.headers.get("connection", "").lower() == "close"
        closes = headers.get("connection", "").lower() == "close"
        chunked = not closes and "content-length" not in headers
        if chunked:
            headers["transfer-encoding"] = "chunked"
        lines = [f"HTTP/1.1 {reply.status} Scripted", *(f"{n}: {v}" for n, v in headers.items())]
        await self._send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        if recorded.method == "HEAD":
            return not (closes or last)
        frame = (lambda data: b"%x\r\n%b\r\n" % (len(data), data)) if chunked else (lambda d: d)
        if not await self._steps(reply.steps, frame):
            return False
        if chunked:
            await self._send(b"0\r\n\r\n")
        return not (closes or last)

    async def _steps(self, steps: Sequence[Step], frame: Callable[[bytes], bytes]) -> bool:
        for step in steps:
            if isinstance(step, bytes):
                if step:  # an empty chunk would end the body
                    await self._send(frame(step))
            elif isinstance(step, Gate):
                await step.pass_through()
            elif isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
            else:
                if step is RESET:
                    linger = struct.pack("ii", 1, 0)  # closing with this is a reset
                    _socket_of(self._writer).setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self._writer.transport.abort()
                return False
        return True

    async def _send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()
