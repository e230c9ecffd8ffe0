"""The gateway as an ASGI application, to be served by any ASGI server or mounted in another one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from urllib.parse import parse_qs

import msgspec

from mull.dialects.openai_responses import DIALECT as RESPONSES
from mull.dialects.serving import decode_request, write_failure
from mull.dialects.surface import Operation, find_place, spoken, surface_of
from mull.gateway.anchors import session_in
from mull.gateway.calls import Call
from mull.gateway.cors import is_preflight, permit, shared_with
from mull.gateway.door import Door
from mull.gateway.failures import Refusal, refusal_of
from mull.gateway.http import (
    Gone,
    Receive,
    Scope,
    Send,
    WhileThere,
    aside,
    check_head,
    give,
    head_of,
    note_headers,
    read_body,
)
from mull.gateway.listing import listed_as, listing
from mull.gateway.memory import OK
from mull.gateway.relay import Client
from mull.gateway.responses import Responses
from mull.gateway.socket import Socket, decline
from mull.gateway.streaming import Streaming
from mull.gateway.tracing import record_caller
from mull.logs import log_warning
from mull.neutral.errors import CatalogError, MullError
from mull.neutral.events import Failed

if TYPE_CHECKING:
    from mull.agent.engine import Engine
    from mull.gateway.routes import Routes
    from mull.gateway.service import Gateway
    from mull.neutral.asked import Asked
    from mull.neutral.messages import Dialect

__all__ = ["GatewayApp", "Handler", "Page"]

Handler: TypeAlias = Callable[[Call, Receive, Send], Awaitable[None]]
"""Answers the requests of one operation of a dialect."""


class Page(NamedTuple):
    """Answers requests to a path that belongs to no dialect. Its handler finds the client's token
    in `scope["user"]`. A `public` page contains no client's data and needs no token."""

    handler: Callable[[Scope, Receive, Send], Awaitable[None]]
    public: bool = False


_encode = msgspec.json.Encoder().encode
OURS = ("x-mull", "gateway")
"""The header that distinguishes this gateway from any other server with a `/health` page."""
_HEALTH = "/health"
_PROBE_SECONDS, _HEALTH_SECONDS = 2.0, 1.0
_READING = frozenset({"GET", "HEAD"})
_NO_SUCH_PATH = "path not found: GET /v1/models lists the models that this gateway serves"
_UNANSWERED = {
    "path": (404, _NO_SUCH_PATH),
    "method": (405, "method not allowed for this path"),
}


