"""Model servers of the user's own: what they say about their models, asked again and again.

A server on this machine or its network says how large the context window of its model is. It may
not run yet when the gateway starts, and may be restarted with another window at any time. So each
is asked when its model is used, at most every few seconds, and requests do not wait for it: only
while nothing is known about the model, a request waits a moment for the answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from mull.neutral.errors import MullError

if TYPE_CHECKING:
    from mull.agent.engine import Engine
    from mull.gateway.routes import Route, Routes

__all__ = ["Servers"]

FRESH = 2.0
"""Seconds for which an answer, or a missing one, is good."""
MOMENT = 0.25
"""Seconds for which a request waits for a server about which nothing is known."""


class Servers:
    """The user's own servers, as one engine knows them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._asked: dict[str, float] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._finding: asyncio.Task[None] | None = None
        self._found_at = float("-inf")

    async def know(self, routes: Iterable[Route], *, patiently: bool = False) -> bool:
        """Ask the servers of a request, and wait a moment for those of which nothing is known, or
        `patiently`; returns whether any was waited for."""
        own = [route for route in routes if route.own]
        if not own:
            return False
        asking = self._ask(own)
        unknown = [route for route in own if self._engine.served_by(route.target) is None]
        waited = [task for route in unknown if (task := asking.get(route.place))]
        if waited:
            await asyncio.wait(waited, timeout=None if patiently else MOMENT)
        return bool(waited)

    async def refresh(self, routes: Routes) -> None:
        """Ask all servers and wait for their answers: for a list of models. If every usable model
        is listed, look for servers at their usual addresses."""
        waited = list(self._ask(_routes_of(routes)).values())
        if routes.lists_usable:
            if self._finding is None and time.monotonic() - self._found_at >= FRESH:
                self._finding = asyncio.create_task(self._find(routes))
            if self._finding is not None:
                waited.append(self._finding)
        if waited:
            await asyncio.wait(waited)

    def close(self) -> None:
        """Stop asking."""
        for task in (*self._asking.values(), self._finding):
            if task is not None:
                task.cancel()

    def _ask(self, routes: Iterable[Route]) -> dict[str, asyncio.Task[None]]:
        """The queries under way to these servers; one begins for each that was not asked lately."""
        found = {}
        for route in routes:
            at, now = self._asked.get(route.place), time.monotonic()
            task = self._asking.get(route.place)
            if task is None and (at is None or now - at >= FRESH):
                task = self._asking[route.place] = asyncio.create_task(self._query(route))
            if task is not None:
                found[route.place] = task
        return found

    async def _query(self, route: Route) -> None:
        try:
            await self._engine.inspect_server(route.target, route.way, again=True)
        except MullError:
            pass  # it says nothing: as if it were not there
        finally:
            self._asked[route.place] = time.monotonic()
            del self._asking[route.place]

    async def _find(self, routes: Routes) -> None:
        """Look for servers at their usual addresses, and take over what they say."""
        from mull.agent.discover import discover

        try:
            names = []
            for found in await discover(self._engine):
                for served in found.served:
                    name = f"{found.provider}/{served.id}"
                    try:
                        self._engine.note_served(self._engine.target(name), served)
                    except MullError:
                        continue
                    names.append(name)
            routes.local = names
        finally:
            self._found_at, self._finding = time.monotonic(), None


def _routes_of(routes: Routes) -> list[Route]:
    """The routes of the configured names that lead to servers of the user's own."""
    found = []
    for name in () if routes.lists_usable else routes.names():
        try:
            found += [route for route in routes.offer(name).routes if route.own]
        except MullError:
            continue
    return found
