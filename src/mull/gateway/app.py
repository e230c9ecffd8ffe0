"""The gateway as an ASGI application, to be served by any ASGI server or mounted in another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qs, unquote

from mull.dialects.serving import decode_request, write_failure
from mull.dialects.surface import Place, Surface, find_place, spoken, surface_of
from mull.gateway.door import Door
from mull.gateway.failures import Refusal, refusal_of
from mull.gateway.http import (
    Gone,
    Receive,
    Scope,
    Send,
    give,
    note_headers,
    read_body,
    while_there,
)
from mull.gateway.listing import listed_as, listing
from mull.gateway.relay import Client
from mull.gateway.streaming import Streaming
from mull.logs import log_warning
from mull.neutral.errors import MullError
from mull.neutral.events import Failed

if TYPE_CHECKING:
    from mull.gateway.service import Gateway
    from mull.neutral.asked import Asked

__all__ = ["GatewayApp"]

_HEALTHY = b'{"status":"ok"}'
_UNANSWERED = {
    "path": (404, "there is nothing at this address: /v1/models lists what is served"),
    "method": (405, "this method is not allowed here"),
}


class Call(NamedTuple):
    """One HTTP request, its head read."""

    place: Place
    surface: Surface
    client: Client
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]


class GatewayApp:
    """`await app(scope, receive, send)`."""

    def __init__(self, gateway: Gateway, door: Door | None = None) -> None:
        self._gateway = gateway
        self._door = door or Door()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "websocket":  # clients that try one first go on without
            await receive()
            await send({"type": "websocket.close", "code": 1000})
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}
        dialect = spoken(headers)
        try:
            call = self._call(scope, headers)
            if isinstance(call, Refusal):
                await _refuse(send, call)
                return
            dialect = call.place.dialect
            await self._answer(call, receive, send)
        except Gone:
            return
        except MullError as error:
            await _refuse(send, refusal_of(error, dialect))
        except Exception as error:
            log_warning(f"a request to the gateway failed: {error!r}")
            await _refuse(send, refusal_of(error, dialect))

    def _call(self, scope: Scope, headers: Mapping[str, str]) -> Call | Refusal:
        """What is asked for, by whom.

        Raises:
            RefusedError: whoever asks may not.
        """
        path, query = unquote(scope["path"]), parse_qs(scope["query_string"].decode("latin-1"))
        root = scope.get("root_path") or ""
        path = path.removeprefix(root) if root else path
        token = self._door.enter(headers, query)
        if path == "/health":
            return Refusal(200, _HEALTHY)
        place = find_place(scope["method"], path, headers)
        if isinstance(place, str):
            status, text = _UNANSWERED[place]
            return Refusal(*write_failure(Failed(text), spoken(headers), status))
        surface = surface_of(place.dialect)
        assert surface is not None
        client = Client(place.dialect, token.name if token else "")
        return Call(place, surface, client, path, query, headers)

    async def _answer(self, call: Call, receive: Receive, send: Send) -> None:
        match call.place.operation:
            case "answer":
                await self._complete(call, receive, send)
            case "count":
                asked = await self._asked(call, receive)
                tokens = await self._gateway.count(call.client, asked)
                await give(send, call.surface.write_count(tokens))
            case "models":
                await give(send, call.surface.write_models(listing(self._gateway.routes)))
            case "model":
                name = (call.place.name or "").removeprefix("models/")
                found = listed_as(name, self._gateway.routes.find(name).target)
                await give(send, call.surface.write_model(found))
            case _:
                status, text = _UNANSWERED["path"]
                await _refuse(
                    send, Refusal(*write_failure(Failed(text), call.place.dialect, status))
                )

    async def _asked(self, call: Call, receive: Receive) -> Asked:
        body = await read_body(receive, call.headers)
        return decode_request(call.place.dialect, body, call.path, call.headers)

    async def _complete(self, call: Call, receive: Receive, send: Send) -> None:
        asked = await self._asked(call, receive)
        job = await self._gateway.job(call.client, asked)
        if asked.stream:
            as_list = call.surface.as_list(call.query)
            await Streaming(job, receive, send, as_list=as_list).run()
        else:
            document = await while_there(job.document(), receive)
            await give(send, document, note_headers(job.notes))

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self._gateway.close()
                await send({"type": "lifespan.shutdown.complete"})
                return


async def _refuse(send: Send, refusal: Refusal) -> None:
    await give(send, refusal.body, refusal.headers, refusal.status)
