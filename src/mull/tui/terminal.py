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
from typing import NamedTuple

__all__ = ["Heard", "ask_terminal"]

ATTRIBUTES_QUERY = b"\x1b[c"
_ATTRIBUTES = re.compile(rb"\x1b\[\?[0-9;]*c")
_COLOUR = re.compile(rb"\x1b\]11;[^\x07\x1b]*(?:\x07|\x1b\\)")
PATIENCE = 0.2
"""Seconds; a terminal over a slow line that takes longer is drawn for as if it were dark."""


class Heard(NamedTuple):
    """What the terminal said of its background, and what was typed while it was asked."""

    background: bytes
    typed: bytes


def ask_terminal(query: bytes, keyboard: int, screen: int, patience: float = PATIENCE) -> Heard:
    """Send the query for the background and read the answer, for at most so many seconds."""
    import termios
    import tty

    before = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard, termios.TCSADRAIN)
        os.write(screen, query + ATTRIBUTES_QUERY)
        heard = _listen(keyboard, time.monotonic() + patience)
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
    colour = _COLOUR.search(heard)
    typed = _ATTRIBUTES.sub(b"", _COLOUR.sub(b"", heard))
    return Heard(colour.group() if colour else b"", typed)


def _listen(keyboard: int, until: float) -> bytes:
    heard = b""
    while not _ATTRIBUTES.search(heard):
        left = until - time.monotonic()
        if left <= 0 or not select.select([keyboard], [], [], left)[0]:
            break
        piece = os.read(keyboard, 4096)
        if not piece:
            break
        heard += piece
    return heard
