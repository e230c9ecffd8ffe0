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
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Self, TypeAlias, TypeVar

__all__ = ["BlockingLoop"]

_T = TypeVar("_T")
_Queue: TypeAlias = SimpleQueue[Any]
_PATIENCE = 5.0
"""Seconds that work under way gets to end when the loop is closed."""
_DEEPEST = 10
_AGAIN = 0.5
"""Seconds after which abandoned work is interrupted again."""

_living: weakref.WeakSet[BlockingLoop] = weakref.WeakSet()
_waiting: dict[asyncio.AbstractEventLoop, asyncio.AbstractEventLoop] = {}
"""Loops that can do nothing now, because code on them called a blocking function, and the loop that
each of them waits for."""
_inherited: list[asyncio.AbstractEventLoop] = []
"""Loops of a parent process. They share its sockets and its place to wait for them, so they are
neither used nor closed nor collected here."""


class _End(NamedTuple):
    """Comes last out of the queue, however the work ended."""

    task: asyncio.Task[Any]


class BlockingLoop:
    """Runs coroutines and asynchronous iterators for callers that block. Close it when done."""

    def __init__(self, depth: int = 0) -> None:
        """`depth` is how many other loops wait for this one."""
        self._depth = depth
        self._starting = threading.Lock()
        self._inner: BlockingLoop | None = None
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
        if self._inner is not None:
            self._inner.close()
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
        if not self._finalizer.alive:
            raise RuntimeError("this client was closed")
        loop = self._loop
        if self._inner is not None and loop in _waiting:  # what it waits for may have called this
            return (yield from self._inner._work(begin, may_be_ended=may_be_ended))
        if threading.current_thread() is self._thread:
            return (yield from self._work_inside(begin, may_be_ended=may_be_ended))
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

    def _work_inside(
        self, begin: Callable[[_Queue], Coroutine[Any, Any, Any]], *, may_be_ended: bool
    ) -> Generator[Any, None, Any]:
        """The same for asynchronous code on this very loop, such as a tool that asks a question: a
        second loop does the work, and this one waits for it."""
        if self._depth >= _DEEPEST:
            raise RuntimeError(
                f"blocking calls are nested more than {_DEEPEST} deep: use the asynchronous ones"
            )
        if self._inner is None:
            self._inner = BlockingLoop(self._depth + 1)
        _waiting[self._loop] = self._inner._loop
        try:
            return (yield from self._inner._work(begin, may_be_ended=may_be_ended))
        finally:
            del _waiting[self._loop]


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
    item: Any = None
    while type(item) is not _End:
        _interrupt(loop)
        with suppress(Empty):
            item = queue.get(timeout=_AGAIN)
    if not item.task.cancelled():
        item.task.exception()  # looked at, so that nothing complains of it later


def _interrupt(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what the loop waits for, so that it can go on."""
    if (inner := _waiting.get(loop)) is not None:
        _interrupt(inner)
        asyncio.run_coroutine_threadsafe(_cancel_all(), inner)


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
