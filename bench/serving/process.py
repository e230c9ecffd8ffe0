"""A process that is measured: its CPU time and its memory, with those of its children."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_PATIENCE = 120.0
_MB = 1024


class Measured:
    """A server in a process of its own, as Linux sees it."""

    def __init__(self, command: Sequence[str], port: int, env: Mapping[str, str]) -> None:
        self.port = port
        self._process = subprocess.Popen(
            command,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._await()

    def _await(self) -> None:
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 0.2).close()
                return
            except OSError:
                time.sleep(0.05)
        self.end()
        raise RuntimeError("the server did not start")

    def _all(self) -> list[Path]:
        found = [Path(f"/proc/{self._process.pid}")]
        for one in found:
            listed = one / "task" / one.name / "children"
            found += [Path(f"/proc/{pid}") for pid in _text(listed).split()]
        return found

    @property
    def cpu(self) -> float:
        """Seconds on a core, of all its threads that still run."""
        tasks = [task for one in self._all() for task in (one / "task").iterdir()]
        spent = (_text(task / "schedstat").split() for task in tasks)
        return sum(int(words[0]) for words in spent if words) / 1e9

    @property
    def megabytes(self) -> float:
        """Memory that it holds."""
        lines = (line for one in self._all() for line in _text(one / "status").splitlines())
        held = (int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
        return sum(held) / _MB

    def end(self) -> None:
        """End it."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        port: int = one.getsockname()[1]
        return port


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # it ended meanwhile
        return ""
