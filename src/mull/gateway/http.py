"""ASGI helpers: reading requests, sending responses, and noticing that a client has
disconnected."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, ParamSpec, TypeAlias, TypeVar

from mull.dialects.traits import TRAITS
from mull.neutral.errors import ConfigError
from mull.neutral.nesting import is_deep
from mull.neutral.request import Note

__all__ = [
    "JSON",
    "MOST_BODY",
    "Gone",
    "Headers",
    "Receive",
    "Scope",
    "Send",
    "TooLarge",
    "TooSlow",
    "WhileThere",
    "aside",
    "check_head",
    "give",
    "head_of",
    "leave",
    "note_headers",
    "read_body",
    "start",
]

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers: TypeAlias = Iterable[tuple[str, str]]

_P = ParamSpec("_P")
_T = TypeVar("_T")

MOST_BODY = 32 << 20
"""The maximum size of a request body in bytes, after decompression."""
LARGE = 256 << 10
"""Bytes of a request from which on it is worked on in a thread."""
_THREAD = ThreadPoolExecutor(1, "mull-large")
"""One thread for all large requests: the event loop then always gets its half of the time, however
many of them there are."""
BODY_SECONDS, LOWEST_RATE = 30.0, 16_384
"""A body must arrive within these seconds, plus the time that its bytes take at this rate (bytes
per second)."""
JSON = "application/json"
_MOST_NOTES = 2_000
_LISTS = frozenset[str]().union(*(traits.headers for traits in TRAITS.values()))
"""Headers by which clients control the model."""
_LOOK_AFTER = 0.05
"""Seconds after which to watch for the client's disconnect."""
_SINGLE = frozenset(
    {
        "authorization",
        "content-encoding",
        "content-length",
        "host",
        "origin",
        "transfer-encoding",
    }
)
"""Headers that a request may have only once: of two, one server on the way may use the first and
the next server the last, which allows request smuggling."""


class Gone(Exception):
    """The client has disconnected."""


class TooSlow(ConfigError):
    """The request takes too long to arrive."""


class TooLarge(ConfigError):
    """The request exceeds the size limit."""


def head_of(scope: Scope) -> dict[str, str]:
    """The headers of a request, with names in lower case. Those that name features may come in
    several lines."""
    headers: dict[str, str] = {}
    for key, data in scope["headers"]:
        name, value = key.decode("latin-1").lower(), data.decode("latin-1")
        is_more = name in _LISTS and name in headers
        headers[name] = f"{headers[name]}, {value}" if is_more else value
    return headers


def check_head(scope: Scope, headers: Mapping[str, str]) -> None:
    """Check that all servers on the way read the headers as the gateway does. Otherwise the end of
    one request could be taken for the beginning of the next (request smuggling).

    Raises:
        ConfigError: the headers are ambiguous.
    """
    if len(headers) < len(scope["headers"]):
        names = [name.decode("latin-1").lower() for name, _ in scope["headers"]]
        for name in _SINGLE:
            if names.count(name) > 1:
                raise ConfigError(f"the request has more than one {name} header")
    coding = headers.get("transfer-encoding")
    if coding is not None and coding.strip().lower() != "chunked":
        raise ConfigError(f"unsupported transfer-encoding {coding!r:.40}: use chunked")
    if coding is not None and "content-length" in headers:
        raise ConfigError("the request has both content-length and transfer-encoding")


async def aside(size: int, work: Callable[_P, _T], *args: _P.args, **named: _P.kwargs) -> _T:
    """Do work on a request of so many bytes. Work on a large one is done in a thread, so that other
    clients are answered meanwhile."""
    if size <= LARGE:
        return work(*args, **named)
    context = copy_context()
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_THREAD, lambda: context.run(work, *args, **named))


