"""Amazon's event streams: binary messages with headers, decoded from bytes however they are split,
and encoded.

A message is a prelude (its length, the length of its headers, a checksum of both), the headers, the
payload, and a checksum of everything before it. There is no delimiter between two messages, so what
follows a damaged one cannot be read: the stream ends there, and says why.
"""

from __future__ import annotations

import struct
from zlib import crc32

import msgspec

from mull.dialects.sse import Frame

__all__ = ["ERROR", "EXCEPTION", "MESSAGE_LIMIT", "EventStreamReader", "message", "stamp"]

EXCEPTION = ":exception "
"""The prefix of the name of a message that is an exception of the service."""
ERROR = ":error "
"""The prefix of the code of a message that is an unmodelled error."""
MESSAGE_LIMIT = 16 * 1024 * 1024
"""Maximum bytes of one message: no service sends as many."""

_LENGTHS = struct.Struct(">II")
_PRELUDE = struct.Struct(">III")
_CHECKSUM = struct.Struct(">I")
_HEAD = 12
_AROUND = 16
_FIXED = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Sizes of header values by type; the others have a length field."""
_SIZED = (6, 7)
_TEXT = 7


class EventStreamReader:
    """Splits a stream of bytes into frames; the name of an exception has a prefix."""

    def __init__(self, limit: int = MESSAGE_LIMIT) -> None:
        self._limit = min(limit, MESSAGE_LIMIT)
        self._held = bytearray()
        self._needed = _HEAD
        self._names: dict[bytes, tuple[str, bytes | None]] = {}
        self.comments = 0
        self.overflowed = False
        self.damage: str | None = None

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames completed by these bytes."""
        frames: list[Frame] = []
        if self.damage is not None:
            return frames
        data = chunk
        if self._held:
            self._held += chunk
            if len(self._held) < self._needed:
                return frames
            data = bytes(self._held)
        at = self._take_whole(data, frames)
        self._needed = self._measure(data, at) if len(data) - at >= _HEAD else _HEAD
        self._held[:] = data[at:]
        return frames

    def close(self) -> list[Frame]:
        """Half a message at the end is ignored."""
        return []

    def _take_whole(self, data: bytes, frames: list[Frame]) -> int:
        """Take the messages that are there in full and undamaged, and return where they end. The
        checksum of a message covers its prelude too.
        """
        at, size, names, limit = 0, len(data), self._names, self._limit
        while size - at >= _AROUND:
            length, headers = _LENGTHS.unpack_from(data, at)
            end = at + length - 4
            if end + 4 > size or not _AROUND + headers <= length <= limit:
                break
            if (crc32(data[at:end]),) != _CHECKSUM.unpack_from(data, end):
                break
            body = at + _HEAD + headers
            head = data[at + _HEAD : body]
            name, payload = names.get(head) or self._name(head)
            frames.append((name, (data[body:end] if payload is None else payload) or b"{}"))
            at = end + 4
        return at

    def _measure(self, data: bytes, at: int) -> int:
        """The length of the message that starts there and cannot be taken; its prelude is
        complete.
        """
        size, headers, told = _PRELUDE.unpack_from(data, at)
        if crc32(data[at : at + 8]) != told:
            self.damage = "the checksum of a message's length is wrong"
        elif not _AROUND + headers <= size <= self._limit:
            self.damage = f"a message claims {size:,} bytes with {headers:,} bytes of headers"
        elif len(data) - at >= size:
            self.damage = "the checksum of a message is wrong"
        return int(size)

    def _name(self, head: bytes) -> tuple[str, bytes | None]:
        """Headers repeat, so each is read once."""
        known = _named(head)
        if len(self._names) < 100:
            self._names[head] = known
        return known


def _named(head: bytes) -> tuple[str, bytes | None]:
    """The name from the headers, with its prefix, and a payload if the headers are all there is."""
    told = _headers(head)
    match told.get(":message-type"):
        case "exception":
            return EXCEPTION + told.get(":exception-type", ""), None
        case "error":
            said = {"message": told.get(":error-message", "")}
            return ERROR + told.get(":error-code", ""), msgspec.json.encode(said)
    return told.get(":event-type", ""), None


def _headers(head: bytes) -> dict[str, str]:
    """The text headers. An unknown type has no known length, so parsing stops there."""
    told: dict[str, str] = {}
    at = 0
    while at + 2 < len(head):
        start = at + 1 + head[at]
        if start >= len(head):
            break
        name, kind = head[at + 1 : start], head[start]
        at = start + 1
        if kind in _SIZED:
            size = int.from_bytes(head[at : at + 2], "big")
            at += 2
            if kind == _TEXT:
                text = head[at : at + size].decode("utf-8", "replace")
                told[name.decode("utf-8", "replace")] = text
            at += size
        elif kind in _FIXED:
            at += _FIXED[kind]
        else:
            break
    return told


def stamp(name: str, kind: str = "event") -> bytes:
    """The headers of a message: its type, and that its payload is JSON."""
    rows = (
        (f":{kind}-type", name),
        (":content-type", "application/json"),
        (":message-type", kind),
    )
    return b"".join(
        bytes((len(key),)) + key.encode() + b"\x07" + len(text).to_bytes(2, "big") + text.encode()
        for key, text in rows
    )


def message(head: bytes, payload: bytes) -> bytes:
    """A message with these headers, as `stamp` returned them."""
    lengths = _LENGTHS.pack(_AROUND + len(head) + len(payload), len(head))
    body = b"%b%b%b%b" % (lengths, crc32(lengths).to_bytes(4, "big"), head, payload)
    return body + crc32(body).to_bytes(4, "big")
