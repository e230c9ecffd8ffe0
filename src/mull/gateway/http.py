"""Bodies in, documents out: what every request to the gateway needs of ASGI."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any, TypeAlias

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

MOST_BODY = 32 << 20
"""Bytes of a request, unpacked."""
BODY_SECONDS, LOWEST_RATE = 30.0, 16_384
"""How long a body may take to come: so many seconds, and more by the bytes that came."""
JSON = "application/json"
_MOST_NOTES = 2_000
_LOOK_AFTER = 0.05
"""Seconds of work after which it is watched whether the client is still there."""
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
"""Headers that a request has once: of two, one server along the way may read the first and the next
server the last."""


class Gone(Exception):
    """The client is not there any more."""


class TooSlow(ConfigError):
    """The request takes longer to come than is waited for."""


class TooLarge(ConfigError):
    """The request is larger than is taken here."""


def head_of(scope: Scope) -> dict[str, str]:
    """The headers of a request."""
    return {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}


def check_head(scope: Scope, headers: Mapping[str, str]) -> None:
    """Check that everybody along the way reads the head of a request as we do: else the end of one
    request can pass for the next.

    Raises:
        ConfigError: they may not.
    """
    if len(headers) < len(scope["headers"]):
        names = [name.decode("latin-1").lower() for name, _ in scope["headers"]]
        for name in _SINGLE:
            if names.count(name) > 1:
                raise ConfigError(f"the request has more than one {name} header")
    coding = headers.get("transfer-encoding")
    if coding is not None and coding.strip().lower() != "chunked":
        raise ConfigError(f"transfer-encoding is {coding!r:.40}: use chunked")
    if coding is not None and "content-length" in headers:
        raise ConfigError("the request has both content-length and transfer-encoding")


async def read_body(receive: Receive, headers: Mapping[str, str]) -> bytes:
    """The request's body, unpacked.

    Raises:
        TooLarge: it is.
        TooSlow: it comes more slowly than is waited for.
        ConfigError: it breaks off, is packed in an unknown way, or nested too deeply.
    """
    length = headers.get("content-length", "")
    if length.isdecimal() and (len(length) > len(str(MOST_BODY)) or int(length) > MOST_BODY):
        raise _too_large()
    body = bytearray()  # and no list of pieces, which may be of one byte each
    began = asyncio.get_running_loop().time()
    while True:
        try:
            async with asyncio.timeout_at(began + BODY_SECONDS + len(body) / LOWEST_RATE):
                message = await receive()
        except TimeoutError:
            raise TooSlow("the request took too long to arrive") from None
        if message["type"] == "http.disconnect":
            raise ConfigError("the request broke off before it was complete")
        body += message.get("body", b"")
        if len(body) > MOST_BODY:
            raise _too_large()
        if not message.get("more_body"):
            break
    unpacked = _unpacked(bytes(body), headers.get("content-encoding", "identity").lower())
    if is_deep(unpacked):
        raise ConfigError("the request is nested too deeply")
    return unpacked


def _unpacked(data: bytes, packing: str) -> bytes:
    if packing == "identity":
        return data
    if packing not in ("gzip", "deflate"):
        raise ConfigError(f"the request is packed as {packing!r:.40}: use gzip, or send it plain")
    try:
        unpacker = zlib.decompressobj(wbits=47)
        unpacked = unpacker.decompress(data, MOST_BODY + 1)
    except zlib.error:
        raise ConfigError("the request cannot be unpacked") from None
    if len(unpacked) > MOST_BODY:
        raise _too_large()
    if not unpacker.eof or unpacker.unused_data:
        raise ConfigError("the request cannot be unpacked: its packed data is not complete")
    return unpacked


def _too_large() -> TooLarge:
    return TooLarge(f"the request has more than {MOST_BODY >> 20} MB")


def note_headers(notes: Iterable[Note]) -> list[tuple[str, str]]:
    """What was changed or left out, as a header; only what can stand in one."""
    told = "; ".join([f"{note.about}: {note.text}" for note in notes])
    if not told:
        return []
    told = " ".join(told.encode("ascii", "replace").decode().split())
    if not told.isprintable():
        told = "".join(filter(str.isprintable, told))
    return [("x-mull-notes", told[:_MOST_NOTES])]


async def start(send: Send, status: int, media: str, headers: Headers = ()) -> None:
    """The head of a response."""
    pairs = [("content-type", media), *headers]
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs]
    await send({"type": "http.response.start", "status": status, "headers": raw})


async def give(
    send: Send, body: bytes, headers: Headers = (), status: int = 200, media: str = JSON
) -> None:
    """A whole response."""
    await start(send, status, media, [("content-length", str(len(body))), *headers])
    await send({"type": "http.response.body", "body": body})


async def leave(receive: Receive) -> None:
    """Return when the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


class WhileThere:
    """`with WhileThere(receive)`: a client that goes away ends the work in the block, soon.

    Most answers to quick questions are there before anybody has to look.

    Raises:
        Gone: it did.
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
        """End the work: the client counts as gone."""
        if not self._is_gone:
            self._is_gone = True
            self._work.cancel()
