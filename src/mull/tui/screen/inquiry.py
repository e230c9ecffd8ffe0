"""Asks the terminal for its background on behalf of a program that reads no keys.

Keys pressed meanwhile belong to the next program, so they are put back. If the system does not
allow that, if keys were already pressed, or if the terminal is not ours, nothing is asked. A late
reply is awaited with the keyboard's echo off, so it is neither visible nor left for the next
program to read.
"""

from __future__ import annotations

import atexit
import errno
import os
import time
from contextlib import suppress
from typing import Any

from mull.tui.screen import terminal
from mull.tui.screen.terminal import ATTRIBUTES_QUERY, listen, sift

__all__ = ["Inquiry"]

LONGEST = 0.6
"""Seconds to wait for a reply."""


class Inquiry:
    """One query to the terminal that `screen` writes to."""

    def __init__(self, query: bytes, screen: int) -> None:
        import termios

        self._heard = b""
        self._keyboard: int | None = None
        self._mode: list[Any] = []
        self._asked = 0.0
        with suppress(OSError, termios.error):  # a terminal that is not ours, or does not exist
            self._ask(query, screen)

    def answer(self) -> bytes:
        """The terminal's reply about its background; empty if it takes too long."""
        if self._keyboard is not None:
            self._heard = listen(self._keyboard, self._asked + terminal.PATIENCE, self._heard)
            if sift(self._heard).is_answered:
                self.close()
        return sift(self._heard).background

    def close(self) -> None:
        """Leave the terminal as it was, including what was typed."""
        import termios

        keyboard, self._keyboard = self._keyboard, None
        if keyboard is None:
            return
        atexit.unregister(self.close)
        with suppress(OSError, termios.error):  # it may be gone by now
            if _is_ours(keyboard):  # the program that put us into the background has its own mode
                self._heard = listen(keyboard, self._asked + LONGEST, self._heard)
                termios.tcsetattr(keyboard, termios.TCSADRAIN, self._mode)
                _put_back(keyboard, sift(self._heard).typed)
        os.close(keyboard)

    def _ask(self, query: bytes, screen: int) -> None:
        import termios
        import tty

        if not _is_ours(screen):
            return
        keyboard = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            if not _can_put_back(keyboard):
                return
            self._mode = termios.tcgetattr(keyboard)
            tty.setcbreak(keyboard, termios.TCSADRAIN)
            if _something_typed(keyboard):
                termios.tcsetattr(keyboard, termios.TCSADRAIN, self._mode)
                return
            self._keyboard, self._asked = keyboard, time.monotonic()
            atexit.register(self.close)  # in any case: a terminal without echo is unusable
            os.write(screen, query + ATTRIBUTES_QUERY)
        finally:
            if self._keyboard is None:
                os.close(keyboard)


def _is_ours(terminal: int) -> bool:
    """Whether we get its keys: it is our controlling terminal, and we are in the foreground."""
    return os.tcgetpgrp(terminal) == os.getpgrp()


def _something_typed(keyboard: int) -> bool:
    import select

    return bool(select.select([keyboard], [], [], 0)[0])


def _can_put_back(keyboard: int) -> bool:
    """Whether the system would accept a key from us: called without one, its error says so."""
    import fcntl
    import termios

    try:
        fcntl.ioctl(keyboard, termios.TIOCSTI, 0)
    except OSError as error:
        return error.errno == errno.EFAULT
    return False


def _put_back(keyboard: int, typed: bytes) -> None:
    import fcntl
    import termios

    for key in typed:
        fcntl.ioctl(keyboard, termios.TIOCSTI, bytes([key]))
