"""The embedded server's files in its directory, and what each lock means.

    start.lock   held by whoever starts, stops or ends a server: one at a time
    alive.lock   held by the server as long as it lives; whoever can take it knows it is gone
    users.lock   shared by every process that uses the server; whoever gets it alone knows that
                 nobody does. Its time of change is when somebody last asked for the server
    server.json  where the server is and its key; believed only while alive.lock is held
    server.log   what llama.cpp said since the last start

The system drops a lock when its holder dies, however it dies: no process number is trusted
unless alive.lock is held, and nothing has to be cleaned up after a crash.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
from msgspec import Struct

from mull.neutral.errors import LocalError
from mull.store.files import make_parents, read_bytes, remove, write_atomic
from mull.store.locks import FileLock

__all__ = ["Running", "ServerFolder"]


class Running(Struct, frozen=True):
    """A server that runs. `kept` says that it stays when its last user goes."""

    pid: int
    base_url: str
    key: str
    model: str
    started: float
    idle: float
    kept: bool = False

    def __repr__(self) -> str:
        """Without the key."""
        return f"Running(pid={self.pid}, base_url={self.base_url!r}, model={self.model!r})"


class ServerFolder:
    """The directory of one embedded server."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.start_lock = directory / "start.lock"
        self.alive_lock = directory / "alive.lock"
        self.users_lock = directory / "users.lock"
        self.state = directory / "server.json"
        self.log = directory / "server.log"

    def make(self) -> None:
        """Make the directory, for the user only.

        Raises:
            LocalError: it cannot be made.
        """
        try:
            make_parents(self.directory)
        except OSError as error:
            raise LocalError(f"cannot make {self.directory}: {error.strerror}") from None

    def is_alive(self) -> bool:
        """Whether a server process lives, listening already or not."""
        if not self.alive_lock.exists():
            return False
        probe = FileLock(self.alive_lock)
        free = probe.acquire(shared=True, wait=False)
        probe.release()
        return not free

    def read(self) -> Running | None:
        """The server that runs here; what a dead one left behind does not count."""
        if not self.is_alive():
            return None
        try:
            return msgspec.json.decode(read_bytes(self.state) or b"", type=Running)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def write(self, running: Running) -> None:
        """Put the state in place whole; nobody but the user may read it."""
        write_atomic(self.state, msgspec.json.encode(running), mode=0o600)

    def forget(self) -> None:
        """Remove the state."""
        remove(self.state)

    def touch(self) -> None:
        """Note that somebody asked for the server now."""
        os.utime(self.users_lock)

    def last_asked(self) -> float:
        """When somebody last asked for the server."""
        try:
            return self.users_lock.stat().st_mtime
        except FileNotFoundError:
            return 0.0
