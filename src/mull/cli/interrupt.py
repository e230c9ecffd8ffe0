"""Runs a command's work so that Ctrl-C, and being told to end, stop it between two of its steps.

asyncio's own way cancels from within the signal's handler, which comes in the middle of whatever
runs: a callback that has just seen that somebody waits finds nobody, and says so by a traceback.
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
    """What the work comes to.

    Being told to end, or losing the terminal, counts as Ctrl-C: what tools have started has a
    session of its own and would outlive us.

    Raises:
        KeyboardInterrupt: it was stopped and has put itself in order; whoever asks a second time
            does not wait for that.
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
        work.close()  # where it could not even begin


@contextmanager
def _taken(stop: Callable[[int, object], None]) -> Iterator[None]:
    """Signals that would end us go to `stop`; one that is ignored, as under nohup, stays so."""
    known = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")]
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {one: signal.getsignal(one) for one in known if one is not None}
    taken = {
        one: handler
        for one, handler in before.items()
        if handler is signal.SIG_DFL or (one == signal.SIGINT and callable(handler))
    }
    for one in taken:
        signal.signal(one, stop)
    try:
        yield
    finally:
        for one, handler in taken.items():
            signal.signal(one, handler)
