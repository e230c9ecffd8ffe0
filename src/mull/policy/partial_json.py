"""What a JSON text says before it is complete.

Open texts, lists and objects are closed where they stop; a number, a word or a key that may still
change is left out. Text around the value, such as a code fence, is skipped.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

__all__ = ["partial_value"]

_START = re.compile(r'[{\["]')
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s"{}\[\],:]+', re.DOTALL)
_OPEN_TEXT = re.compile(r'"(?:[^"\\]|\\.)*', re.DOTALL)
_UNFINISHED_ESCAPE = re.compile(r"(?:\\u[0-9a-fA-F]{0,3}|\\)$")
_LONE_HALF = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}$")
_CLOSING = {"{": "}", "[": "]"}


def partial_value(text: str) -> Any:
    """The value as far as it is certain; None if nothing is."""
    start = _START.search(text)
    if start is None:
        return _decoded(text.strip())
    reading = _Reading(text, start.start())
    return _decoded(reading.closed())


class _Reading:
    """Finds how much of a text is certain, and what is open there."""

    def __init__(self, text: str, at: int) -> None:
        self._text = text
        self._start = at
        self._open: list[str] = []
        self._certain = ""
        self._read(at)

    def closed(self) -> str:
        """The certain part, with everything closed that is open in it."""
        return self._certain

    def _read(self, at: int) -> None:
        text, is_key = self._text, False
        while True:
            token = _TOKEN.search(text, at)
            quote = text.find('"', at)
            if quote >= 0 and (token is None or quote < token.start()):
                if not is_key:
                    self._keep_open_text(quote)
                return
            if token is None:
                return
            word, at = token[0], token.end()
            if word in "{[":
                self._open.append(word)
                is_key = word == "{"
                self._keep(at)
            elif word in "}]":
                if not self._open or _CLOSING[self._open.pop()] != word:
                    return
                is_key = False
                self._keep(at)
                if not self._open:
                    return
            elif word == ",":
                is_key = bool(self._open) and self._open[-1] == "{"
            elif word == ":":
                is_key = False
            elif not is_key and (word[0] == '"' or _TOKEN.search(text, at)):
                self._keep(at)
                if not self._open:
                    return

    def _keep(self, end: int) -> None:
        ends = "".join(_CLOSING[one] for one in reversed(self._open))
        self._certain = self._text[self._start : end] + ends

    def _keep_open_text(self, quote: int) -> None:
        opened = _OPEN_TEXT.match(self._text, quote)
        shown = _UNFINISHED_ESCAPE.sub("", opened[0] if opened else '"')
        ends = "".join(_CLOSING[one] for one in reversed(self._open))
        before = self._text[self._start : quote]
        self._certain = before + _LONE_HALF.sub("", shown) + '"' + ends


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
