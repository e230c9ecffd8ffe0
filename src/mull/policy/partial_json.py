"""What a JSON text says before it is complete.

Open texts, lists and objects are closed where they stop; a number, a word or a key that may still
change is left out. A code fence or other text before the value is skipped.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from mull.neutral.patterns import pattern

__all__ = ["PartialJson", "value_start"]

_BLANK = pattern(r"\s*")
_FENCE = pattern(r"```[^\n`]*\n\s*")
_VALUE = pattern(r'\{(?=\s*["}])|\[(?=\s*[\[{"])')
_TOKEN = pattern(r'["{}\[\],:]|[^\s"{}\[\],:]++')
_CERTAIN_TEXT = pattern(
    r'(?:[^"\\]++|\\[^u]|\\u(?![dD][89abAB])[0-9a-fA-F]{4}'
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*+",
    re.DOTALL,
)
"""The inside of a text, up to its end or to an escape that is not complete."""
_CLOSING = {"{": "}", "[": "]"}


def value_start(text: str) -> int | None:
    """Where the value begins: at the beginning, in the first code fence, or at the first bracket
    that looks like JSON. None while that is unknown.
    """
    at = _BLANK.match(text).end()  # type: ignore[union-attr]
    if text.startswith(("{", "[", '"'), at):
        return at
    fence, value = _FENCE.search(text), _VALUE.search(text)
    if fence is not None and (value is None or fence.start() < value.start()):
        return fence.end() if text.startswith(("{", "[", '"'), fence.end()) else None
    return value.start() if value is not None and "```" not in text[: value.start()] else None


class PartialJson:
    """Reads a text that grows; what was read before is not read again.

    The reading goes on `at` a place behind a token, or within a text. `end` is where the last
    complete value or opening bracket ends.
    """

    def __init__(self) -> None:
        self._restart()

    def _restart(self) -> None:
        self._text = ""
        self._start: int | None = None
        self._at = 0
        self._open: list[str] = []
        self._is_key = self._is_in_text = self._is_over = False
        self._end = 0

    def read(self, text: str) -> Any:
        """The value as far as it is certain; None if nothing is."""
        if not text.startswith(self._text):
            self._restart()
        self._text = text
        if self._start is None:
            self._start = value_start(text)
            if self._start is None:
                return None
            self._at = self._end = self._start
        while not self._is_over and self._go_on():
            pass
        is_shown = self._is_in_text and not self._is_key
        certain = text[self._start : self._at] + '"' if is_shown else text[self._start : self._end]
        try:
            return msgspec.json.decode(certain + self._closing()) if certain else None
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return None

    def _go_on(self) -> bool:
        """Read the next token, or the rest of a text; False if it has not arrived yet."""
        if self._is_in_text:
            self._at = _CERTAIN_TEXT.match(self._text, self._at).end()  # type: ignore[union-attr]
            if not self._text.startswith('"', self._at):
                return False
            self._is_in_text = False
            self._ended(self._at + 1)
            return True
        token = _TOKEN.search(self._text, self._at)
        return token is not None and self._take(token[0], token.end())

    def _take(self, word: str, end: int) -> bool:
        """Take a token that ends here; False if it may go on."""
        if word in "{[":
            self._open.append(word)
            self._is_key = word == "{"
            self._end = end
        elif word in "}]":
            if not self._open or _CLOSING[self._open.pop()] != word:
                self._is_over = True
                return False
            self._is_key = False
            self._ended(end)
        elif word == ",":
            self._is_key = bool(self._open) and self._open[-1] == "{"
        elif word == ":":
            self._is_key = False
        elif word == '"':
            self._is_in_text = True
        elif end == len(self._text):
            return False
        else:
            self._ended(end)
        self._at = end
        return True

    def _ended(self, end: int) -> None:
        """A text, a word or a bracket ends here."""
        self._at = end
        if not self._is_key:
            self._end = end
            self._is_over = not self._open

    def _closing(self) -> str:
        return "".join(_CLOSING[one] for one in reversed(self._open))
