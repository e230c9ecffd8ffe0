"""What a terminal is told beside what is drawn on it: its title, a sign that somebody is wanted,
and what is to be in the clipboard."""

from __future__ import annotations

import base64

from mull.tui.text.safe import one_line

__all__ = ["LONGEST_COPY", "RESTORE_TITLE", "SAVE_TITLE", "alert", "clipboard", "title"]

SAVE_TITLE, RESTORE_TITLE = "\x1b[22;2t", "\x1b[23;2t"
LONGEST_COPY = 74_994
"""Bytes that xterm and tmux still take."""
_LONGEST_TITLE = 80


def title(text: str) -> str:
    """The window's title."""
    return f"\x1b]2;{one_line(text, _LONGEST_TITLE)}\x07"


def alert(how: str, text: str) -> str:
    """A bell, a notification (OSC 9; a terminal that knows none passes over it), or nothing."""
    if how == "bell":
        return "\x07"
    return f"\x1b]9;{one_line(text, _LONGEST_TITLE)}\x07" if how == "notification" else ""


def clipboard(text: str) -> str:
    """Text for the clipboard of whoever sits at the terminal, also over ssh (OSC 52)."""
    return f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\x07"
