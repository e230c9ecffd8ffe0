"""The events of one turn for its caller: iterators that own what they started.

The turn runs beside its reader and does not wait for it. Leaving an iterator, by `break`, an
exception, `close` or the end of its block, stops the endpoint immediately and keeps what arrived as
interrupted. Only the caller references them, so that dropping one is the same as closing it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from mull.agent.hub import Inbox, Subscriber
from mull.agent.results import Result, result_of
from mull.agent.run import Turn
from mull.client.connection import running_loop
from mull.neutral.errors import LocalError
from mull.neutral.events import Event

if TYPE_CHECKING:
    from mull.agent.structured import PartialAnswer
    from mull.client.sync import BlockingLoop
    from mull.policy.prepare import Prepared

__all__ = ["AsyncStream", "Stream", "end_task", "end_task_now"]

Run: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


class AsyncStream:
    """The events of a turn as they happen; `result` is available at any time, complete at the
    end.
    """

    def __init__(self, turn: Turn, run: Run) -> None:
        self._turn = turn
        self._run: Run | None = run
        self._partial = _PartialValue(turn)
        self._inbox = Inbox()
        self._task: asyncio.Task[None] | None = None
        turn.hub.add(self._inbox.put)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while not self._inbox:
            here = running_loop()
            if self._run is not None:
                self._begin(here.create_task(self._run()))
            task = self._task
            if task is None or task.done():
                self._task = None
                if task is not None and not task.cancelled():
                    task.result()
                raise StopAsyncIteration
            if task.get_loop() is not here:
                raise LocalError("this stream was started on another event loop: read it there")
            if self._inbox.is_awaited:
                raise LocalError("this stream already has a reader: it can have only one")
            try:
                await self._inbox.wait()
            except BaseException:
                await self.aclose()
                raise
        return self._inbox.popleft()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop: the socket is closed and what arrived is kept as interrupted."""
        task, self._run, self._task = self._task, None, None
        self._inbox.clear()
        if task is not None:
            await end_task(task)

    def __del__(self) -> None:
        if self._task is not None:
            begin_to_end(self._task)
            if self._task.get_loop().is_closed():  # it can only be garbage collected
                self._turn.task = None

    def _begin(self, task: asyncio.Task[None]) -> None:
        """Start the turn."""
        self._run, self._task, self._turn.task = None, task, task
        task.add_done_callback(self._inbox.wake)
        task.add_done_callback(_look_at)

    @property
    def prepared(self) -> Prepared | None:
        """The last request that was prepared."""
        return self._turn.prepared

    @property
    def silence(self) -> float:
        """Seconds since the awaited endpoint last sent anything; 0 if none is awaited."""
        heard = self._turn.heard
        return 0.0 if heard is None else time.monotonic() - heard

    @property
    def result(self) -> Result:
        """The result so far."""
        return result_of(self._turn)

    @property
    def partial(self) -> Any:
        """The value of an answer with a `schema` so far, as JSON data: texts and lists may still
        grow, and members may be missing. None while nothing of it has arrived.
        """
        return self._partial.now()


class _PartialValue:
    """The value of an answer with a `schema` so far."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._reading: PartialAnswer | None = None

    def now(self) -> Any:
        turn = self._turn
        if turn.shape is None:
            return None
        if self._reading is None:
            from mull.agent.structured import PartialAnswer

            self._reading = PartialAnswer(turn.shape)
        message = result_of(turn).message
        return None if turn.calls_tools(message) else self._reading.of(message)


def begin_to_end(task: asyncio.Task[None]) -> None:
    """Have the task stop as soon as its event loop continues; callable from anywhere."""
    loop = task.get_loop()
    if task.done():
        return
    if loop is _loop_here():
        task.cancel()
        return
    with suppress(RuntimeError):  # its loop is closed
        loop.call_soon_threadsafe(task.cancel)


async def end_task(task: asyncio.Task[Any]) -> None:
    """Stop the task and wait until it has stopped."""
    begin_to_end(task)
    loop = task.get_loop()
    if loop is _loop_here():
        await asyncio.wait({task})
    elif loop.is_running():
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(end_task(task), loop))


def end_task_now(task: asyncio.Task[None]) -> None:
    """`end_task` for blocking code. The task's own event loop cannot wait for itself: there it
    stops as soon as the loop continues.
    """
    begin_to_end(task)
    loop = task.get_loop()
    if loop is not _loop_here() and loop.is_running():
        asyncio.run_coroutine_threadsafe(end_task(task), loop).result()


def _loop_here() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _look_at(task: asyncio.Task[None]) -> None:
    """Retrieve the exception, so that asyncio does not complain about an unread error."""
    if not task.cancelled():
        task.exception()


class Stream:
    """The same for blocking code."""

    def __init__(self, turn: Turn, run: Run, loop: BlockingLoop) -> None:
        closed = threading.Event()

        def begin(put: Subscriber) -> Coroutine[Any, Any, None]:
            turn.hub.add(put)
            turn.task = asyncio.current_task()
            if closed.is_set() and turn.task is not None:
                turn.task.cancel()
            return run()

        self._turn = turn
        self._partial = _PartialValue(turn)
        self._closed = closed
        self._reading = threading.Lock()
        self._work = loop.stream(begin)
        self._events: Iterator[Event] = chain.from_iterable(self._work)

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        with self._reading:
            return next(self._events)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop: the socket is closed and what arrived is kept as interrupted.

        Another thread that waits for the next event gets no more.
        """
        self._closed.set()
        # Another thread may be inside the generator. Closing it then is an error, and in
        # CPython 3.11 occasionally a crash: it looks for a nested generator where there is none.
        if self._reading.acquire(blocking=False):
            try:
                self._work.close()
                self._events = iter(())
            finally:
                self._reading.release()
        elif self._turn.task is not None:
            end_task_now(self._turn.task)

    @property
    def result(self) -> Result:
        """The result so far."""
        return result_of(self._turn)

    @property
    def partial(self) -> Any:
        """The value of an answer with a `schema` so far, as `AsyncStream.partial`."""
        return self._partial.now()
