"""Commands that keep running while the model does other things: a development server, a long build.

Each is a session of processes with a thread that reads its output into a file. They need no event
loop, so they keep running between turns. They end when told to, and with mull.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from mull.agent.processes import members, signal_all
from mull.agent.tools.aside import Aside
from mull.agent.tools.output import fitted
from mull.agent.tools.printed import Printed
from mull.agent.tools.shown import plural, shown_name
from mull.agent.tools.tool import ToolFailure
from mull.neutral.blocks import Value

__all__ = ["Job", "JobStatus", "Jobs"]

_MOST_RUNNING = 16
_LARGEST = 32 << 20
_CHUNK = 1 << 16
_GRACE = 2.0
_LOOK = 0.02


class JobStatus(Value, frozen=True):
    """A background command, for listings. `status` is None while it runs."""

    id: int
    command: str
    started: float
    status: int | None = None

    @property
    def is_running(self) -> bool:
        """Whether it still runs."""
        return self.status is None


class Job:
    """One command; `look` returns what it has printed since the last look."""

    path: Path

    def __init__(
        self,
        number: int,
        command: str,
        process: subprocess.Popen[bytes],
        aside: Aside,
        on_end: Callable[[], None],
    ) -> None:
        self.id = number
        self.command = command
        self.started: float = time.time()
        self.ended: threading.Event = threading.Event()
        self._process = process
        self._on_end = on_end
        self._file, self.path = aside.open("job", for_good=True)
        self._printed = Printed()
        self._size = 0
        self._lost = 0
        self._seen = 0
        self._writing = threading.Lock()
        threading.Thread(target=self._read, name=f"job {number}", daemon=True).start()

    @property
    def status(self) -> JobStatus:
        """Its state."""
        ended = self._process.returncode if self.ended.is_set() else None
        return JobStatus(self.id, self.command, self.started, ended)

    def look(self, room: int) -> str:
        """The new output, within the available room."""
        with self._writing:
            with open(self.path, "rb") as file:
                file.seek(self._seen)
                new = file.read()
            self._seen = self._size
            text = new.decode("utf-8", "replace") + self._printed.unfinished
            lost = self._lost
        short = fitted(text, room)
        notes = []
        if short != text:
            notes.append(f"[full output: read path={shown_name(self.path)}]")
        if lost:
            notes.append(f"[{plural(lost, 'byte')} more were printed but not kept]")
        return "\n".join([*([short.rstrip("\n")] if short.strip() else []), *notes])

    def end(self) -> None:
        """End all its processes, gracefully at first."""
        end_all([self])

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal to every process of the job; returns whether there were any."""
        return signal_all(self._process.pid, number)

    @property
    def is_gone(self) -> bool:
        """Whether none of its processes is left."""
        return self._process.poll() is not None and not members(self._process.pid)

    def _read(self) -> None:
        """Read its output until nothing can write any more."""
        pipe = self._process.stdout
        assert pipe is not None
        with pipe:
            while data := os.read(pipe.fileno(), _CHUNK):
                self._write(partial(self._printed.feed, data))
        self._write(self._printed.close)
        self._process.wait()
        os.close(self._file)
        self._on_end()
        self.ended.set()

    def _write(self, take: Callable[[], str]) -> None:
        with self._writing:
            data = take().encode("utf-8", "replace")
            kept = data[: max(0, _LARGEST - self._size)]
            written = 0
            # If the disk is full, the command must not stop because of that.
            with contextlib.suppress(OSError):
                written = os.write(self._file, kept)
            self._size += written
            self._lost += len(data) - written


class Jobs:
    """The background commands of one workspace."""

    def __init__(self, aside: Aside) -> None:
        self._aside = aside
        self._jobs: dict[int, Job] = {}
        self._numbers = itertools.count(1)

    def start(
        self,
        arguments: Sequence[str],
        command: str,
        folder: Path,
        environment: Mapping[str, str],
        *,
        passed: Sequence[int] = (),
        on_end: Callable[[], None] = lambda: None,
    ) -> Job:
        """Start one, with the descriptors `passed`; `on_end` is called in a thread of its own.

        Raises:
            ToolFailure: too many are running.
            OSError: it cannot be started.
        """
        if sum(one.is_running for one in self.statuses) >= _MOST_RUNNING:
            raise ToolFailure(
                f"{_MOST_RUNNING} commands are running in the background: end one with jobs"
            )
        process = subprocess.Popen(
            list(arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=dict(environment),
            start_new_session=True,
            pass_fds=passed,
        )
        number = next(self._numbers)
        self._jobs[number] = Job(number, command, process, self._aside, on_end)
        return self._jobs[number]

    def find(self, number: int) -> Job:
        """The job with this number.

        Raises:
            ToolFailure: there is none.
        """
        if number not in self._jobs:
            known = ", ".join(map(str, self._jobs)) or "none was started"
            raise ToolFailure(f"there is no background command {number}: {known}")
        return self._jobs[number]

    @property
    def statuses(self) -> tuple[JobStatus, ...]:
        """All of them, including those that have ended."""
        return tuple(job.status for job in list(self._jobs.values()))

    def end(self) -> None:
        """End all that run."""
        end_all([job for job in list(self._jobs.values()) if not job.is_gone])


def end_all(jobs: Sequence[Job]) -> None:
    """End them all at once, gracefully at first."""
    for job in jobs:
        job.signal(signal.SIGTERM)
    _wait_until(lambda: all(job.is_gone for job in jobs), _GRACE)
    for job in jobs:
        if not job.is_gone:
            job.signal(signal.SIGKILL)
    _wait_until(lambda: all(job.ended.is_set() for job in jobs), _GRACE)


def _wait_until(done: Callable[[], bool], seconds: float) -> None:
    last = time.monotonic() + seconds
    while not done() and time.monotonic() < last:
        time.sleep(_LOOK)