async def read_body(receive: Receive, headers: Mapping[str, str]) -> bytes:
    """The request's body, decompressed.

    Raises:
        TooLarge: the body exceeds the size limit.
        TooSlow: the body takes too long to arrive.
        ConfigError: the body is incomplete, has an unsupported encoding, or is nested too deeply.
    """
    length = headers.get("content-length", "")
    if length.isdecimal() and (len(length) > len(str(MOST_BODY)) or int(length) > MOST_BODY):
        raise _too_large()
    body = bytearray()  # not a list of chunks: each may be a single byte
    began = asyncio.get_running_loop().time()
    while True:
        try:
            async with asyncio.timeout_at(began + BODY_SECONDS + len(body) / LOWEST_RATE):
                message = await receive()
        except TimeoutError:
            raise TooSlow("the request took too long to arrive") from None
        if message["type"] == "http.disconnect":
            raise ConfigError("the client disconnected before the request was complete")
        body += message.get("body", b"")
        if len(body) > MOST_BODY:
            raise _too_large()
        if not message.get("more_body"):
            break
    encoding = headers.get("content-encoding", "identity").lower()
    packed = encoding != "identity"  # its true size is not known yet
    return await aside(LARGE + 1 if packed else len(body), _plain, bytes(body), encoding)


def _plain(body: bytes, encoding: str) -> bytes:
    plain = _decompressed(body, encoding)
    if is_deep(plain):
        raise ConfigError("the request is nested too deeply")
    return plain


def _decompressed(data: bytes, encoding: str) -> bytes:
    if encoding == "identity":
        return data
    if encoding not in ("gzip", "deflate"):
        raise ConfigError(
            f"unsupported content-encoding {encoding!r:.40}: use gzip or deflate, or none"
        )
    try:
        decompressor = zlib.decompressobj(wbits=47)
        plain = decompressor.decompress(data, MOST_BODY + 1)
    except zlib.error:
        raise ConfigError(f"the request body is not valid {encoding} data") from None
    if len(plain) > MOST_BODY:
        raise _too_large()
    if not decompressor.eof or decompressor.unused_data:
        raise ConfigError(f"the request body is not exactly one complete {encoding} stream")
    return plain


def _too_large() -> TooLarge:
    return TooLarge(f"the request exceeds the limit of {MOST_BODY >> 20} MB")


def note_headers(notes: Iterable[Note]) -> list[tuple[str, str]]:
    """The notes as a header, reduced to the characters that a header may contain."""
    text = "; ".join([f"{note.about}: {note.text}" for note in notes])
    if not text:
        return []
    text = " ".join(text.replace("→", "->").encode("ascii", "replace").decode().split())
    if not text.isprintable():
        text = "".join(filter(str.isprintable, text))
    return [("x-mull-notes", text[:_MOST_NOTES])]


async def start(send: Send, status: int, media: str, headers: Headers = ()) -> None:
    """Send the status and headers of a response."""
    pairs = [("content-type", media), *headers]
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs]
    await send({"type": "http.response.start", "status": status, "headers": raw})


async def give(
    send: Send, body: bytes, headers: Headers = (), status: int = 200, media: str = JSON
) -> None:
    """Send a complete response."""
    await start(send, status, media, [("content-length", str(len(body))), *headers])
    await send({"type": "http.response.body", "body": body})


async def leave(receive: Receive) -> None:
    """Return when the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass


class WhileThere:
    """`with WhileThere(receive)`: cancels the work in the block when the client disconnects.

    It starts to watch only after a moment, so that quick requests do not pay for it.

    Raises:
        Gone: the client disconnected.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._watch: asyncio.Task[None] | None = None
        self._is_gone = False

    def __enter__(self) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        self._work: asyncio.Task[Any] = task
        self._timer = loop.call_later(_LOOK_AFTER, self._look)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._timer.cancel()
        if self._watch is not None:
            self._watch.cancel()
        if self._is_gone and self._work.uncancel() == 0 and kind is asyncio.CancelledError:
            raise Gone from None

    def _look(self) -> None:
        self._watch = asyncio.get_running_loop().create_task(self._leave())

    async def _leave(self) -> None:
        await leave(self._receive)
        self.give_up()

    def give_up(self) -> None:
        """Cancel the work as if the client had disconnected."""
        if not self._is_gone:
            self._is_gone = True
            self._work.cancel()
