"""Several processes that serve one address: started, started again when one dies, ended together.

Each is told to end by the same signals as a single one. Its standard input is a pipe from here,
so that it also ends where this process was killed and can tell nobody anything.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from collections.abc import Sequence
from contextlib import suppress

from mull.logs import log_warning

__all__ = ["Supervisor"]

_FIRST_WAIT, _LONGEST_WAIT = 0.1, 10.0
_STEADY = 10.0
"""Seconds after which a process counts as started."""
_LAST_SECONDS = 10.0


class Supervisor:
    """Keeps `count` processes of a command running. Each is told the number of its socket, which
    stays open here: connections that wait in it outlive a process that dies."""

    def __init__(
        self, command: Sequence[str], count: int, sockets: Sequence[socket.socket]
    ) -> None:
        self._command = command
        self._count = count
        self._sockets = sockets
        self._running: set[asyncio.subprocess.Process] = set()
        self._ending = asyncio.Event()

    async def run(self, stop: asyncio.Event, at_once: asyncio.Event, grace: float) -> None:
        """Keep them running until `stop`; then let them finish, for `grace` seconds at most and
        not `at_once`."""
        tasks = [asyncio.create_task(self._keep(number)) for number in range(self._count)]
        try:
            await stop.wait()
            self._ending.set()
            for one in self._sockets:  # whoever connects now is refused, and waits for nobody
                one.close()
            self._tell(signal.SIGTERM)
            hurry = asyncio.create_task(self._hurry(at_once))
            await asyncio.wait(tasks, timeout=grace + _LAST_SECONDS)
            hurry.cancel()
        finally:
            self._ending.set()
            self._tell(signal.SIGKILL)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def reload(self) -> None:
        """Have them read the configuration anew."""
        self._tell(signal.SIGHUP)

    async def _hurry(self, at_once: asyncio.Event) -> None:
        await at_once.wait()
        self._tell(signal.SIGTERM)

    def _tell(self, number: signal.Signals) -> None:
        for process in self._running:
            with suppress(ProcessLookupError):
                process.send_signal(number)

    async def _keep(self, number: int) -> None:
        """Run one of them, again and again; one that dies at once is given more time each time."""
        wait = _FIRST_WAIT
        while True:
            began = time.monotonic()
            status = await self._once(self._sockets[number % len(self._sockets)])
            if self._ending.is_set():
                return
            log_warning(f"worker {number + 1} ended ({_how(status)}); another one starts")
            await asyncio.sleep(wait)
            if self._ending.is_set():
                return
            steady = time.monotonic() - began > _STEADY
            wait = _FIRST_WAIT if steady else min(2 * wait, _LONGEST_WAIT)

    async def _once(self, opened: socket.socket) -> int:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            str(opened.fileno()),
            stdin=asyncio.subprocess.PIPE,
            pass_fds=(opened.fileno(),),
            start_new_session=True,  # Ctrl-C at the terminal reaches this process alone
        )
        self._running.add(process)
        if self._ending.is_set():  # while it was started
            process.terminate()
        try:
            return await process.wait()
        finally:
            self._running.discard(process)


def _how(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"status {status}"
