"""Splits a server's output into lines of limited length.

A message is a line. A line that is too long is counted and discarded while it arrives, so that a
flood costs time but no memory; the id of the request it answers is read from its two ends. The same
is done for a line that is not a valid message, so that the waiting caller gets an error.
"""

from __future__ import annotations

import json

from msgspec import Struct

from mull.neutral.patterns import pattern

__all__ = ["MOST_BYTES", "Lines", "LongLine", "answered_id", "too_large"]

MOST_BYTES = 16 * 1024 * 1024
"""The maximum size of a server's message."""
_KEPT = 256

# the Python SDK writes the id first, the TypeScript SDK last
_AT_START = pattern(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,')
_AT_END = pattern(rb'"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')


def too_large(size: int | None = None) -> str:
    """The error for a discarded message; its size may never become known."""
    most = f"{MOST_BYTES // (1024 * 1024)} MiB"
    if size is None:
        return f"the response has more than {most} and was not read: ask for less"
    return f"the response has {size:,} bytes and was not read; the limit is {most}: ask for less"


class LongLine(Struct, frozen=True):
    """A line that was too long to keep: its size in bytes and its two ends."""

    size: int
    start: bytes
    end: bytes

    @property
    def request_id(self) -> int | None:
        """The request that the line answered, if its ends tell."""
        return _id_at_ends(self.start, self.end)


def answered_id(line: bytes) -> int | None:
    """The request that an invalid line answers; None if it does not tell.

    A line with a method is a request or a notification from the server: it answers nothing.
    """
    try:
        message = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return _id_at_ends(line[:_KEPT], line[-_KEPT:])
    if not isinstance(message, dict) or "method" in message:
        return None
    number = message.get("id")
    return number if isinstance(number, int) and number is not True else None


def _id_at_ends(start: bytes, end: bytes) -> int | None:
    found = _AT_START.match(start) or _AT_END.search(end)
    return int(found[1]) if found else None


class Lines:
    """Feed bytes as they arrive; take out complete lines without their ends."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._kept = bytearray()
        self._size = 0
        self._start = b""

    def feed(self, data: bytes) -> list[bytes | LongLine]:
        """The lines that end within this chunk."""
        *ended, rest = data.split(b"\n")
        found: list[bytes | LongLine] = []
        for part in ended:
            self._add(part)
            found.append(self._take())
        self._add(rest)
        return found

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        self._kept += part
        if self._size > self._longest:
            self._start = self._start or bytes(self._kept[:_KEPT])
            del self._kept[:-_KEPT]

    def _take(self) -> bytes | LongLine:
        line = bytes(self._kept)
        found = LongLine(self._size, self._start, line) if self._size > self._longest else line
        self._kept.clear()
        self._size, self._start = 0, b""
        return found
