"""Starts several worker processes that serve one address, restarts those that die, and ends them
together.

A worker ends on the same signals as a single server. Its standard input is a pipe from this
process, so that it also ends if this process is killed and cannot send a signal.
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
"""Seconds after which a process counts as running steadily."""
_LAST_SECONDS = 10.0


class Supervisor:
    """Keeps `count` processes of a command running. Each receives the file descriptor of its
    socket, which also stays open here: connections waiting in it survive the death of a process."""

    def __init__(
        self, command: Sequence[str], count: int, sockets: Sequence[socket.socket]
    ) -> None:
        self._command = command
        self._count = count
        self._sockets = sockets
        self._running: set[asyncio.subprocess.Process] = set()
        self._ending = asyncio.Event()

    async def run(self, stop: asyncio.Event, at_once: asyncio.Event, grace: float) -> None:
        """Keep the processes running until `stop` is set, then let them finish: for at most `grace`
        seconds, or until `at_once` is set."""
        tasks = [asyncio.create_task(self._keep(number)) for number in range(self._count)]
        try:
            await stop.wait()
            self._ending.set()
            for one in self._sockets:  # new connections are refused at once and do not wait
                one.close()
            self._signal(signal.SIGTERM)
            hurry = asyncio.create_task(self._hurry(at_once))
            await asyncio.wait(tasks, timeout=grace + _LAST_SECONDS)
            hurry.cancel()
        finally:
            self._ending.set()
            self._signal(signal.SIGKILL)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def reload(self) -> None:
        """Make the processes reload the configuration."""
        self._signal(signal.SIGHUP)

    async def _hurry(self, at_once: asyncio.Event) -> None:
        await at_once.wait()
        self._signal(signal.SIGTERM)

    def _signal(self, number: signal.Signals) -> None:
        for process in self._running:
            with suppress(ProcessLookupError):
                process.send_signal(number)

    async def _keep(self, number: int) -> None:
        """Run one process and restart it whenever it ends; the delay doubles each time it ends
        early."""
        wait = _FIRST_WAIT
        while True:
            began = time.monotonic()
            status = await self._once(self._sockets[number % len(self._sockets)])
            if self._ending.is_set():
                return
            log_warning(f"worker {number + 1} ended ({_how(status)}); restarting it")
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
            start_new_session=True,  # Ctrl-C at the terminal reaches only this process
        )
        self._running.add(process)
        if self._ending.is_set():  # set while it was starting
            process.terminate()
        try:
            return await process.wait()
        finally:
            self._running.discard(process)


def _how(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"status {status}"
