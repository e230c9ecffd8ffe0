"""Trades a cloud's login for tokens over mull's own connections, and holds each until it ages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from mull.auth.flow import Flow, HttpReply, HttpRequest, Session, Wait
from mull.auth.google import Grant, session
from mull.client import transport as http
from mull.client.access import Access
from mull.neutral.errors import NetworkError

if TYPE_CHECKING:
    from mull.client.answer import Client

__all__ = ["Tokens", "run_flow"]

_T = TypeVar("_T")
_PATIENCE = 30.0
_LONGEST = 1_000_000


class Tokens:
    """The tokens of this process. Two requests at once may fetch two, either of which is good."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._held: dict[Grant, Session] = {}

    async def enter(self, way: Access, transport: Client) -> Access:
        """The way with a token in place of the login that gives one; others are as they were.

        Raises:
            ConfigError: the login cannot be used here.
            RefusedError: it is no longer good.
            RemoteError: the cloud cannot be reached or is not understood.
        """
        grant = way.cloud
        if way.key is not None or not isinstance(grant, Grant):
            return way
        flow = session(grant, self._held.get(grant), self._clock())
        self._held[grant] = fresh = await run_flow(flow, transport, self._clock)
        return replace(way, key=fresh.token)


async def run_flow(flow: Flow[_T], transport: Client, clock: Callable[[], float] = time.time) -> _T:
    """Run a flow that needs no person to its end.

    Raises:
        RemoteError: the flow ends in one.
    """
    try:
        step = next(flow)
        while True:
            if isinstance(step, HttpRequest):
                try:
                    reply = await _send(step, transport, clock)
                except NetworkError as error:
                    step = flow.throw(error)
                    continue
                step = flow.send(reply)
            else:
                if isinstance(step, Wait):
                    await asyncio.sleep(step.seconds)
                step = flow.send(None)
    except StopIteration as end:
        value: _T = end.value
        return value


async def _send(request: HttpRequest, transport: Client, clock: Callable[[], float]) -> HttpReply:
    asked = http.HttpRequest(request.method, request.url, request.headers, request.body or b"")
    async with transport.send(asked, idle=_PATIENCE, total=_PATIENCE) as answer:
        body = await answer.read(_LONGEST)
        return HttpReply(answer.status, body, clock())
