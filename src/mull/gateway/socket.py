"""The Responses API over a WebSocket: requests one after the other, each answered by the events
that a stream over HTTP would have.

What the connection's responses say is found again as long as it is open, stored or not: clients
that want nothing stored continue with the last response and send only what is new.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any

import msgspec

from mull.dialects.openai_responses import DIALECT
from mull.dialects.writer import encode
from mull.gateway.failures import Refusal, refusal_of
from mull.gateway.http import MOST_BODY, Receive, Scope, Send, TooLarge, give
from mull.gateway.memory import InProcess
from mull.gateway.relay import Client
from mull.gateway.response_job import ResponseJob
from mull.gateway.responses import Responses, body_of
from mull.gateway.streaming import Streaming
from mull.logs import log_warning
from mull.neutral.errors import ConfigError, MullError, RefusedError
from mull.neutral.nesting import is_deep

__all__ = ["Socket", "decline"]

MOST_WAITING = 16
"""Requests that may wait while one is answered; together they have no more bytes than one may."""
_LONGEST_LANE = 256
MOST_KEPT = 64 << 20
"""Bytes of responses that a connection remembers."""
_EXTENSION = "websocket.http.response"
_DENIED, _TOO_MANY, _OVER = 1008, 1008, 1000
_ALIVE = b'data: {"type":"keepalive"}\n\n'


async def decline(scope: Scope, receive: Receive, send: Send, refusal: Refusal) -> None:
    """Answer a handshake with a refusal; with its words where the server can pass them on."""
    await receive()
    if _EXTENSION not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close", "code": _DENIED})
        return

    async def answer(message: Any) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    await give(answer, refusal.body, refusal.headers, refusal.status)


class _Local(InProcess):
    """The responses of one connection; it knows how large they are."""

    def __init__(self) -> None:
        super().__init__()
        self.size = 0

    async def keep(self, scope: str, keys: Iterable[str], data: bytes) -> None:
        """Store a record."""
        self.size += len(data)
        await super().keep(scope, keys, data)


class Socket:
    """One connection; `run` returns when the client has left it. `enter` tells the client before
    each request: its token may have been revoked."""

    def __init__(
        self,
        responses: Responses,
        enter: Callable[[], Awaitable[Client]],
        receive: Receive,
        send: Send,
    ) -> None:
        self._responses = responses
        self._enter = enter
        self._receive, self._send = receive, send
        self._waiting: asyncio.Queue[bytes | None] = asyncio.Queue(MOST_WAITING + 1)
        self._waiting_bytes = 0
        self._left = asyncio.Event()
        self._local = _Local()

    async def run(self) -> None:
        """Answer requests until the client leaves."""
        await self._receive()
        await self._send({"type": "websocket.accept"})
        reading = asyncio.get_running_loop().create_task(self._read())
        try:
            while not self._left.is_set() and (data := await self._waiting.get()) is not None:
                self._waiting_bytes -= len(data)
                if not await self._answer(data):
                    return
        except asyncio.CancelledError:
            if not self._left.is_set():
                raise
        finally:
            reading.cancel()

    async def _read(self) -> None:
        try:
            while (message := await self._receive())["type"] != "websocket.disconnect":
                text = message.get("text")
                data = message.get("bytes") if text is None else text.encode("utf-8", "replace")
                data = data or b""
                if self._is_full(len(data)):
                    await self._send({"type": "websocket.close", "code": _TOO_MANY})
                    break
                self._waiting_bytes += len(data)
                self._waiting.put_nowait(data)
        finally:
            self._left.set()
            self._waiting.put_nowait(None)

    def _is_full(self, size: int) -> bool:
        """Whether a request of this size is one too many."""
        waiting = self._waiting.qsize()
        return waiting >= MOST_WAITING or (waiting > 0 and self._waiting_bytes + size > MOST_BODY)

    async def _answer(self, data: bytes) -> bool:
        """Answer one event of the client; whether the connection takes more."""
        stream_id: str | None = None
        try:
            if self._local.size > MOST_KEPT:
                raise _Exhausted()
            client = await self._enter()
            body = _event(data)
            if body["type"] == "response.steer":
                await _say(self._send, encode(_unsteered(body)), None)
                return True
            stream_id = _lane(body)
            job = await self._responses.job(client, body, data, self._local)
            await _Sent(job, self._send, self._left, stream_id).run()
        except MullError as error:
            await self._refuse(refusal_of(error, DIALECT), stream_id)
            if isinstance(error, _Exhausted):
                await self._send({"type": "websocket.close", "code": _OVER})
                return False
        except Exception as error:
            if self._left.is_set():
                return False
            log_warning(f"a request to the gateway failed: {error!r}")
            await self._refuse(refusal_of(error, DIALECT), stream_id)
        return True

    async def _refuse(self, refusal: Refusal, stream_id: str | None) -> None:
        told: dict[str, Any] = {
            "type": "error",
            "status": refusal.status,
            **msgspec.json.decode(refusal.body),
        }
        if refusal.headers:
            told["headers"] = dict(refusal.headers)
        await _say(self._send, encode(told), stream_id)


class _Exhausted(RefusedError):
    """The connection remembers as much as it can."""

    def __init__(self) -> None:
        text = "this connection is at its limit: open a new one to continue"
        super().__init__(text, status=400, text=text, code="websocket_connection_limit_reached")


class _Sent(Streaming):
    """One response on its way; the events of a stream, each as a message."""

    def __init__(
        self, job: ResponseJob, send: Send, left: asyncio.Event, stream_id: str | None
    ) -> None:
        super().__init__(job, partial(_leaving, left), send, as_list=False)
        self._alive = _ALIVE
        self._stream_id = stream_id

    async def _put(self, data: bytes, *, more: bool = True) -> None:
        self._begun = self._sending = True
        try:
            for frame in data.split(b"\n\n"):
                if event := frame.partition(b"data: ")[2]:
                    await _say(self._send, event, self._stream_id)
        finally:
            self._sending = False
            self._last = time.monotonic()


async def _leaving(left: asyncio.Event) -> Any:
    """What a stream over HTTP would receive: the connection itself reads the rest."""
    await left.wait()
    return {"type": "http.disconnect"}


async def _say(send: Send, event: bytes, stream_id: str | None) -> None:
    if stream_id is not None:
        event = b'%b,"stream_id":%b}' % (event[:-1], encode(stream_id))
    await send({"type": "websocket.send", "text": event.decode()})


def _event(data: bytes) -> dict[str, Any]:
    """An event of the client.

    Raises:
        ConfigError: it is none.
    """
    if len(data) > MOST_BODY:
        raise TooLarge(f"the request has more than {MOST_BODY >> 20} MB")
    if is_deep(data):
        raise ConfigError("the request is nested too deeply")
    body = body_of(data)
    kind = body.get("type")
    if kind not in ("response.create", "response.steer"):
        raise ConfigError(f"type is {kind!r:.60}: this server takes response.create alone")
    return body


def _unsteered(event: dict[str, Any]) -> dict[str, Any]:
    """That what was said into a response is not part of it; the client has it back."""
    message = "responses cannot be steered here: send the input with the next request"
    kind = "invalid_request_error"
    return {
        "type": "response.steer.failed",
        "error": {"code": "steering_not_supported", "message": message, "type": kind},
        "steer": {name: event.get(name) for name in ("input", "previous_response_id")},
        "sequence_number": 0,
    }


def _lane(body: dict[str, Any]) -> str | None:
    """Make a request of an event; the name of the lane that it came in."""
    del body["type"]
    body["stream"] = True
    lane = body.pop("stream_id", None)
    if lane is not None and not (isinstance(lane, str) and len(lane) <= _LONGEST_LANE):
        raise ConfigError(f"stream_id must be text of at most {_LONGEST_LANE} characters")
    return lane
