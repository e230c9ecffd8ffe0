"""The connections that wait for another request.

They belong to the event loop that made them, and to the process. Each loop's connections end with
it: an asynchronous generator watches, which every loop that is shut down in the proper way ends
first (`asyncio.run`, uvloop and anyio do). Connections of a loop that was closed without it are
closed as soon as another loop asks. After a fork they are the parent's: the child forgets them,
for what it does to them it would do to the parent.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import AsyncGenerator
from contextlib import suppress

from msgspec import Struct

from mull.client.connection import Address, Connection, running_loop

__all__ = ["Pool"]

KEPT_SECONDS = 50.0
"""How long a connection is kept for another request; servers close theirs after a minute or so."""
KEPT_MOST = 100
"""How many of one event loop are kept; the one that waited longest goes first."""

_inherited: list[object] = []
"""What a parent process kept. Nothing here is ever used, nor collected, which might close it."""


class _Shelf(Struct, frozen=True):
    """The idle connections of one event loop, the latest last, and what ends with the loop."""

    idle: list[Connection]
    watch: AsyncGenerator[None, None]


class Pool:
    """Keeps connections between requests."""

    def __init__(self) -> None:
        self._shelves: dict[asyncio.AbstractEventLoop, _Shelf] = {}
        self._process = os.getpid()
        self._closed = False

    async def open(self) -> None:
        """Get ready to keep what the running event loop will have used."""
        self._look_around()
        loop = running_loop()
        if self._closed or loop in self._shelves:
            return
        idle: list[Connection] = []
        watch = _watch(weakref.ref(self), loop, idle)
        self._shelves[loop] = _Shelf(idle, watch)
        await anext(watch)

    async def take(self, place: Address) -> Connection | None:
        """The connection to a place that was used last, if one is open still. Where the end of an
        answer is just coming, it is waited for: that is sooner than a new connection."""
        idle = self._idle()
        while True:
            fitting = [one for one in reversed(idle) if one.place == place and one.is_open]
            for connection in fitting:
                if not connection.is_draining:
                    idle.remove(connection)
                    return connection
            if not fitting:
                return None
            await fitting[0].settled()

    def keep(self, connection: Connection) -> None:
        """Have it wait for the next request; where nobody would close it, close it now."""
        shelf = self._shelves.get(connection.loop)
        if shelf is None or not connection.is_open:
            connection.close()
            return
        connection.rest(KEPT_SECONDS)
        shelf.idle[:] = [*filter(_is_open, shelf.idle), connection]
        if len(shelf.idle) > KEPT_MOST:
            shelf.idle.pop(0).close()

    def drop(self, place: Address) -> None:
        """Close all that lead to a place: what ended one has probably ended the others."""
        for connection in self._idle():
            if connection.place == place:
                connection.close()

    async def close(self) -> None:
        """Close everything, now and whatever comes back later."""
        self._look_around()
        self._closed = True
        here = running_loop()
        while self._shelves:
            loop, shelf = self._shelves.popitem()
            if loop is here:
                await shelf.watch.aclose()
            else:
                with suppress(RuntimeError):  # it was closed at this moment, by its own thread
                    loop.call_soon_threadsafe(_end, shelf.idle)

    def _idle(self) -> list[Connection]:
        shelf = self._shelves.get(running_loop())
        return shelf.idle if shelf else []

    def _look_around(self) -> None:
        if self._process != os.getpid():
            _inherited.append(self._shelves)
            self._shelves, self._process = {}, os.getpid()
        for loop in list(self._shelves):
            if loop.is_closed() and (shelf := self._shelves.pop(loop, None)):
                _end(shelf.idle)


async def _watch(
    pool: weakref.ref[Pool], loop: asyncio.AbstractEventLoop, idle: list[Connection]
) -> AsyncGenerator[None, None]:
    """Waits for its own end: its loop's, or that of a pool that nobody holds any more."""
    try:
        yield
    finally:
        if (owner := pool()) is not None:
            owner._shelves.pop(loop, None)
        _end(idle)
        await asyncio.sleep(0)  # lets the sockets go


def _is_open(connection: Connection) -> bool:
    if not connection.is_open:
        connection.close()
    return connection.is_open


def _end(idle: list[Connection]) -> None:
    for connection in idle:
        connection.close()
    idle.clear()
