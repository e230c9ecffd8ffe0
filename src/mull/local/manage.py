"""The user's side of the embedded server: there is one, or there is none, for all processes.

`ensure` starts it on first use and ties it to this process: when the last process that asked for
it is gone, however it went, the server goes. `start` keeps it until it was idle for long enough.
Call `ensure` before every request: it costs a fraction of a millisecond, and a server that ended
in the meantime comes back, at another address and with another key.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from mull.local.life import READY
from mull.local.metrics import Metrics, read_metrics
from mull.local.place import Running, ServerFolder
from mull.local.spawn import PIPE, last_line, spawn
from mull.local.weights import require
from mull.neutral.errors import LocalError
from mull.store.locks import FileLock

__all__ = ["IDLE_SECONDS", "Embedded", "Options", "Status", "embedded", "ensure"]

IDLE_SECONDS = 600.0
_START_SECONDS = 60.0
_POLL_SECONDS = 0.05


class Options(Struct, frozen=True):
    """How a server is started."""

    threads: int = 1
    idle: float = IDLE_SECONDS
    kept: bool = False


class Status(Struct, frozen=True):
    """What is known of the server that runs."""

    pid: int
    """The id of its process."""
    base_url: str
    """The address that requests go to."""
    port: int | None
    """The port of that address; None if it has none."""
    model: str
    """The name of the model that it serves."""
    kept: bool
    """Whether it stays when the last process that uses it ends."""
    uptime: float
    """The seconds since it was started."""
    idle: float
    """The seconds without a request after which it ends."""
    memory: int | None
    """The bytes of memory that it uses; None if unknown."""
    tokens_read: int | None
    """The input tokens that it has processed; None if it does not answer."""
    tokens_written: int | None
    """The output tokens that it has produced; None if it does not answer."""
    busy: bool | None
    """Whether it is processing a request; None if it does not answer."""


def server_command(directory: Path, options: Options) -> list[str]:
    """The command of the real server.

    Raises:
        LocalError: it is not installed.
    """
    require()
    # -P: a directory of the user's that happens to be called mull must not be imported
    command = [sys.executable, "-P", "-m", "mull.local.server", str(directory), str(PIPE)]
    command += ["--idle", str(options.idle), "--threads", str(options.threads)]
    return [*command, "--kept"] if options.kept else command


class Embedded:
    """The embedded server of one directory, as this process sees it."""

    def __init__(
        self,
        directory: Path,
        command: Callable[[Path, Options], Sequence[str]] = server_command,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._place = ServerFolder(directory)
        self._command = command
        self._clock = clock
        self._mutex = threading.Lock()
        self._lease = FileLock(self._place.users_lock)
        self._children: list[int] = []

    def ensure(self) -> Running:
        """The server, started if there is none; it lives at least as long as this process.

        Raises:
            LocalError: it is not installed, or it does not start.
        """
        with self._alone():
            if not self._lease.is_held:
                self._lease.acquire(shared=True)
            self._place.touch()
            return self._find() or self._spawn(Options())

    def start(self, threads: int = 1, idle: float = IDLE_SECONDS) -> tuple[Running, bool]:
        """The server, kept beyond this process, and whether it had to be started.

        Raises:
            LocalError: it is not installed, or it does not start.
        """
        with self._alone():
            if running := self._find():
                kept = replace(running, kept=True)
                self._place.write(kept)
                return kept, False
            return self._spawn(Options(threads, idle, kept=True)), True

    def stop(self) -> bool:
        """End the server, whoever uses it; False if there was none."""
        with self._alone():
            running = self._find()
            if running is not None:
                os.kill(running.pid, signal.SIGKILL)  # it has nothing to save
                with FileLock(self._place.alive_lock):
                    self._place.forget()
                self._reap(running.pid)
            return running is not None

    def status(self) -> Status | None:
        """What is known of the server, or None if none runs."""
        running = self._place.read()
        if running is None:
            return None
        metrics = _ask_metrics(running)
        return Status(
            pid=running.pid,
            base_url=running.base_url,
            port=urlsplit(running.base_url).port,
            model=running.model,
            kept=running.kept,
            uptime=max(self._clock() - running.started, 0.0),
            idle=running.idle,
            memory=_memory(running.pid),
            tokens_read=metrics.read if metrics else None,
            tokens_written=metrics.written if metrics else None,
            busy=metrics.busy if metrics else None,
        )

    def close(self) -> None:
        """Use it no longer."""
        with self._mutex:
            self._lease.release()
            self._reap()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        with self._mutex:
            self._place.make()
            with FileLock(self._place.start_lock):
                yield

    def _find(self) -> Running | None:
        """The server that runs.

        A server may still be loading although its starter has died: wait for it. A killed server
        may hold its lock a little longer than its port: wait until it is gone.
        """
        until = time.monotonic() + _START_SECONDS
        while self._place.is_alive():
            if (running := self._place.read()) and _listens(running):
                return running
            if time.monotonic() > until:
                raise LocalError(
                    f"the embedded model does not get ready; see {self._place.log}, "
                    "and end its process by hand"
                )
            time.sleep(_POLL_SECONDS)
        return None

    def _spawn(self, options: Options) -> Running:
        self._reap()
        command = self._command(self._place.directory, options)
        self._place.forget()
        child, words = spawn(command, self._place.log, _START_SECONDS)
        self._children.append(child)
        running = self._place.read() if words == READY else None
        if running is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            self._reap(child)
            raise LocalError(
                f"the embedded model did not start: {words or last_line(self._place.log)}.\n"
                f"More may be in {self._place.log}"
            )
        return running

    def _reap(self, ending: int | None = None) -> None:
        """Let go of children that ended, and of one that is ending as soon as it has."""
        for child in tuple(self._children):
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(child, 0 if child == ending else os.WNOHANG)[0] == 0:
                    continue
            self._children.remove(child)


@cache
def embedded(directory: Path) -> Embedded:
    """The embedded server of a directory; one object per process, so one lease."""
    return Embedded(directory)


def ensure(directory: Path) -> Running:
    """The server's `base_url` and `key`, started if there is none.

    Raises:
        LocalError: it is not installed, or it does not start.
    """
    return embedded(directory).ensure()


def _connection(running: Running) -> http.client.HTTPConnection:
    address = urlsplit(running.base_url)
    return http.client.HTTPConnection(address.hostname or "", address.port, timeout=2)


def _listens(running: Running) -> bool:
    """Whether somebody takes connections there; a server that is slow to does."""
    connection = _connection(running)
    try:
        connection.connect()
    except ConnectionRefusedError:
        return False
    except OSError:
        return True
    finally:
        connection.close()
    return True


def _ask_metrics(running: Running) -> Metrics | None:
    connection = _connection(running)
    try:
        connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {running.key}"})
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
        return read_metrics(text) if answer.status == 200 else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _memory(pid: int) -> int | None:
    """The bytes of memory that a process holds."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        pass
    asked = ["ps", "-o", "rss=", "-p", str(pid)]
    try:
        told = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return None
    return int(told) * 1024 if told.isdigit() else None
