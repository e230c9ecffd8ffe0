"""The body of a server's response, decompressed and read within limits.

httpx2 decompresses a piece at once, however much it becomes, so a few kilobytes could fill the
memory. Here a body is opened in steps of bounded size, and the whole must not exceed the largest
message; an event stream may go on for as long as it likes, its events are limited by the SDK.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, cast

from mull.agent.mcp.lines import MOST_BYTES, too_large

if TYPE_CHECKING:
    import httpx2

__all__ = ["bounded"]

_STEP = 64 * 1024
_EITHER_HEADER = 47  # zlib's own mark for "gzip or zlib, as the data say"
_COMPRESSED = {"gzip", "x-gzip", "deflate"}
_EVENTS = "text/event-stream"


def bounded(response: httpx2.Response, on_break: Callable[[], None]) -> httpx2.AsyncByteStream:
    """The response's stream, to be put in its place.

    `on_break` is called when it breaks off, and when an event stream is read to its end: whoever
    finds an answer in one stops there.

    What decompressing took from the body is taken from the headers as well. What is compressed in
    another way than gzip or deflate cannot be read.
    """
    import httpx2

    encodings = response.headers.get("content-encoding", "").lower().replace(",", " ").split()
    encodings = [name for name in encodings if name != "identity"]
    is_foreign = len(encodings) > 1 or not _COMPRESSED.issuperset(encodings)
    is_compressed = bool(encodings)
    if is_compressed:
        del response.headers["content-encoding"]
        response.headers.pop("content-length", None)
    is_endless = response.headers.get("content-type", "").lower().startswith(_EVENTS)
    stream = cast("httpx2.AsyncByteStream", response.stream)

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            if is_foreign:
                raise httpx2.StreamError(f"the answer is compressed as {', '.join(encodings)[:40]}")
            size = 0
            unpack = _unpacked() if is_compressed else _as_is
            try:
                async for piece in stream:
                    for part in unpack(piece):
                        size += len(part)
                        if size > MOST_BYTES and not is_endless:
                            raise httpx2.StreamError(too_large())
                        yield part
                        if is_compressed:  # a small piece may become a large one
                            await asyncio.sleep(0)
            except zlib.error as error:
                raise httpx2.StreamError(f"the answer cannot be decompressed: {error}") from None
            except httpx2.TransportError:
                on_break()
                raise
            if is_endless:
                on_break()

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()


def _as_is(piece: bytes) -> Iterator[bytes]:
    yield piece


def _unpacked() -> Callable[[bytes], Iterator[bytes]]:
    """Opens compressed pieces, each into parts of bounded size."""
    opener = zlib.decompressobj(_EITHER_HEADER)

    def unpack(piece: bytes) -> Iterator[bytes]:
        while piece and not opener.eof:
            yield opener.decompress(piece, _STEP)
            piece = opener.unconsumed_tail

    return unpack
