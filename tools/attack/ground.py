"""Where attacks take place: homes that nobody lives in, and servers that do what they are told.

mull runs as a process of its own, with limits on memory and time. Nothing here judges: a trial
that says nothing held, and one that says something broke.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Self, TypeAlias

from mull.dialects.registry import DIALECTS
from mull.dialects.serving import answer_writer
from mull.neutral.events import Event, Finished, TextDelta, ThinkingDelta, ToolCallDelta
from mull.neutral.messages import Dialect

__all__ = [
    "ATTACKS",
    "KEY",
    "MOST_KEPT",
    "Attack",
    "Home",
    "Play",
    "Ran",
    "Server",
    "Trial",
    "attack",
    "calling",
    "chunked",
    "crash_of",
    "good",
    "home",
    "saying",
]

KEY = "canary-key-0123456789abcdef"
PATIENCE = 60
"""Seconds after which a command that has not ended counts as hung."""
_MOST_MEMORY = 3 << 30
MOST_KEPT = 700 << 20
"""Bytes of memory that a command may take, whatever it is sent."""

Trial: TypeAlias = tuple[str, str | None]
"""What was tried, and why it broke; None where it held."""


class Attack(NamedTuple):
    """One way to attack, tried in several forms."""

    kind: str
    name: str
    run: Callable[[], Iterator[Trial]]


ATTACKS: list[Attack] = []
"""All attacks, in the order of the table."""


def attack(kind: str, name: str) -> Callable[[Callable[[], Iterator[Trial]]], None]:
    """Put a function that yields trials into the table."""

    def add(run: Callable[[], Iterator[Trial]]) -> None:
        ATTACKS.append(Attack(kind, name, run))

    return add


class Ran(NamedTuple):
    """A command that has ended; `status` is None where it had to be killed."""

    status: int | None
    out: str
    err: str
    memory: int
    seconds: float

    @property
    def said(self) -> str:
        """All that it said."""
        return self.out + self.err


def crash_of(ran: Ran, *wanted: int) -> str | None:
    """Why a command did not end as a program should; `wanted` are the statuses that will do."""
    if ran.status is None:
        return f"it hung for {ran.seconds:.0f} s"
    if "Traceback (most recent call last)" in ran.said or "mistake in mull" in ran.said:
        return f"a traceback: {ran.said.strip().splitlines()[-1][:120]}"
    if ran.memory > MOST_KEPT:
        return f"{ran.memory >> 20} MB of memory"
    if wanted and ran.status not in wanted:
        return f"exit status {ran.status}: {ran.err.strip()[-120:]}"
    return None


class Home:
    """A home and a working folder that go when the trial is over."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.config, self.data, self.folder = top / "config", top / "data", top / "work"
        self.config.mkdir()
        self.folder.mkdir()

    @property
    def environment(self) -> dict[str, str]:
        """What commands are given: no variable of the person who runs this."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.top),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "MULL_CONFIG_DIR": str(self.config),
            "MULL_DATA_DIR": str(self.data),
            "EVIL_API_KEY": KEY,
            "PYTHONPATH": os.pathsep.join(sys.path),
        }

    def mull(
        self,
        *words: str,
        stdin: bytes | None = None,
        more: Mapping[str, str] | None = None,
        patience: float = PATIENCE,
        umask: int = 0o022,
    ) -> Ran:
        """Run a command and wait for its end, killing it when patience is over."""
        with (
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
            tempfile.TemporaryFile() as end,
        ):
            process = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", "-c", _LAUNCHER),
                    *(str(end.fileno()), str(_MOST_MEMORY)),
                    *(sys.executable, "-m", "mull", *words),
                ],
                cwd=self.folder,
                env={**self.environment, **(more or {})},
                stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
                stdout=out,
                stderr=err,
                umask=umask,
                process_group=0,
                pass_fds=(end.fileno(),),
            )
            began = time.monotonic()
            if process.stdin is not None:
                with suppress(BrokenPipeError):
                    process.stdin.write(stdin or b"")
                    process.stdin.close()
            hung = _wait(process, patience)
            end.seek(0)
            status, memory = map(int, end.read().split() or (-signal.SIGKILL, 0))
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read(20 << 20).decode("utf-8", "replace"))
            took = time.monotonic() - began
            return Ran(None if hung else status, texts[0], texts[1], memory * 1024, took)

    def ask(self, dialect: Dialect, url: str, *words: str, **more: str) -> Ran:
        """Ask a question of an endpoint that speaks a dialect."""
        self.configure(dialect, url)
        return self.mull("ask", "-m", f"evil-{dialect}/m", *(words or ("q",)), more=more)

    def configure(self, dialect: Dialect, url: str, rest: str = "") -> None:
        """Write a config.toml that names the endpoint."""
        (self.config / "config.toml").write_text(
            f'[providers.evil-{dialect}]\nbase_url = "{url}"\nkey_env = "EVIL_API_KEY"\n'
            f'dialect = "{dialect}"\n{rest}',
            encoding="utf-8",
        )


# A process keeps the peak of the one it was forked from, through its exec: started straight from
# a large one it would seem as large. So a small one starts it, and writes down how it ended.
_LAUNCHER = """
import os, resource, sys
end, most, *command = sys.argv[1:]
child = os.fork()
if not child:
    resource.setrlimit(resource.RLIMIT_AS, (int(most), int(most)))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.execv(command[0], command)
