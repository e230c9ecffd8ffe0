"""The asynchronous core for code that blocks.

One private event loop in a thread of its own runs everything; the caller's thread only takes
what comes out of a queue. So scripts need no asyncio, notebooks that already run a loop work the
same way, and connections are kept between calls. Leaving an iteration early, by `break`, an
exception or Ctrl-C, cancels the work and returns once it has ended: the socket is closed then.

A fork takes no threads along. In the child (of a server that loads its program before it forks, of
multiprocessing) the next call starts a loop of its own, and the parent's is left as it was.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, NamedTuple, Self, TypeAlias, TypeVar

__all__ = ["BlockingLoop"]

_T = TypeVar("_T")
_Queue: TypeAlias = SimpleQueue[Any]
_PATIENCE = 5.0
"""Seconds that work under way gets to end when the loop is closed."""

_living: weakref.WeakSet[BlockingLoop] = weakref.WeakSet()
_inherited: list[asyncio.AbstractEventLoop] = []
"""Loops of a parent process. They share its sockets and its place to wait for them, so they are
neither used nor closed nor collected here."""


class _End(NamedTuple):
    """Comes last out of the queue, however the work ended."""

    task: asyncio.Task[Any]


class BlockingLoop:
    """Runs coroutines and asynchronous iterators for callers that block. Close it when done."""

    def __init__(self) -> None:
        self._starting = threading.Lock()
        self._start()
        _living.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, make: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Run what `make` makes to its end and give its result."""

        async def whole(_: _Queue) -> _T:
            return await make()

        try:
            next(self._work(whole))
        except StopIteration as end:
            result: _T = end.value
            return result
        raise AssertionError("a coroutine yields nothing")

    def stream(
        self, begin: Callable[[Callable[[_T], None]], Coroutine[Any, Any, None]]
    ) -> Generator[_T, None, None]:
        """Iterate over what the work puts out, as it comes. `begin` is given where to put it. It is
        begun when the first item is asked for; a slow reader does not hold it back, items wait in
        memory. Whoever cancels the work ends the iteration."""
        return self._work(lambda queue: begin(queue.put), may_be_ended=True)

    def close(self) -> None:
        """Cancel what is under way and end the thread."""
        self._finalizer()

    def _start(self) -> None:
        self._loop = loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=_serve, args=(loop,), name="mull-client", daemon=True
        )
        self._thread.start()
        # Also runs at exit, while the interpreter is still whole.
        self._finalizer = weakref.finalize(self, _stop, loop, self._thread)
        self._forked = False

    def _leave(self) -> None:
        """In the child of a fork: what was started there does not run here."""
        self._starting = threading.Lock()
        if self._finalizer.detach():
            self._forked = True
            _inherited.append(self._loop)

    def _work(
        self, begin: Callable[[_Queue], Coroutine[Any, Any, Any]], *, may_be_ended: bool = False
    ) -> Generator[Any, None, Any]:
        with self._starting:
            if self._forked:
                self._start()
        if threading.current_thread() is self._thread:
            raise RuntimeError("the blocking client cannot be used from its own event loop")
        if not self._finalizer.alive:
            raise RuntimeError("this client was closed")
        loop = self._loop
        queue: _Queue = SimpleQueue()
        tasks: list[asyncio.Task[Any]] = []

        async def work() -> Any:
            return await begin(queue)

        def start() -> None:
            task = loop.create_task(work())
            tasks.append(task)
            task.add_done_callback(lambda done: queue.put(_End(done)))

        ended = False
        try:
            loop.call_soon_threadsafe(start)
            while type(item := queue.get()) is not _End:
                yield item
                if self._forked or self._loop is not loop:
                    raise RuntimeError("this was started in another process, before a fork")
            ended = True
            if item.task.cancelled() and not (may_be_ended and self._finalizer.alive):
                raise RuntimeError("this client was closed")
            if item.task.cancelled():
                return None
            return item.task.result()
        finally:
            if not ended and self._loop is loop and self._finalizer.alive:
                _abandon(loop, tasks, queue)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop until it is stopped. Work that wants to end the program (`sys.exit` in a
    subscriber) ends alone: whoever waits for it gets that, and the others go on."""
    while True:
        try:
            loop.run_forever()
        except (SystemExit, KeyboardInterrupt):
            continue
        return


def _leave_all() -> None:
    for one in _living:
        one._leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all)


def _abandon(
    loop: asyncio.AbstractEventLoop, tasks: list[asyncio.Task[Any]], queue: _Queue
) -> None:
    loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])
    while type(item := queue.get()) is not _End:
        pass
    if not item.task.cancelled():
        item.task.exception()  # looked at, so that nothing complains of it later


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    if threading.current_thread() is thread:
        loop.stop()  # collected by its own thread, which cannot wait for itself
        return
    with suppress(TimeoutError):  # what does not let itself be cancelled is left to its end
        asyncio.run_coroutine_threadsafe(_cancel_all(), loop).result(_PATIENCE)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(_PATIENCE)
    if not thread.is_alive():
        loop.close()


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()  # connections that wait end with it
