"""The keyboard, taken as the editor will take it, and given back whatever happens."""

from __future__ import annotations

import fcntl
import os
import sys
import termios

TYPE_CHECKING = False  # without importing typing, so that the first prompt is fast
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable
    from typing import Any
else:
    import _signal  # signal itself takes half as long as starting Python

__all__ = ["TakenKeyboard"]

_ENDING = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT)
_USUAL = (_signal.SIG_DFL, _signal.default_int_handler)


class TakenKeyboard:
    """A terminal's keys, byte by byte, none of them shown by the system.

    A signal that would end the program does, after `restore`. It raises no exception: that would
    come wherever importing has got to, even inside code that does not expect one.
    """

    def __init__(self, keyboard: int, restore: Callable[[], None]) -> None:
        self._keyboard = keyboard
        self._restore = restore
        self._is_ending = False
        self._mode: list[Any] | None = None
        self._handlers: dict[int, Any] = {}

    def take(self) -> bytes:
        """Take the keys; returns those that were pressed before."""
        for number in _ENDING:
            if _signal.getsignal(number) in _USUAL:
                self._handlers[number] = _signal.signal(number, self._end)
        try:
            self._take()
        except termios.error as error:
            raise OSError(*error.args) from error
        return self._pressed_before()

    def _take(self) -> None:
        self._mode = termios.tcgetattr(self._keyboard)
        mode = termios.tcgetattr(self._keyboard)
        mode[0] &= ~(termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR)
        mode[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._keyboard, termios.TCSANOW, mode)

    def _end(self, number: int, _: object) -> None:
        if self._is_ending:
            return
        self._is_ending = True
        self._restore()
        _signal.signal(number, _signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def give_back(self) -> None:
        """Leave the terminal's mode and the signals as they were."""
        self.restore_mode()
        for number, handler in tuple(self._handlers.items()):
            if _signal.getsignal(number) == self._end:  # not another's by now
                _signal.signal(number, handler)
                del self._handlers[number]

    def restore_mode(self) -> None:
        """Leave the terminal's mode as it was."""
        if self._mode is not None:
            try:  # noqa: SIM105 - contextlib takes a while
                termios.tcsetattr(self._keyboard, termios.TCSADRAIN, self._mode)
            except termios.error:  # it is gone
                pass
            self._mode = None

    def _pressed_before(self) -> bytes:
        """The system has read them as a line, in which Enter and Ctrl-D are other bytes."""
        told = fcntl.ioctl(self._keyboard, termios.FIONREAD, bytes(4))
        size = int.from_bytes(told, sys.byteorder)
        line = os.read(self._keyboard, size) if size else b""
        return line.replace(b"\n", b"\r").replace(b"\0", b"\x04")
