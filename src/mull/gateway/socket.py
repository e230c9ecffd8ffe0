"""The Responses API over a WebSocket: requests are answered in order, each with the events of a
stream over HTTP.

While the connection is open, it keeps its responses even if the client does not want them stored,
so that a client can continue from the last response and send only new input.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from mull.dialects.openai_responses import DIALECT
from mull.dialects.writer import encode
from mull.gateway.failures import Refusal, refusal_of
from mull.gateway.http import MOST_BODY, Receive, Scope, Send, TooLarge, aside, give
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
"""The maximum number of requests that wait while one is answered. Their total size is limited to
the maximum of one request."""
_LONGEST_STREAM_ID = 256
MOST_KEPT = 64 << 20
"""The maximum total size in bytes of the responses that a connection keeps."""
_EXTENSION = "websocket.http.response"
_DENIED, _TOO_MANY, _OVER = 1008, 1008, 1000
_ALIVE = b'data: {"type":"keepalive"}\n\n'


async def decline(scope: Scope, receive: Receive, send: Send, refusal: Refusal) -> None:
    """Reject a handshake; with an HTTP response, if the server supports that."""
    await receive()
    if _EXTENSION not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close", "code": _DENIED})
        return

    async def answer(message: Any) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    await give(answer, refusal.body, refusal.headers, refusal.status)


class Socket:
    """One connection; `run` returns when it is closed. `enter` is called before each request to
    check the client's token, which may have been revoked."""

    def __init__(
        self,
        responses: Responses,
        enter: Callable[[], Awaitable[Client]],
        receive: Receive,
        send: Send,
        headers: Mapping[str, str],
    ) -> None:
        self._responses = responses
        # this one asks for the WebSocket itself
        self._headers = {name: value for name, value in headers.items() if name != "openai-beta"}
        self._enter = enter
        self._receive, self._send = receive, send
        self._waiting: asyncio.Queue[bytes | None] = asyncio.Queue(MOST_WAITING + 1)
        self._waiting_bytes = 0
        self._left = asyncio.Event()
        self._local = InProcess(most=None)

    async def run(self) -> None:
        """Answer requests until the client disconnects."""
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
        """Whether a request of this size exceeds what may wait."""
        waiting = self._waiting.qsize()
        return waiting >= MOST_WAITING or (waiting > 0 and self._waiting_bytes + size > MOST_BODY)

    async def _answer(self, data: bytes) -> bool:
        """Answer one event of the client; return whether the connection stays open."""
        stream_id: str | None = None
        try:
            if self._local.size > MOST_KEPT:
                raise _Exhausted()
            client = await self._enter()
            body = await aside(len(data), _event, data)
            if body["type"] == "response.steer":
                await _send_event(self._send, encode(_steering_failed(body)), None)
                return True
            stream_id = _take_stream_id(body)
            job = await self._responses.job(client, body, data, self._headers, self._local)
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
        event: dict[str, Any] = {
            "type": "error",
            "status": refusal.status,
            **msgspec.json.decode(refusal.body),
        }
        if refusal.headers:
            event["headers"] = dict(refusal.headers)
        await _send_event(self._send, encode(event), stream_id)


class _Exhausted(RefusedError):
    """The connection has reached its limit of kept responses."""

    def __init__(self) -> None:
        text = "this connection has reached its size limit: open a new one to continue"
        super().__init__(text, status=400, text=text, code="websocket_connection_limit_reached")


class _Sent(Streaming):
    """Streams one response, each event as a WebSocket message."""

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
                    await _send_event(self._send, event, self._stream_id)
        finally:
            self._sending = False
            self._last = time.monotonic()


async def _leaving(left: asyncio.Event) -> Any:
    """The ASGI `receive` of a stream: `Socket` reads all other messages of the connection."""
    await left.wait()
    return {"type": "http.disconnect"}


async def _send_event(send: Send, event: bytes, stream_id: str | None) -> None:
    if stream_id is not None:
        event = b'%b,"stream_id":%b}' % (event[:-1], encode(stream_id))
    await send({"type": "websocket.send", "text": event.decode()})


def _event(data: bytes) -> dict[str, Any]:
    """Decode an event of the client.

    Raises:
        ConfigError: it is invalid.
    """
    if len(data) > MOST_BODY:
        raise TooLarge(f"the request exceeds the limit of {MOST_BODY >> 20} MB")
    if is_deep(data):
        raise ConfigError("the request is nested too deeply")
    body = body_of(data)
    kind = body.get("type")
    if kind not in ("response.create", "response.steer"):
        raise ConfigError(f"unsupported type {kind!r:.60}: use response.create")
    return body


def _steering_failed(event: dict[str, Any]) -> dict[str, Any]:
    """The event that rejects steering input and returns it to the client."""
    message = "steering is not supported: send the input with the next request"
    kind = "invalid_request_error"
    return {
        "type": "response.steer.failed",
        "error": {"code": "steering_not_supported", "message": message, "type": kind},
        "steer": {name: event.get(name) for name in ("input", "previous_response_id")},
        "sequence_number": 0,
    }


def _take_stream_id(body: dict[str, Any]) -> str | None:
    """Turn an event into a request; return the id of its stream, if it has one."""
    del body["type"]
    body["stream"] = True
    stream_id = body.pop("stream_id", None)
    if stream_id is None or (isinstance(stream_id, str) and len(stream_id) <= _LONGEST_STREAM_ID):
        return stream_id
    raise ConfigError(f"stream_id must be a string of at most {_LONGEST_STREAM_ID} characters")
