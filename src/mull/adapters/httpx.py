"""The gateway as a transport of httpx: `httpx.Client(transport=MullTransport())`.

Nothing listens: the requests of a client are answered in this process, by the same gateway that
`mull serve` runs. So clients that drop reasoning, such as openai's, need not change. The transport
works with httpx and with httpx2, and with their synchronous and their asynchronous clients.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Generator,
    Iterator,
    MutableMapping,
)
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from mull.agent import shared
from mull.agent.streams import end_task
from mull.gateway.mounted import ServeApp, serve_app

if TYPE_CHECKING:
    from mull.agent.engine import Engine

__all__ = ["MullTransport"]

_HOST = "mull"


class MullTransport:
    """Answers every request in this process, whatever its host.

    With `model`, that model answers under every name; otherwise clients use the names in `[serve]`
    of the configuration, or `provider/model`. `config` and `engine` are those of `mull.serve_app`.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        config: str | Path | None = None,
        engine: Engine | None = None,
    ) -> None:
        make = partial(serve_app, config, model=model, hosts=(_HOST,), engine=engine)
        # An application belongs to one event loop, and each kind of client has its own.
        self._blocking, self._awaiting = _App(make), _App(make)

    def handle_request(self, request: Any) -> Any:
        """Answer a request of a synchronous client."""
        app, body = self._blocking.get(), request.read()
        served: Generator[Any, None, None] = shared.loop().stream(
            lambda put: _serve(app, request, body, put)
        )
        chunks = _told_by(request, served)
        return _response(request, next(chunks), chunks)

    async def handle_async_request(self, request: Any) -> Any:
        """Answer a request of an asynchronous client."""
        body = await request.aread()
        chunks = _awaited(request, self._awaiting.get(), body)
        return _response(request, await anext(chunks), chunks)

    def close(self) -> None:
        """Write pending records, and close the connections to providers."""
        shared.loop().run(self._blocking.close)

    async def aclose(self) -> None:
        """`close` for an asynchronous client."""
        await self._awaiting.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _App:
    """An application that is made when the first request needs it."""

    def __init__(self, make: Callable[[], ServeApp]) -> None:
        self._make = make
        self._making = threading.Lock()
        self._made: ServeApp | None = None

    def get(self) -> ServeApp:
        with self._making:
            if self._made is None:
                self._made = self._make()
            return self._made

    async def close(self) -> None:
        made, self._made = self._made, None
        if made is not None:
            await made.close()


async def _serve(app: ServeApp, request: Any, body: bytes, put: Callable[[Any], None]) -> None:
    """Run the application for one request; it puts the head of the response, then its chunks."""
    limit = (request.extensions.get("timeout") or {}).get("read")
    given = iter([{"type": "http.request", "body": body, "more_body": False}])
    clock = asyncio.get_running_loop().time

    async def receive() -> dict[str, Any]:
        for message in given:
            return message
        await asyncio.Event().wait()  # a client that leaves cancels the application
        raise AssertionError

    async with asyncio.timeout(limit) as silence:

        async def send(message: MutableMapping[str, Any]) -> None:
            if limit is not None:
                silence.reschedule(clock() + limit)
            is_head = message["type"] == "http.response.start"
            put(message if is_head else message.get("body", b""))

        await app(_scope(request), receive, send)


def _scope(request: Any) -> dict[str, Any]:
    named = ((name.lower(), value) for name, value in request.headers.raw)
    headers = [(name, value) for name, value in named if name != b"host"]
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.url.path,
        "raw_path": request.url.raw_path.partition(b"?")[0],
        "query_string": request.url.query,
        "root_path": "",
        "headers": [*headers, (b"host", _HOST.encode())],
        "server": (_HOST, None),
        "client": ("127.0.0.1", 0),
    }


def _told_by(request: Any, items: Generator[Any, None, None]) -> Generator[Any, None, None]:
    try:
        yield from items
    except TimeoutError:
        raise _silent(request) from None


async def _awaited(request: Any, app: ServeApp, body: bytes) -> AsyncGenerator[Any, None]:
    queue: asyncio.Queue[Any] = asyncio.Queue()
    task = asyncio.create_task(_serve(app, request, body, queue.put_nowait))
    task.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (item := await queue.get()) is not None:
            yield item
        task.result()
    except TimeoutError:
        raise _silent(request) from None
    finally:
        await end_task(task)


def _library(request: Any) -> Any:
    """The library that the request belongs to: httpx or httpx2."""
    return sys.modules[type(request).__module__.partition(".")[0]]


def _silent(request: Any) -> Exception:
    said = "the model sent nothing within the client's read timeout"
    silent: Exception = _library(request).ReadTimeout(said, request=request)
    return silent


def _response(request: Any, head: dict[str, Any], chunks: Any) -> Any:
    library = _library(request)
    return library.Response(
        head["status"], headers=head["headers"], stream=_body_of(library)(chunks), request=request
    )


class _Body:
    """The chunks of a response. Closing it before its end cancels the request."""

    def __init__(self, chunks: Any) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        return (chunk for chunk in self._chunks if chunk)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return (chunk async for chunk in self._chunks if chunk)

    def close(self) -> None:
        self._chunks.close()

    async def aclose(self) -> None:
        await self._chunks.aclose()


@cache
def _body_of(library: Any) -> type[_Body]:
    """The class that this library takes as the stream of a response."""
    bases = (_Body, library.SyncByteStream, library.AsyncByteStream)
    return type("Body", bases, {})
