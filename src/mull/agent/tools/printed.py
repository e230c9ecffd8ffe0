"""Terminal output as the text that a user would finally see.

Colours, titles and cursor movements are removed, and so are control bytes. For an overwritten line
(a progress bar) the last version counts. Bytes may arrive in any chunks: lines of normal length do
not depend on where they are split.
"""

from __future__ import annotations

import codecs

from mull.neutral.patterns import pattern

__all__ = ["Printed", "printed"]

_SEQUENCE = pattern(
    r"\x1b(?:"
    r"\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movements
    r"|[\]PX^_][^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, SOS, PM, APC: titles, links
    r"|[ -/]+[0-~]"
    r"|[0-OQ-WYZ\\`-~]"
    r")"
)
_UNFINISHED = pattern(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\x9c\n]*\x1b?|[ -/]*)\Z")
_CONTROLS = pattern(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LONGEST = 8 << 10
"""Maximum characters held back: the end of a sequence, or of an overwritten line."""


def printed(data: bytes) -> str:
    """The text of the output."""
    whole = Printed()
    return whole.feed(data) + whole.close()


class Printed:
    """Bytes in, finished lines out."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._waiting = ""

    def feed(self, data: bytes) -> str:
        """The lines finished by this chunk."""
        return self._take(self._decoder.decode(data))

    def close(self) -> str:
        """The rest, when the output is complete."""
        text = self._take(self._decoder.decode(b"", True)) + self.unfinished
        self._waiting = ""
        return text

    @property
    def unfinished(self) -> str:
        """The unfinished line so far."""
        return _plain(self._waiting)

    def _take(self, text: str) -> str:
        text = self._waiting + text
        end = text.rfind("\n") + 1
        if len(text) - end > _LONGEST:
            held = _UNFINISHED.search(text, max(end, len(text) - _LONGEST))
            end = held.start() if held else len(text)
        self._waiting = text[end:]
        return _plain(text[:end])


def _plain(text: str) -> str:
    if not _CONTROLS.search(text):
        return text
    text = _SEQUENCE.sub("", text.replace("\r\n", "\n"))
    if "\r" in text or "\b" in text:
        text = "\n".join(_as_left(line) for line in text.split("\n"))
    return _CONTROLS.sub("", text)


def _as_left(line: str) -> str:
    """A line after it was last restarted, with backspaces applied."""
    line = next((part for part in reversed(line.split("\r")) if part), "")
    if "\b" not in line:
        return line
    kept: list[str] = []
    for char in line:
        if char != "\b":
            kept.append(char)
        elif kept:
            kept.pop()
    return "".join(kept)
