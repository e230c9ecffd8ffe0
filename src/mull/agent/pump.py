"""Events out of work that runs beside: whoever works puts them in, whoever draws takes them out."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Coroutine
from typing import Any

from mull.neutral.events import Event

__all__ = ["Pump"]


class Pump:
    """A queue of events beside one piece of work. `put` may be called from any thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue()

    def put(self, event: Event) -> None:
        """Let an event out."""
        self._loop.call_soon_threadsafe(self._queue.put_nowait, event)

    async def run(self, work: Coroutine[Any, Any, None]) -> AsyncGenerator[Event, None]:
        """The events that the work puts in, until it is done. Leaving early cancels the work and
        waits until it has put itself in order.

        Raises:
            Exception: whatever the work raised, after its events.
        """
        task = asyncio.ensure_future(work)
        # the end goes the same way as the events, so that none of them is overtaken
        task.add_done_callback(lambda _: self._loop.call_soon(self._queue.put_nowait, None))
        try:
            while (event := await self._queue.get()) is not None:
                yield event
        finally:
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        await task
