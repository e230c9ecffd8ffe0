"""What a serving process is told from outside: to end, to end at once, to read its files anew."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

__all__ = ["Told"]

_ENDING = ("SIGINT", "SIGTERM", "SIGQUIT", "SIGBREAK")


class Told:
    """Two events: `stop`, and `at_once` for whoever asks a second time.

    SIGHUP has the files read anew, unless it means that the terminal is gone: then it ends, as
    every program does that somebody started there. With `lifeline`, so does the end of standard
    input, which says that the process above is gone. `ready` is called when it can be told.
    """

    def __init__(self, ready: Callable[[], None] = lambda: None, *, lifeline: bool = False) -> None:
        self.stop = asyncio.Event()
        self.at_once = asyncio.Event()
        self._ready = ready
        self._lifeline = lifeline
        self._at_terminal = not lifeline and _has_terminal()

    @contextmanager
    def heard(self, reload: Callable[[], object]) -> Iterator[None]:
        """Listen to signals while the block runs."""
        loop = asyncio.get_running_loop()

        def hang_up() -> None:
            if self._at_terminal and not _has_terminal():
                self.end()
            else:
                reload()

        wanted = dict.fromkeys(_ENDING, self.end) | {"SIGHUP": hang_up}
        taken = []
        for name, act in wanted.items():
            number = getattr(signal, name, None)
            if number is None:
                continue
            try:
                loop.add_signal_handler(number, act)
                taken.append(number)
            except (NotImplementedError, RuntimeError, ValueError):  # Windows, or not our thread
                continue
        if self._lifeline:
            loop.add_reader(0, self._read)
        self._ready()
        try:
            yield
        finally:
            for number in taken:
                loop.remove_signal_handler(number)
            if self._lifeline:
                loop.remove_reader(0)

    def end(self) -> None:
        """End; at once where that was said before."""
        (self.at_once if self.stop.is_set() else self.stop).set()

    def _read(self) -> None:
        with suppress(BlockingIOError):
            if not os.read(0, 1_024):
                asyncio.get_running_loop().remove_reader(0)
                self.stop.set()


def _has_terminal() -> bool:
    """Whether there is a terminal that can still be spoken to."""
    if sys.platform == "win32":
        return False
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
