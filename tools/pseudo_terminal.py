"""A program at a terminal of its own, as a person has one: keys go in, what it writes comes out.

The terminal answers what programs ask of terminals: its colours, its kind, where its cursor is. It
has no screen: whoever wants one feeds it what `read` gives.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from resource import struct_rusage
from typing import Self

__all__ = ["PseudoTerminal", "Timeout"]

_QUESTIONS = re.compile(
    rb"\x1b\](?P<colour>1[01]);\?(?:\x1b\\|\x07)|\x1b\[(?P<kind>0?c)|\x1b\[(?P<cursor>6n)"
)
_PER_SECOND = 100
"""Pieces that a slow line brings in a second."""
_UNFINISHED = 16
"""Bytes that a question may be cut at the end of what is read."""


class Timeout(Exception):
    """What was waited for did not come."""


class PseudoTerminal:
    """One process with a terminal of `size` columns and rows.

    `colours` are its text and its background, as `rrggbb`. `seen` is called with everything that is
    written, as it comes. `cursor` says in which row and column the cursor is, counted from 1; in a
    terminal that has been used a while that is the last row. `rate` is how many bytes a second are
    taken off the line, None for all that there are.
    """

    def __init__(  # noqa: PLR0913 - keywords, most of them optional
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: Path,
        size: tuple[int, int] = (100, 32),
        colours: tuple[str, str] = ("cdd6f4", "1e1e2e"),
        seen: Callable[[bytes], None] = lambda _: None,
        cursor: Callable[[], tuple[int, int]] | None = None,
        rate: int | None = None,
    ) -> None:
        columns, rows = size
        self._colours = {b"10": colours[0], b"11": colours[1]}
        self._seen = seen
        self._cursor = cursor or (lambda: (rows, 1))
        self._asked = b""
        self._rate, self._free_at = rate, 0.0
        self.started = time.perf_counter()
        with warnings.catch_warnings():  # from 3.12 on about threads: the child runs a program
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid, self._end = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(folder)
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
                os.execvpe(command[0], list(command), dict(environment))
            finally:
                os._exit(127)

    def press(self, keys: str) -> None:
        """Press keys."""
        os.write(self._end, keys.encode())

    def read(self, seconds: float) -> bytes:
        """What is written next, waiting at most so long; nothing if nothing comes or it ended."""
        until, most = time.perf_counter() + seconds, 65536
        if self._rate is not None:
            most = max(1, self._rate // _PER_SECOND)
            time.sleep(max(0.0, min(self._free_at, until) - time.perf_counter()))
            if self._free_at > until:
                return b""
        left = max(0.0, until - time.perf_counter())
        if not select.select([self._end], [], [], left)[0]:
            return b""
        try:
            piece = os.read(self._end, most)
        except OSError:  # the other side is gone
            return b""
        if self._rate is not None:
            self._free_at = max(self._free_at, time.perf_counter()) + len(piece) / self._rate
        self._seen(piece)
        self._answer(piece)
        return piece

    def read_until(self, reached: Callable[[bytes], object], seconds: float = 30) -> bytes:
        """Read until what was written since the call holds what is looked for.

        Raises:
            Timeout: it does not come in time.
        """
        heard, until = b"", time.perf_counter() + seconds
        while not reached(heard):
            left = until - time.perf_counter()
            if left <= 0:
                raise Timeout(heard[-4000:].decode())
            heard += self.read(min(left, 0.05))
        return heard

    def rest(self, seconds: float) -> bytes:
        """Read for so long."""
        heard, until = b"", time.perf_counter() + seconds
        while (left := until - time.perf_counter()) > 0:
            heard += self.read(left)
        return heard

    def kill(self) -> struct_rusage:
        """End it, and say what it used."""
        os.kill(self.pid, signal.SIGKILL)
        _, _, usage = os.wait4(self.pid, 0)
        os.close(self._end)
        self.pid = 0
        return usage

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.pid:
            self.kill()

    def _answer(self, piece: bytes) -> None:
        asked = self._asked + piece
        end = 0
        for question in _QUESTIONS.finditer(asked):
            end = question.end()
            os.write(self._end, self._reply(question))
        self._asked = asked[max(end, len(asked) - _UNFINISHED) :]

    def _reply(self, question: re.Match[bytes]) -> bytes:
        if colour := question["colour"]:
            red, green, blue = re.findall("..", self._colours[colour])
            return f"\x1b]{colour.decode()};rgb:{red * 2}/{green * 2}/{blue * 2}\x1b\\".encode()
        if question["kind"]:
            return b"\x1b[?62;22c"
        return b"\x1b[%d;%dR" % self._cursor()
