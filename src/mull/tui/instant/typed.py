"""What is typed, as text, as far as its meaning is certain without the editor.

Letters, Backspace and pasted text are shown; replies of the terminal are no keys. Anything else may
mean anything (keys can be configured), so from there on nothing more is shown: the editor gets
every byte, and decides.
"""

from __future__ import annotations

import codecs

from mull.tui.screen.pastes import Pastes
from mull.tui.screen.terminal import sift

__all__ = ["Typed"]

_PASTE, _PASTE_END = b"\x1b[200~", b"\x1b[201~"
_BEGINNINGS = (_PASTE, b"\x1b]11;", b"\x1b[?")
"""Sequences that are no keys."""
_LONGEST = 1 << 16
"""Bytes that may wait for the end of a sequence or of pasted text."""


class Typed:
    """Takes input piece by piece. `text` is what stands in the line, until it `is_unclear`."""

    def __init__(self) -> None:
        self.text = ""
        self.is_unclear = False
        self._rest = b""
        self._pastes = Pastes()

    def feed(self, piece: bytes) -> None:
        """Process what was read."""
        if not self.is_unclear:
            self._rest += piece
            try:
                while self._rest and self._take():
                    pass
            except UnicodeDecodeError:
                self.is_unclear = True
            self.is_unclear |= len(self._rest) > _LONGEST

    def _take(self) -> bool:
        """Process the beginning of the rest; False if more must arrive, or nothing else is sure."""
        escape = self._rest.find(b"\x1b")
        if escape == 0:
            return self._sequence()
        plain = self._rest if escape < 0 else self._rest[:escape]
        text, used = codecs.utf_8_decode(plain, "strict", escape >= 0)
        self._rest = self._rest[used:]
        return all(map(self._press, text)) and bool(used)

    def _press(self, letter: str) -> bool:
        if letter.isprintable():
            self.text += letter
        elif letter in "\x7f\b":
            label = self._pastes.label_before(self.text)
            self.text = self.text[: -max(len(label), 1)]
        else:
            self.is_unclear = True
        return not self.is_unclear

    def _sequence(self) -> bool:
        rest = self._rest
        if rest.startswith(_PASTE):
            pasted, ended, self._rest = rest.partition(_PASTE_END)
            if ended:
                return self._paste(pasted[len(_PASTE) :].decode())
            self._rest = rest
            return False
        if any(one.startswith(rest[: len(one)]) for one in _BEGINNINGS):
            typed = sift(rest).typed
            self._rest = typed
            return typed != rest
        self.is_unclear = True
        return False

    def _paste(self, text: str) -> bool:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        label = self._pastes.label(text)
        if label.replace("\n", "").isprintable():
            self.text += label
        else:
            self.is_unclear = True
        return not self.is_unclear