class GatewayApp:
    """`await app(scope, receive, send)`."""

    def __init__(
        self, gateway: Gateway, door: Door | None = None, pages: Mapping[str, Page] | None = None
    ) -> None:
        self._gateway = gateway
        self._door = door or Door()
        self.health_details: Callable[[], Mapping[str, object]] = dict
        """Returns additional fields for `/health`."""
        self._pages = {_HEALTH: Page(self._health, public=True)} | dict(pages or {})
        self._probing: asyncio.Task[None] | None = None
        self._responses = responses = Responses(lambda: self._gateway)
        self._handlers: dict[Operation, Handler] = {
            "answer": self._complete,
            "count": self._count,
            "models": self._models,
            "model": self._model,
            "respond": responses.respond,
            "respond_count": responses.count,
            "response": responses.response,
            "items": responses.items,
            "compact": responses.compact,
            "cancel": responses.cancel,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "websocket":
            await self._socket(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = head_of(scope)
        path, query = _path(scope), parse_qs(scope["query_string"].decode("latin-1"))
        place = find_place(scope["method"], path, headers)
        dialect = spoken(headers) if isinstance(place, str) else place.dialect
        try:
            check_head(scope, headers)
            if path != _HEALTH:  # a load balancer calls it by whatever address it has
                self._door.check_host(headers)
            if origin := self._door.check_origin(headers):
                send = shared_with(origin, send)
                if is_preflight(scope["method"], headers):
                    await permit(send, headers)
                    return
            page = self._pages.get(path)
            token = None
            if page is None or not page.public:
                await self._door.refresh()
                token = self._door.enter(headers, query, _address(scope))
            if page is not None and scope["method"] not in _READING:
                await _unanswered(send, dialect, "method")
                return
            if page is not None:
                await page.handler({**scope, "user": token}, receive, send)
                return
            if isinstance(place, str):
                await _unanswered(send, dialect, place)
                return
            surface = surface_of(dialect)
            assert surface is not None
            record_caller(headers)
            client = Client(dialect, token.scope if token else "", session_in(headers))
            call = Call(place, surface, client, path, query, headers, scope["method"])
            handler = self._handlers.get(place.operation)
            if handler is None:
                await _unanswered(send, dialect, "path")
            else:
                await handler(call, receive, send)
        except Gone:
            return
        except MullError as error:
            await _refuse(send, refusal_of(error, dialect))
        except Exception as error:
            log_warning(f"a request to the gateway failed: {error!r}")
            await _refuse(send, refusal_of(error, dialect))

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the Responses API over a WebSocket, at the path of its requests."""
        headers = head_of(scope)
        path, query = _path(scope), parse_qs(scope["query_string"].decode("latin-1"))
        place = find_place("POST", path, headers)

        async def enter() -> Client:
            await self._door.refresh()
            token = self._door.enter(headers, query, _address(scope))
            return Client(RESPONSES, token.scope if token else "", session_in(headers))

        try:
            check_head(scope, headers)
            self._door.check_host(headers)
            self._door.check_origin(headers)
            await enter()
            if isinstance(place, str) or place.operation != "respond":
                raise CatalogError(_NO_SUCH_PATH)
        except MullError as error:
            await decline(scope, receive, send, refusal_of(error, spoken(headers)))
            return
        await Socket(self._responses, enter, receive, send, headers).run()

    async def _count(self, call: Call, receive: Receive, send: Send) -> None:
        asked, body = await self._asked(call, receive)
        tokens = await self._gateway.count(call.client, asked, body)
        await give(send, call.surface.write_count(tokens))

    async def _models(self, call: Call, receive: Receive, send: Send) -> None:
        await self._gateway.servers.refresh(self._gateway.routes)
        offer = partial(self._gateway.offer, call.client)
        listed = listing(self._gateway.routes.names(), offer)
        await give(send, call.surface.write_models(listed))

    async def _model(self, call: Call, receive: Receive, send: Send) -> None:
        name = (call.place.name or "").removeprefix("models/")
        await self._gateway.servers.know(self._gateway.offer(call.client, name).routes)
        found = listed_as(name, self._gateway.offer(call.client, name))
        await give(send, call.surface.write_model(found))

    async def _asked(self, call: Call, receive: Receive) -> tuple[Asked, bytes]:
        """The decoded request, and its body as received."""
        body = await read_body(receive, call.headers)
        dialect, path = call.place.dialect, call.path
        return await aside(len(body), decode_request, dialect, body, path, call.headers), body

    async def _complete(self, call: Call, receive: Receive, send: Send) -> None:
        asked, body = await self._asked(call, receive)
        job = await self._gateway.job(call.client, asked, body)
        if asked.stream:
            as_list = call.surface.as_list(call.query)
            await Streaming(job, receive, send, as_list=as_list).run()
        else:
            with WhileThere(receive):
                document = await job.document()
            await give(send, document, note_headers(job.notes))

    async def _health(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The status is "degraded" if a store fails: requests are still answered, unless the tokens
        were never read; a proxy then leaves this gateway out. Strangers learn no more."""
        self._probe()
        if not self._door.is_open:
            with suppress(TimeoutError):
                async with asyncio.timeout(_HEALTH_SECONDS):
                    await self._door.refresh()
        states = {**self._gateway.memory.health()}
        if self._door.is_failing or not self._door.is_open:
            states["tokens"] = "cannot be read; see the log"
        failing = {part: state for part, state in states.items() if state != OK}
        said: dict[str, object] = {"status": "degraded" if failing else OK}
        headers, query = head_of(scope), parse_qs(scope["query_string"].decode("latin-1"))
        known = self._door.knows_host(headers)
        if known and self._door.recognizes(headers, query, _address(scope)):
            said |= {**failing, **self.health_details()}
        await give(send, _encode(said), [OURS], 200 if self._door.is_open else 503)

    def _probe(self) -> None:
        """Look at the stores regularly from now on, so that `/health` knows of one that failed
        since the last request. An application that this one is mounted in may send no event when
        it starts: then the first `/health` begins it."""
        if self._probing is None or self._probing.done():
            self._probing = asyncio.get_running_loop().create_task(self._keep_probing())

    async def _keep_probing(self) -> None:
        while True:
            with suppress(Exception):  # the log has it
                await self._door.refresh()
            with suppress(Exception):
                await self._gateway.memory.find("", ("probe",))
            await asyncio.sleep(_PROBE_SECONDS)

    async def close(self) -> None:
        """Close the gateway."""
        if self._probing is not None:
            self._probing.cancel()
        await self._gateway.close()

    async def renew(
        self, engine: Engine, routes: Routes, hosts: Iterable[str], origins: Iterable[str] = ()
    ) -> None:
        """Use this engine, these routes and these names of the server for later requests."""
        self._door.answer_to(hosts, origins)
        await self._gateway.renew(engine, routes).close()

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await asyncio.gather(self._gateway.open(), self._door.refresh())
                self._probe()
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return


async def _refuse(send: Send, refusal: Refusal) -> None:
    await give(send, refusal.body, refusal.headers, refusal.status)


async def _unanswered(send: Send, dialect: Dialect, why: str) -> None:
    status, text = _UNANSWERED[why]
    await _refuse(send, Refusal(*write_failure(Failed(text), dialect, status)))


def _address(scope: Scope) -> str:
    """The IP address of the client."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def _path(scope: Scope) -> str:
    """The path, relative to where the application is mounted."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path") or "")
