"""Signals to a serving process: to stop, to stop immediately, or to reload its files."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

__all__ = ["Signals"]

_ENDING = ("SIGINT", "SIGTERM", "SIGQUIT", "SIGBREAK")


class Signals:
    """Two events: `stop`, set by the first signal to stop, and `at_once`, set by the second.

    SIGHUP reloads the files, unless it means that the terminal was closed: then the process stops,
    as any program started from that terminal does. With `lifeline`, the end of standard input also
    stops it, because the parent process is gone. `ready` is called once signals are handled.
    """

    def __init__(self, ready: Callable[[], None] = lambda: None, *, lifeline: bool = False) -> None:
        self.stop: asyncio.Event = asyncio.Event()
        self.at_once: asyncio.Event = asyncio.Event()
        self._ready = ready
        self._lifeline = lifeline
        self._at_terminal = not lifeline and _has_terminal()

    @contextmanager
    def handled(self, reload: Callable[[], object]) -> Iterator[None]:
        """Handle signals while the block runs; `reload` is called on SIGHUP."""
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
        """Stop; immediately, if a stop was already requested."""
        (self.at_once if self.stop.is_set() else self.stop).set()

    def _read(self) -> None:
        with suppress(BlockingIOError):
            if not os.read(0, 1_024):
                asyncio.get_running_loop().remove_reader(0)
                self.stop.set()


def _has_terminal() -> bool:
    """Whether the process has a terminal that is still open."""
    if sys.platform == "win32":
        return False
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
