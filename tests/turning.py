"""Turns and thoughts for tests that step through them, one event at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from mull.agent.hurry import Hurry
from mull.agent.run import Turn, run_turn
from mull.agent.streams import AsyncStream
from mull.neutral.events import Event

if TYPE_CHECKING:
    from mull.agent.run import Send


def going(turn: Turn) -> AsyncStream:
    """The events of a turn that runs while they are read."""
    return AsyncStream(turn, lambda: run_turn(turn))


def sends(stream: Callable[..., AsyncGenerator[Event, None]]) -> Send:
    """What sends by giving the events of `stream`, which may call whom to tell of requests."""

    async def send(prepared: Any, *, sending: Any = None) -> AsyncGenerator[list[Event], None]:
        async with aclosing(stream(prepared, sending)) as events:
            async for event in events:
                yield [event]
                for _ in range(3):  # what somebody does about it is done before the next one
                    await asyncio.sleep(0)

    return send


class Watched:
    """A stream that a `Hurry` watches; its events and what is told, each when it is asked for."""

    def __init__(self, stream: AsyncGenerator[Event, None], *args: Any, **more: Any) -> None:
        self._stream = stream
        self._asked = asyncio.Semaphore(0)
        self._seen: asyncio.Queue[Event] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self.hurry = Hurry(*args, **more, tell=self._seen.put_nowait)

    def __aiter__(self) -> Watched:
        return self

    async def __anext__(self) -> Event:
        if self._task is None:
            self._task = asyncio.ensure_future(self._work())
        if self._seen.empty():
            self._asked.release()
            seen = asyncio.ensure_future(self._seen.get())
            await asyncio.wait({seen, self._task}, return_when="FIRST_COMPLETED")
            if not seen.done():
                seen.cancel()
                self._task.result()
                raise StopAsyncIteration
            return seen.result()
        return self._seen.get_nowait()

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _work(self) -> None:
        async with self.hurry.watch():
            await self._asked.acquire()
            async for event in self._stream:
                self.hurry.take((event,))
                self._seen.put_nowait(event)
                await self._asked.acquire()