_, status, usage = os.wait4(child, 0)
os.write(int(end), b"%d %d" % (os.waitstatus_to_exitcode(status), usage.ru_maxrss))
"""


def _wait(process: subprocess.Popen[bytes], patience: float) -> bool:
    """Wait for the end of a launcher and of what it launched; whether both had to be killed."""
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True
    return False


@contextmanager
def home() -> Iterator[Home]:
    """A home for one trial."""
    top = Path(tempfile.mkdtemp(prefix="mull-attack-"))
    try:
        yield Home(top)
    finally:
        shutil.rmtree(top, ignore_errors=True)


Play: TypeAlias = Callable[[socket.socket, int], None]
"""What a server does with a connection, once its request was read; the number counts requests."""


def _unknown(connection: socket.socket, number: int) -> None:
    connection.sendall(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


class Server:
    """A server on loopback that answers every request as `play` does; bytes are sent as they are.

    `requests` are those for answers. mull looks first what a server of one's own offers: that is
    answered as `looked` does, and not counted.
    """

    def __init__(self, play: Play, looked: Play = _unknown) -> None:
        self._play, self._looked = play, looked
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        self.requests: list[bytes] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def _converse(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            request = _read_request(connection)
            if request.startswith(b"GET "):
                self._looked(connection, 0)
            elif request:
                self.requests.append(request)
                self._play(connection, len(self.requests))

    @property
    def bodies(self) -> list[bytes]:
        """The bodies of the requests."""
        return [request.partition(b"\r\n\r\n")[2] for request in self.requests]


def _read_request(connection: socket.socket) -> bytes:
    data = b""
    connection.settimeout(PATIENCE)
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    while len(body) < length:
        piece = connection.recv(65536)
        if not piece:
            break
        body += piece
        data += piece
    return data


_HEAD = b"HTTP/1.1 %d X\r\nContent-Type: %s\r\n"
_TYPES = {"bedrock-converse": b"application/vnd.amazon.eventstream"}


def head(dialect: Dialect, status: int = 200, more: bytes = b"Connection: close\r\n") -> bytes:
    """The head of an answer that lasts until the connection is closed."""
    return _HEAD % (status, _TYPES.get(dialect, b"text/event-stream")) + more + b"\r\n"


def chunked(*pieces: bytes) -> bytes:
    """The pieces as chunks, without an end."""
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)


def frames(dialect: Dialect, *events: Event) -> list[bytes]:
    """The events as the dialect's stream, in pieces."""
    writer = answer_writer(dialect)
    return [piece for piece in (*map(writer.feed, events), writer.close()) if piece]


def good(dialect: Dialect) -> list[bytes]:
    """A whole answer: a thought, a text, the end."""
    return frames(dialect, ThinkingDelta("hmm", 0), TextDelta("fine", 1), Finished("stop"))


def saying(dialect: Dialect, *events: Event, finish: str = "stop") -> Play:
    """An endpoint that gives this answer and closes."""
    body = b"".join(frames(dialect, *events, Finished(finish)))

    def play(connection: socket.socket, number: int) -> None:
        connection.sendall(head(dialect) + body)

    return play


def calling(dialect: Dialect, calls: Sequence[tuple[str, str]], then: str = "done") -> Play:
    """An endpoint that makes these calls first, and says something afterwards."""
    deltas = [
        ToolCallDelta(number, f"call_{number}", name, arguments)
        for number, (name, arguments) in enumerate(calls)
    ]
    first = saying(dialect, *deltas, finish="tool_calls")
    later = saying(dialect, TextDelta(then, 0))

    def play(connection: socket.socket, number: int) -> None:
        (first if number == 1 else later)(connection, number)

    return play


def all_dialects() -> Sequence[Dialect]:
    """Dialects in the order of the registry; Bedrock signs its requests and needs other keys."""
    return [dialect for dialect in DIALECTS if dialect != "bedrock-converse"]
