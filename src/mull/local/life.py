"""The life of the server process: it begins once, says when it is ready, and knows its end.

It ends when nobody uses it any more (unless it was started to be kept), or when it has been idle
for too long. It takes start.lock for that decision, so nobody can come to use it meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from collections.abc import Callable
from typing import NoReturn, Protocol

from mull.local.place import Running, ServerFolder
from mull.store.locks import FileLock

__all__ = ["READY", "Served", "Watch", "live"]

READY = "ready"
"""What the process says on its pipe when it listens; anything else is why it does not."""
TICK = 0.5
_LOAD_SECONDS = 120


class Served(Protocol):
    """A server that listens."""

    base_url: str

    def work(self) -> tuple[int, bool]:
        """A number that grows with the work done, and whether there is work now."""


class Watch:
    """Decides when the process must end."""

    def __init__(
        self,
        place: ServerFolder,
        work: Callable[[], tuple[int, bool]],
        idle: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._place = place
        self._work = work
        self._idle = idle
        self._clock = clock
        self._done = 0
        self._worked = clock()
        self._starting = FileLock(place.start_lock)

    def must_end(self) -> bool:
        """Whether to end now. If so, nobody else can start or find a server until this one ends."""
        if not self._has_reason():
            return False
        if not self._starting.acquire(wait=False):  # somebody is just coming
            return False
        if not self._has_reason():
            self._starting.release()
            return False
        return True

    def _has_reason(self) -> bool:
        return self._is_forsaken() or self._is_idle()

    def _is_forsaken(self) -> bool:
        probe = FileLock(self._place.users_lock)
        if not probe.acquire(wait=False):
            return False
        probe.release()
        running = self._place.read()
        return running is None or not running.kept

    def _is_idle(self) -> bool:
        now = self._clock()
        if now - max(self._worked, self._place.last_asked()) < self._idle:
            return False
        done, busy = self._work()
        if busy or done != self._done:
            self._done, self._worked = done, now
            return False
        return True


def live(
    place: ServerFolder,
    launch: Callable[[str], Served],
    ready: int,
    *,
    model: str,
    idle: float,
    kept: bool,
) -> NoReturn:
    """Run a server until it must end; `launch` gets the key. Speaks on the pipe `ready`, once."""
    signal.alarm(_LOAD_SECONDS)  # if it hangs while it loads, there is nobody to end it
    alive = FileLock(place.alive_lock)
    alive.acquire()
    key = secrets.token_urlsafe(24)
    try:
        served = launch(key)
    except Exception as error:
        _say(ready, str(error) or type(error).__name__)
        os._exit(1)
    signal.alarm(0)
    place.write(Running(os.getpid(), served.base_url, key, model, time.time(), idle, kept))
    watch = Watch(place, served.work, idle)
    _say(ready, READY)
    while not watch.must_end():
        time.sleep(TICK)
    place.forget()
    alive.release()
    os._exit(0)  # the library's own threads have nothing to save


def _say(pipe: int, words: str) -> None:
    with contextlib.suppress(OSError):  # whoever waited for it may be gone
        os.write(pipe, words.encode())
    os.close(pipe)
