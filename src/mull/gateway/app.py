"""The gateway as an ASGI application.

It can be served by any ASGI server, and mounted in another application. What a client is sent is
decided elsewhere; here are heads, bodies, streams, and clients that go away.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import parse_qs, unquote

from mull.dialects.serving import decode_request, write_failure
from mull.gateway.failures import Refusal, refusal_of
from mull.gateway.relay import Client
from mull.gateway.service import Gateway, Job
from mull.gateway.surfaces import Surface, dialect_of_headers, find_surface
from mull.logs import log_warning
from mull.neutral.errors import ConfigError, MullError
from mull.neutral.events import Failed
from mull.neutral.messages import Dialect
from mull.neutral.nesting import is_deep
from mull.neutral.request import Note

__all__ = ["GatewayApp"]

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MOST_BODY = 32 << 20
"""Bytes of a request, unpacked."""
SILENCE = 10.0
"""Seconds after which a client is told that the answer is still coming."""
_MOST_NOTES = 2_000
_JSON = "application/json"


class _Gone(Exception):
    """The client is not there any more."""


class Call(NamedTuple):
    """One HTTP request, its head read."""

    surface: Surface
    dialect: Dialect
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    scope: str = ""


class GatewayApp:
    """`await app(scope, receive, send)`."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send, self._gateway)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        path = unquote(scope["path"])
        surface = find_surface(scope["method"], path)
        if isinstance(surface, str):
            await _refuse(send, _unknown(surface, dialect_of_headers(headers), path))
            return
        dialect = surface.dialect or dialect_of_headers(headers)
        call = Call(surface, dialect, path, parse_qs(_text(scope["query_string"])), headers)
        try:
            await self._answer(call, receive, send)
        except _Gone:
            return
        except MullError as error:
            await _refuse(send, refusal_of(error, dialect))
        except Exception as error:
            log_warning(f"a request to the gateway failed: {error!r}")
            await _refuse(send, refusal_of(error, dialect))

    async def _answer(self, call: Call, receive: Receive, send: Send) -> None:
        operation = call.surface.operation
        if operation == "health":
            await _give(send, b'{"status":"ok"}')
            return
        if operation != "answer":
            raise ConfigError(f"{operation} is not served yet")
        body = _checked(await _body(receive, call.headers))
        asked = decode_request(call.dialect, body, call.path, call.headers)
        job = await self._gateway.job(Client(call.dialect, call.scope), asked)
        if asked.stream:
            await _Streaming(job, call, receive, send).run()
        else:
            await _give(send, await _while_there(job.document(), receive), _note_headers(job.notes))


class _Streaming:
    """An answer that goes out as it comes in.

    Until the upstream has said something, it may still refuse; a refusal has a status of its own.
    A silent one is taken for accepted after a while.
    """

    def __init__(self, job: Job, call: Call, receive: Receive, send: Send) -> None:
        self._job = job
        self._dialect = call.dialect
        as_list = call.dialect == "gemini" and call.query.get("alt") != ["sse"]
        self._writer = job.writer(as_list=as_list)
        self._media = _JSON if as_list else self._writer.MEDIA_TYPE
        self._alive = b"\n" if as_list else self._writer.ALIVE
        self._receive, self._send = receive, send
        self._begun = self._sending = self._gone = False
        self._last = time.monotonic()

    async def run(self) -> None:
        main = asyncio.current_task()
        assert main is not None
        loop = asyncio.get_running_loop()
        beside = [loop.create_task(self._watch(main)), loop.create_task(self._keep_alive())]
        try:
            await self._pump()
        except asyncio.CancelledError:
            if not self._gone:
                raise
            main.uncancel()
        except MullError as error:
            if not self._begun:
                raise
            await self._put(self._writer.feed(Failed(str(error))), more=False)
        finally:
            for task in beside:
                task.cancel()

    async def _pump(self) -> None:
        writer = self._writer
        async for events in self._job.events():
            if data := b"".join([writer.feed(event) for event in events]):
                await self._put(data)
        await self._put(writer.close(), more=False)

    async def _put(self, data: bytes, *, more: bool = True) -> None:
        self._sending = True
        try:
            if not self._begun:
                self._begun = True
                headers = [("cache-control", "no-cache"), *_note_headers(self._job.notes)]
                await _start(self._send, 200, self._media, headers)
            body = {"type": "http.response.body", "body": data, "more_body": more}
            await self._send(body)
        finally:
            self._sending = False
            self._last = time.monotonic()

    async def _keep_alive(self) -> None:
        while True:
            left = self._last + SILENCE - time.monotonic()
            if left > 0:
                await asyncio.sleep(left)
            elif self._sending:
                await asyncio.sleep(SILENCE)
            else:
                await self._put(self._alive)

    async def _watch(self, main: asyncio.Task[Any]) -> None:
        """Stop the upstream when the client goes away."""
        await _leave(self._receive)
        self._gone = True
        main.cancel()


