"""Runs a command so that Ctrl-C and termination signals stop it between two of its steps.

asyncio's own mechanism cancels from within the signal handler, in the middle of whatever is
running: a callback that has just seen a waiter may find it gone, and prints a traceback.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

__all__ = ["run"]

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """The result of the work.

    A termination signal, or losing the terminal, counts as Ctrl-C: processes started by tools have
    their own session and would outlive us.

    Raises:
        KeyboardInterrupt: it was interrupted and has cleaned up; a second interrupt does not wait
            for that.
    """
    told: list[int] = []

    def stop(number: int, _: object) -> None:
        if told:
            raise KeyboardInterrupt
        told.append(number)
        loop.call_soon_threadsafe(task.cancel)

    try:
        with asyncio.Runner() as runner:
            loop = runner.get_loop()
            task = loop.create_task(work)
            with _taken(stop):
                return loop.run_until_complete(task)
    except asyncio.CancelledError:
        if told:
            raise KeyboardInterrupt from None
        raise
    finally:
        work.close()  # in case it could not even start


@contextmanager
def _taken(stop: Callable[[int, object], None]) -> Iterator[None]:
    """Route termination signals to `stop`; one that is ignored, as under nohup, stays ignored."""
    known = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")]
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {one: signal.getsignal(one) for one in known if one is not None}
    taken = {
        one: handler for one, handler in before.items() if handler not in (signal.SIG_IGN, None)
    }
    for one in taken:
        signal.signal(one, stop)
    try:
        yield
    finally:
        for one, handler in taken.items():
            signal.signal(one, handler)
