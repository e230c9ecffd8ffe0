"""A prompt that is there before anything is loaded, and what is typed at it meanwhile.

It looks as the editor's prompt will. A thread shows what is typed while the program is imported,
and keeps every byte; the editor then takes them as if it had read them itself, and draws over the
prompt. What a key means is the editor's business alone. Only three Ctrl-C in a row end the program,
as they would there, in case that loading never ends.

There is one prompt for the program: `begin` starts it, whoever comes first, and `end` leaves the
terminal as it was, whatever has happened. Nothing may be imported here that takes a while.
"""

from __future__ import annotations

import _thread
import os
import select
import sys
import time

from mull.tui.instant.drawing import Drawing
from mull.tui.instant.taken import TakenKeyboard
from mull.tui.instant.typed import Typed
from mull.tui.screen.depth import BACKGROUND_QUERY
from mull.tui.screen.terminal import ATTRIBUTES_QUERY, sift

TYPE_CHECKING = False  # without importing typing, so that the first prompt is fast
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["InstantPrompt", "Piece", "begin", "current", "end"]

_REPLY_WAITS = 0.02
"""Seconds in which a terminal nearby has said which background it has."""
_LOOK = 0.1
"""Seconds between two looks at the size of the window."""
_MOST = 1 << 16
"""Bytes among which the terminal's reply is looked for."""
_PASTES, _NO_PASTES = "\x1b[?2004h", "\x1b[?2004l"
"""Have the terminal mark what is pasted."""
_QUITS = b"\x03\x03\x03"
_INTERRUPTED = 130

Piece = tuple[float, bytes]
"""What was read at once, and when."""

_current: InstantPrompt | None = None


def begin(theme: str = "auto") -> InstantPrompt | None:
    """The prompt of this terminal; None without a terminal, or with one that cannot draw."""
    global _current
    if _current is None and _is_terminal():
        _current = InstantPrompt(sys.stdin.fileno(), sys.stdout.fileno(), theme)
        try:
            _current.open()
        except OSError:  # a terminal that is not ours
            end()
    return _current


def current() -> InstantPrompt | None:
    """The prompt that was begun and has not ended."""
    return _current


def end() -> str:
    """Leave the terminal as it was; returns the text that was typed and has not been taken."""
    global _current
    prompt, _current = _current, None
    return prompt.close() if prompt is not None else ""


def _is_terminal() -> bool:
    if sys.stdin is None or sys.stdout is None or os.environ.get("TERM") == "dumb":
        return False
    try:
        return os.isatty(sys.stdin.fileno()) and os.isatty(sys.stdout.fileno())
    except (OSError, ValueError):  # closed, or not a file
        return False


def _is_utf_8() -> bool:
    encodings = (sys.stdin.encoding, sys.stdout.encoding)
    return all(one.lower().replace("-", "") == "utf8" for one in encodings)


class InstantPrompt:
    """The prompt of one terminal: `open`, then `take` what was typed, and in any case `close`."""

    def __init__(self, keyboard: int, screen: int, theme: str) -> None:
        self._keyboard = keyboard
        self._taken = TakenKeyboard(keyboard, self._restore)
        self._drawing = Drawing(screen, theme if _is_utf_8() else "")
        self._typed = Typed()
        self._pieces: list[Piece] | None = []
        """None once they are taken."""
        self._last = b""
        self._heard = b""
        self._asked = 0.0
        self._lock = _thread.allocate_lock()
        self._is_answered = self._drawing.depth in ("none", "mono")  # then nothing is asked
        self._awaiting = _thread.allocate_lock()
        """Held until the terminal has replied."""
        self._reading = _thread.allocate_lock()
        """Held by the thread."""
        self._wake: tuple[int, int] | None = None
        self.unsent = ""
        """What was typed and taken, but could not be sent."""

    def open(self) -> None:
        """Take the keyboard, and show what is typed from now on."""
        self._awaiting.acquire()
        self._keep(self._taken.take())
        queries = b"" if self._is_answered else BACKGROUND_QUERY + ATTRIBUTES_QUERY
        self._drawing.write(_PASTES + queries.decode())
        self._asked = time.monotonic()
        self._wake = os.pipe()
        self._reading.acquire()
        _thread.start_new_thread(self._read, (self._wake[0],))

    def background(self, patience: float) -> bytes:
        """The terminal's reply about its background, if it comes within so many seconds after the
        query.
        """
        if not self._is_answered:
            self._awaiting.acquire(timeout=max(0.0, self._asked + patience - time.monotonic()))
        return sift(self._heard).background

    def hide(self) -> None:
        """Make room for something else that is written: nothing is drawn any more."""
        with self._lock:
            self._drawing.hide()

    def take(self) -> tuple[Sequence[Piece], str]:
        """Stop reading, and hand over everything that was typed, and the sequence that puts the
        cursor where the prompt begins. The keyboard remains taken.
        """
        self._stop()
        self._typed = Typed()
        pieces, self._pieces = self._pieces, None
        return pieces or (), self._drawing.leave()

    def close(self) -> str:
        """Leave the terminal as it was; returns the text that was typed and has not been taken, or
        not been sent.
        """
        try:
            self._stop()
            self._clear()
        finally:
            self._taken.give_back()
        if self._typed.is_unclear:
            return f"{self._typed.text} …"
        return self._typed.text or self.unsent

    def _restore(self) -> None:
        """Leave the terminal as it was at any moment, whatever the thread is doing."""
        has_lock = self._lock.acquire(timeout=_REPLY_WAITS)
        self._clear()
        self._taken.restore_mode()
        if has_lock:
            self._lock.release()

    def _clear(self) -> None:
        try:
            if self._pieces is not None:
                self._drawing.hide()
                self._drawing.write(_NO_PASTES)
        except OSError:  # the terminal is gone
            pass

    def _quit(self) -> None:
        """End the program from the thread, even if loading never ends."""
        self._clear()
        self._taken.restore_mode()
        os._exit(_INTERRUPTED)

    def _stop(self) -> None:
        if self._wake is not None:
            os.write(self._wake[1], b".")
            self._reading.acquire()
            self._reading.release()
            for end_of_pipe in self._wake:
                os.close(end_of_pipe)
            self._wake = None

    def _read(self, wake: int) -> None:
        """The thread: keep what is typed, and show it."""
        try:
            while True:
                ready = select.select([self._keyboard, wake], [], [], self._pause())[0]
                if wake in ready:
                    break
                piece = os.read(self._keyboard, 4096) if ready else b""
                if ready and not piece:
                    break
                with self._lock:
                    self._keep(piece)
                    if self._is_answered or self._typed.text or time.monotonic() >= self._due:
                        self._drawing.show(self._typed.text, sift(self._heard).background)
        except OSError:  # the terminal is gone: the editor will see
            pass
        finally:
            self._reading.release()

    @property
    def _due(self) -> float:
        """When it is drawn in any case."""
        return self._asked + _REPLY_WAITS

    def _pause(self) -> float:
        """Seconds until something is to be done although nothing was typed."""
        left = self._due - time.monotonic()
        return left if left > 0 and not self._drawing.is_drawn else _LOOK

    def _keep(self, piece: bytes) -> None:
        if not piece or self._pieces is None:
            return
        self._pieces.append((time.monotonic(), piece))
        self._typed.feed(piece)
        if not self._is_answered and len(self._heard) < _MOST:
            self._heard += piece
            self._is_answered = sift(self._heard).is_answered
            if self._is_answered:
                self._awaiting.release()
        self._last = (self._last + piece)[-len(_QUITS) :]
        if self._last == _QUITS:
            self._quit()
