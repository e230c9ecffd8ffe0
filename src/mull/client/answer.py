"""A response as the rest of mull reads it, whoever carried it: decompressed, with limits.

What came before something wrong is given out first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol, Self

from mull.client.transport import HttpRequest, HttpResponse
from mull.neutral.errors import NetworkError, UnusableError

if TYPE_CHECKING:
    from mull.client.unpack import Unpacker

__all__ = ["Answer", "Client", "ignore"]

_PACKAGES = {"br": "brotli", "zstd": "backports.zstd"}
"""What reads a content encoding, if it is installed."""


def ignore(reason: str) -> None:
    """Hear that a request is sent again, and do nothing about it."""


if TYPE_CHECKING:

    class Client(Protocol):
        """What sends requests within limits: mull's own client, or one over a transport."""

        def send(
            self,
            request: HttpRequest,
            /,
            *,
            idle: float | None = None,
            total: float | None = None,
            again: Callable[[str], None] = ignore,
        ) -> Answer:
            """The answer to a request, for `async with`: entering sends it and waits for the head
            of the answer, leaving closes what is still open.

            `idle` is how many seconds the endpoint may be silent, `total` how many all may take.
            `again` is told the reason if the client is about to send the request a second time.

            Raises:
                ConfigError: the address, a header, a proxy or the certificates cannot be used.
                LocalError: no event loop runs here that can be used.
                NetworkError: the endpoint cannot be reached, or the connection broke.
                SilenceError: nothing came for too long.
            """

        async def close(self) -> None:
            """Close the connections that wait; those in use are closed after it."""


class Answer(HttpResponse):
    """What came back: the head at once, the body as it comes. Made by `Client.send`."""

    _name = "the endpoint"
    """The endpoint, for people."""

    def __init__(self) -> None:
        self.status: int = 0
        self.headers: Mapping[str, str] = {}
        self._first = self._ahead = b""
        self._packed: Unpacker | None = None
        self._fault: NetworkError | None = None
        self._drains = False

    @property
    def chunks(self) -> Self:
        """The body, decompressed."""
        return self

    async def __aenter__(self) -> Self:
        raise NotImplementedError

    async def __aexit__(self, kind: object, error: object, trace: object, /) -> None:
        raise NotImplementedError

    async def _receive(self) -> bytes:
        """The next bytes of the body, which may be none; StopAsyncIteration at its end."""
        raise NotImplementedError

    def finish_within(self, seconds: float) -> None:
        """Take what comes in so many seconds from now for the rest of the body."""
        raise NotImplementedError

    def _open(self, status: int, headers: dict[str, str]) -> None:
        """The head is there."""
        coding = headers.get("content-encoding", "").lower().strip()
        if coding not in ("", "identity"):
            from mull.client.unpack import unpacker

            self._packed = unpacker(coding)
            if self._packed is None:
                raise UnusableError(_unreadable(self._name, coding))
            skipped = ("content-encoding", "content-length")
            headers = {name: text for name, text in headers.items() if name not in skipped}
        self.status, self.headers = status, headers

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
                piece = await self._receive()
            if piece and packed is not None:
                piece = self._unpack(packed, piece)
        return piece

    async def succeeded(self) -> bool:
        """Whether the body is what was asked for: no error, and no web page in its place, which
        not all say that they are."""
        if not 200 <= self.status < 300:
            return False
        if self.headers.get("content-type", "").startswith("text/html"):
            return False
        return (await self.peek()).lstrip()[:1] != b"<"

    async def peek(self) -> bytes:
        """The first bytes of the body, without taking them."""
        if not self._ahead:
            self._ahead = await anext(self, b"")
        return self._ahead

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

    def _unpack(self, packed: Unpacker, piece: bytes) -> bytes:
        piece = packed.feed(piece)
        if packed.fault is not None:
            said = f"{self._name} compressed its response incorrectly: {packed.fault}"
            self._fault = UnusableError(said)
        return piece


def _unreadable(name: str, coding: str) -> str:
    said = f"{name} compressed its response ({coding}) although mull did not ask for it"
    package = _PACKAGES.get(coding)
    return f"{said}.\nmull can read that with `pip install {package}`" if package else said
