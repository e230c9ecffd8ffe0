"""Thinking in tags that only repeats what arrived in a separate field.

Some servers extract the thinking but also leave it in the text. Tags around anything else are text,
because such an answer may be about tags. So what follows an opening tag is held back as long as it
matches the thinking, ignoring whitespace, and is left out if all of it does.
"""

from __future__ import annotations

from collections.abc import Callable

from mull.dialects.markers import Marks, Piece, without_blanks

__all__ = ["Echo"]


class Echo:
    """Reads from an opening tag to its closing one, or to the first difference."""

    def __init__(
        self, opener: str, closing: Marks, told: Callable[[], bytes | bytearray], block: int
    ) -> None:
        self.block = block
        self.rest: str | None = None
        self.is_echo = False
        self.closer = ""
        self._closing = closing
        self._told = told
        self._body = [opener]
        self._agreed = 0
        self._held = ""

    def feed(self, text: str) -> list[Piece]:
        """Nothing, or all held text once it differs."""
        text = self._held + text
        place, mark = self._closing.find(text, 0, final=False)
        self._body.append(text[:place])
        if not self._agrees(text[:place]):
            self.rest = text[place:]
        elif mark:
            self.rest = text[place + len(mark) :]
            self.is_echo = self._agreed in (0, len(self._told()))
            self._body.append(mark)
            self.closer = mark
        self._held = text[place:]
        return [] if self.rest is None or self.is_echo else self._release()

    def close(self) -> list[Piece]:
        """A repetition that was cut off still counts as one."""
        if self._agreed and self._agrees(self._held):
            return []
        self._body.append(self._held)
        return self._release()

    def _agrees(self, text: str) -> bool:
        bare = without_blanks(text)
        agrees = self._told().startswith(bare, self._agreed)
        self._agreed += len(bare)
        return agrees

    def _release(self) -> list[Piece]:
        return [Piece("text", "".join(self._body), None, None, self.block)]
