"""Asks the terminal what it looks like, and does not wait long for an answer.

The question for the background is followed by one that every terminal answers, so that one which
knows no colours costs a round trip and not the whole time limit. Keys that were pressed meanwhile
are given back.
"""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Mapping
from typing import NamedTuple

__all__ = [
    "ATTRIBUTES_QUERY",
    "PATIENCE",
    "Heard",
    "ask_terminal",
    "is_answered",
    "listen",
    "reflows",
    "sift",
]

ATTRIBUTES_QUERY = b"\x1b[c"
_ATTRIBUTES = re.compile(rb"\x1b\[\?[0-9;]*c")
_COLOUR = re.compile(rb"\x1b\]11;[^\x07\x1b]*(?:\x07|\x1b\\)")
PATIENCE = 0.2
"""Seconds; a terminal over a slow line that takes longer is drawn for as if it were dark."""


_REFLOWING = (
    "TMUX", "VTE_VERSION", "KITTY_WINDOW_ID", "WEZTERM_PANE", "ALACRITTY_WINDOW_ID", "WT_SESSION",
    "KONSOLE_VERSION", "ITERM_SESSION_ID", "GHOSTTY_RESOURCES_DIR", "TERM_PROGRAM",
)  # fmt: skip
_REFLOWING_KINDS = re.compile(r"tmux|foot|alacritty|xterm-kitty|xterm-ghostty|wezterm|contour")


def reflows(environment: Mapping[str, str]) -> bool:
    """Whether a terminal breaks lines anew when its window is made narrower, as most do; xterm and
    the console of Linux cut them off. What cannot be told apart is taken for one that cuts."""
    if "XTERM_VERSION" in environment and "TMUX" not in environment:
        return False
    kind = _REFLOWING_KINDS.match(environment.get("TERM", ""))
    return kind is not None or any(name in environment for name in _REFLOWING)


class Heard(NamedTuple):
    """What the terminal said of its background, and what was typed while it was asked."""

    background: bytes
    typed: bytes


def ask_terminal(query: bytes, keyboard: int, screen: int) -> Heard:
    """Send the query for the background and read the answer, for as long as patience lasts."""
    import termios
    import tty

    before = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard, termios.TCSADRAIN)
        os.write(screen, query + ATTRIBUTES_QUERY)
        heard = listen(keyboard, time.monotonic() + PATIENCE)
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
    return sift(heard)


def sift(heard: bytes) -> Heard:
    """What came from the keyboard's side, taken apart."""
    colour = _COLOUR.search(heard)
    typed = _ATTRIBUTES.sub(b"", _COLOUR.sub(b"", heard))
    return Heard(colour.group() if colour else b"", typed)


def is_answered(heard: bytes) -> bool:
    """Whether the terminal has said all that it will say."""
    return _ATTRIBUTES.search(heard) is not None


def listen(keyboard: int, until: float, heard: bytes = b"") -> bytes:
    """What was heard before, and what comes until the answer is whole or the time is up."""
    while not is_answered(heard):
        left = max(until - time.monotonic(), 0)  # what is there already is always taken
        if not select.select([keyboard], [], [], left)[0]:
            break
        piece = os.read(keyboard, 4096)
        if not piece:
            break
        heard += piece
    return heard
