"""The body of a server's response, decompressed and read within limits.

httpx2 decompresses a chunk at once, whatever its size, so a few kilobytes could fill the memory.
Here a body is decompressed in steps of bounded size, and the total must not exceed the maximum
message size; an event stream may continue indefinitely, because the SDK limits its events.
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
_EITHER_HEADER = 47  # zlib's value for "gzip or zlib, detected automatically"
_COMPRESSED = {"gzip", "x-gzip", "deflate"}
_EVENTS = "text/event-stream"


def bounded(response: httpx2.Response, on_break: Callable[[], None]) -> httpx2.AsyncByteStream:
    """The response's stream, as a replacement.

    `on_break` is called when it breaks off, and when an event stream is read to its end: a reader
    that finds its answer stops before.

    Headers about the compression are removed. Only gzip and deflate are supported.
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
                raise httpx2.StreamError(
                    f"the response is compressed as {', '.join(encodings)[:40]}"
                )
            size = 0
            unpack = _unpacked() if is_compressed else _as_is
            try:
                async for piece in stream:
                    for part in unpack(piece):
                        size += len(part)
                        if size > MOST_BYTES and not is_endless:
                            raise httpx2.StreamError(too_large())
                        yield part
                        if is_compressed:  # a small chunk may expand to a large one
                            await asyncio.sleep(0)
            except zlib.error as error:
                raise httpx2.StreamError(f"the response cannot be decompressed: {error}") from None
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
    """Decompresses chunks, each into parts of bounded size."""
    opener = zlib.decompressobj(_EITHER_HEADER)

    def unpack(piece: bytes) -> Iterator[bytes]:
        while piece and not opener.eof:
            yield opener.decompress(piece, _STEP)
            piece = opener.unconsumed_tail

    return unpack
