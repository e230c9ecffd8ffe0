"""Signals to the terminal beside its content: the window title, alerts, and the clipboard."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from typing import TYPE_CHECKING

from mull.tui.text.safe import one_line

if TYPE_CHECKING:
    from prompt_toolkit.output import Output

__all__ = ["LONGEST_COPY", "Signs"]

LONGEST_COPY = 74_994
"""Bytes that xterm and tmux still accept."""
_SAVE_TITLE, _RESTORE_TITLE = "\x1b[22;2t", "\x1b[23;2t"
_LONGEST_TITLE = 80
_AWAY = 10.0
"""Seconds after which a question seems to be unseen."""
_TOUCHED = 3.0
"""Seconds after a keypress during which the user counts as present."""


class Signs:
    """Sends the signals. `title` is the window title, empty to leave it alone; `alerts` says how to
    alert a user who is looking elsewhere, and after how many seconds.
    """

    def __init__(
        self,
        screen: Output,
        title: Callable[[], str] = lambda: "",
        alerts: Callable[[], tuple[str, float]] = lambda: ("none", 0.0),
    ) -> None:
        self._screen = screen
        self._title = title
        self._alerts = alerts
        self._titled = ""
        self._last_key = 0.0

    def touched(self) -> None:
        """A key was pressed: the user is present."""
        self._last_key = asyncio.get_running_loop().time()

    def entitle(self) -> None:
        """Keep the window title up to date; the terminal remembers the previous one."""
        title = self._title()
        if title == self._titled:
            return
        before = "" if self._titled else _SAVE_TITLE
        self._titled = title
        text = one_line(title, _LONGEST_TITLE)
        self._write(f"{before}\x1b]2;{text}\x07" if title else _RESTORE_TITLE)

    def restore(self) -> None:
        """Restore the previous window title."""
        if self._titled:
            self._titled = ""
            self._write(_RESTORE_TITLE)

    def alert(self, text: str, seconds: float) -> None:
        """Signal that something has finished, if it took long and the user seems to be away."""
        how, after = self._alerts()
        if seconds >= after:
            self._ring(how, text, seconds)

    def await_answer(self, text: str) -> asyncio.TimerHandle:
        """Signal after a while that a question is waiting; cancel it when it is answered."""
        how, after = self._alerts()
        seconds = min(after, _AWAY)
        return asyncio.get_running_loop().call_later(seconds, self._ring, how, text, seconds)

    def copy(self, text: str) -> None:
        """Copy text to the clipboard of the user's terminal, also over ssh (OSC 52)."""
        self._write(f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\x07")

    def _ring(self, how: str, text: str, seconds: float) -> None:
        untouched = asyncio.get_running_loop().time() - self._last_key
        if untouched < min(seconds, _TOUCHED):
            return
        if how == "bell":
            self._write("\x07")
        elif how == "notification":  # terminals without a clipboard ignore it
            self._write(f"\x1b]9;{one_line(f'mull: {text}', _LONGEST_TITLE)}\x07")

    def _write(self, text: str) -> None:
        self._screen.write_raw(text)
        self._screen.flush()
