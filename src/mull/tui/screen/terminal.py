"""What terminals reply when they are asked about their appearance, amid what is typed meanwhile.

The query for the background is followed by one that every terminal answers, so that a terminal
without colours costs a round trip and not the whole time limit.
"""

from __future__ import annotations

import os
import select
import time

TYPE_CHECKING = False  # without importing typing, so that the first prompt is fast
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ATTRIBUTES_QUERY", "PATIENCE", "Heard", "listen", "reflows", "sift"]

ATTRIBUTES_QUERY = b"\x1b[c"
_COLOUR, _ATTRIBUTES = b"\x1b]11;", b"\x1b[?"
PATIENCE = 0.2
"""Seconds; a terminal on a slow connection that takes longer is treated as dark."""


_REFLOWING = (
    "TMUX", "VTE_VERSION", "KITTY_WINDOW_ID", "WEZTERM_PANE", "ALACRITTY_WINDOW_ID", "WT_SESSION",
    "KONSOLE_VERSION", "ITERM_SESSION_ID", "GHOSTTY_RESOURCES_DIR", "TERM_PROGRAM",
)  # fmt: skip
_REFLOWING_KINDS = (
    "tmux", "foot", "alacritty", "xterm-kitty", "xterm-ghostty", "wezterm", "contour",
)  # fmt: skip


def reflows(environment: Mapping[str, str]) -> bool:
    """Whether a terminal rewraps lines when its window is narrowed, as most do; xterm and the Linux
    console cut them off. An unknown terminal is assumed to cut.
    """
    if "XTERM_VERSION" in environment and "TMUX" not in environment:
        return False
    known = environment.get("TERM", "").startswith(_REFLOWING_KINDS)
    return known or any(name in environment for name in _REFLOWING)


class Heard:
    """Input, separated into the terminal's reply about its background and what was typed.

    `is_answered` says that no reply is to come any more.
    """

    def __init__(self) -> None:
        self.background = b""
        self.typed = b""
        self.is_answered = False


def sift(heard: bytes) -> Heard:
    """The input, separated into replies and typed text."""
    found, at = Heard(), 0
    while (escape := heard.find(b"\x1b", at)) >= 0:
        end = _reply_end(heard, escape)
        found.typed += heard[at : escape if end else escape + 1]
        at = end or escape + 1
        if heard.startswith(_COLOUR, escape) and end:
            found.background = found.background or heard[escape:end]
        found.is_answered |= bool(end) and heard.startswith(_ATTRIBUTES, escape)
    found.typed += heard[at:]
    return found


def _reply_end(heard: bytes, at: int) -> int:
    """Where the reply that begins here ends; 0 if none does, or it is incomplete."""
    if heard.startswith(_ATTRIBUTES, at):
        at += len(_ATTRIBUTES)
        while heard[at : at + 1] in _PARAMETERS:
            at += 1
        return at + 1 if heard[at : at + 1] == b"c" else 0
    if not heard.startswith(_COLOUR, at):
        return 0
    rung, ended = heard.find(b"\x07", at), heard.find(b"\x1b", at + 1)
    if rung >= 0 and (ended < 0 or rung < ended):
        return rung + 1
    return ended + 2 if ended >= 0 and heard[ended + 1 : ended + 2] == b"\\" else 0


_PARAMETERS = tuple(bytes([one]) for one in b"0123456789;")


def listen(keyboard: int, until: float, heard: bytes = b"") -> bytes:
    """Input so far, and what arrives until the reply is complete or the time is up."""
    while not sift(heard).is_answered:
        left = max(until - time.monotonic(), 0)  # available input is always read
        if not select.select([keyboard], [], [], left)[0]:
            break
        piece = os.read(keyboard, 4096)
        if not piece:
            break
        heard += piece
    return heard
