"""Asks the terminal about its appearance, with a short time limit.

The query for the background is followed by one that every terminal answers, so that a terminal
without colours costs a round trip and not the whole time limit. Keys pressed meanwhile are
returned.
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
"""Seconds; a terminal on a slow connection that takes longer is treated as dark."""


_REFLOWING = (
    "TMUX", "VTE_VERSION", "KITTY_WINDOW_ID", "WEZTERM_PANE", "ALACRITTY_WINDOW_ID", "WT_SESSION",
    "KONSOLE_VERSION", "ITERM_SESSION_ID", "GHOSTTY_RESOURCES_DIR", "TERM_PROGRAM",
)  # fmt: skip
_REFLOWING_KINDS = re.compile(r"tmux|foot|alacritty|xterm-kitty|xterm-ghostty|wezterm|contour")


def reflows(environment: Mapping[str, str]) -> bool:
    """Whether a terminal rewraps lines when its window is narrowed, as most do; xterm and the Linux
    console cut them off. An unknown terminal is assumed to cut.
    """
    if "XTERM_VERSION" in environment and "TMUX" not in environment:
        return False
    kind = _REFLOWING_KINDS.match(environment.get("TERM", ""))
    return kind is not None or any(name in environment for name in _REFLOWING)


class Heard(NamedTuple):
    """The terminal's reply about its background, and what was typed meanwhile."""

    background: bytes
    typed: bytes


def ask_terminal(query: bytes, keyboard: int, screen: int) -> Heard:
    """Send the query for the background and read the reply, within the time limit."""
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
    """The input, separated into reply and typed text."""
    colour = _COLOUR.search(heard)
    typed = _ATTRIBUTES.sub(b"", _COLOUR.sub(b"", heard))
    return Heard(colour.group() if colour else b"", typed)


def is_answered(heard: bytes) -> bool:
    """Whether the reply is complete."""
    return _ATTRIBUTES.search(heard) is not None


def listen(keyboard: int, until: float, heard: bytes = b"") -> bytes:
    """Input so far, and what arrives until the reply is complete or the time is up."""
    while not is_answered(heard):
        left = max(until - time.monotonic(), 0)  # available input is always read
        if not select.select([keyboard], [], [], left)[0]:
            break
        piece = os.read(keyboard, 4096)
        if not piece:
            break
        heard += piece
    return heard