async def _leave(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _while_there(work: Awaitable[bytes], receive: Receive) -> bytes:
    """The result, unless the client goes away before it is there."""
    task = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_leave(receive))
    try:
        await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise _Gone
    finally:
        for one in (task, leaving):
            if not one.done():
                one.cancel()
                with suppress(asyncio.CancelledError):
                    await one


async def _body(receive: Receive, headers: Mapping[str, str]) -> bytes:
    """The request's body, unpacked.

    Raises:
        ConfigError: it is too large, or packed in an unknown way.
    """
    pieces, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        piece = message.get("body", b"")
        size += len(piece)
        if size > MOST_BODY:
            raise ConfigError(f"the request has more than {MOST_BODY >> 20} MB")
        pieces.append(piece)
        if not message.get("more_body"):
            break
    packing = headers.get("content-encoding", "identity").lower()
    if packing == "identity":
        return b"".join(pieces)
    if packing not in ("gzip", "deflate"):
        raise ConfigError(
            f"the request is packed as {packing!r:.40}: use gzip, or leave it unpacked"
        )
    return _unpacked(b"".join(pieces))


def _unpacked(data: bytes) -> bytes:
    inflate = zlib.decompressobj(wbits=47)
    try:
        unpacked = inflate.decompress(data, MOST_BODY + 1)
    except zlib.error:
        raise ConfigError("the request cannot be unpacked") from None
    if len(unpacked) > MOST_BODY:
        raise ConfigError(f"the request has more than {MOST_BODY >> 20} MB")
    return unpacked


def _checked(body: bytes) -> bytes:
    if is_deep(body):
        raise ConfigError("the request is nested too deeply")
    return body


def _unknown(what: str, dialect: Dialect, path: str) -> Refusal:
    if what == "method":
        return Refusal(*write_failure(Failed("this method is not allowed here"), dialect, 405))
    text = f"there is nothing at {path[:200]}: see /v1/models for what is served"
    return Refusal(*write_failure(Failed(text), dialect, 404))


def _note_headers(notes: Iterable[Note]) -> list[tuple[str, str]]:
    """What was changed or left out, as a header; only what can stand in one."""
    told = "; ".join(f"{note.about}: {note.text}" for note in notes)
    told = " ".join(told.encode("ascii", "replace").decode().split())
    return [("x-mull-notes", told[:_MOST_NOTES])] if told else []


async def _start(
    send: Send, status: int, media: str, headers: Iterable[tuple[str, str]] = ()
) -> None:
    pairs = [("content-type", media), *headers]
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs]
    await send({"type": "http.response.start", "status": status, "headers": raw})


async def _give(
    send: Send, body: bytes, headers: Iterable[tuple[str, str]] = (), status: int = 200
) -> None:
    await _start(send, status, _JSON, [("content-length", str(len(body))), *headers])
    await send({"type": "http.response.body", "body": body})


async def _refuse(send: Send, refusal: Refusal) -> None:
    await _give(send, refusal.body, refusal.headers, refusal.status)


def _text(data: bytes) -> str:
    return data.decode("latin-1")


async def _live(receive: Receive, send: Send, gateway: Gateway) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await gateway.memory.close()
            await gateway.engine.close()
            await send({"type": "lifespan.shutdown.complete"})
            return
