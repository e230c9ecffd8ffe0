"""Server-sent events from bytes, however they are cut.

Rule 1: only CR, LF and CRLF end a line, also when they are split across chunks; a line is looked
at when it is whole, so characters cut in half are no concern. Rule 2: comments carry no data but
show that the other side lives. Rule 3: what servers do wrong is put right where nothing is lost
(a missing blank line at the end, frames glued together) and reported.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec

__all__ = ["BOM", "LINE_LIMIT", "Frame", "Parsed", "SseReader", "parse_payload"]

LINE_LIMIT = 64 * 1024 * 1024
"""Bytes of one event; a server that sends more without an end is not sending events."""
BOM = b"\xef\xbb\xbf"
_decode = msgspec.json.Decoder().decode


class Frame(NamedTuple):
    """One event: its name, if it has one, and its data."""

    event: str | None
    data: bytes


class SseReader:
    """Cuts a stream of bytes into frames."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._rest: list[bytes] = []
        self._held = 0
        self._waiting = 0
        self._after_cr = False
        self._at_start = True
        self._event: str | None = None
        self._data: list[bytes] = []
        self.comments = 0
        self.overflowed = False

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that are whole now."""
        if self.overflowed or not chunk:
            return []
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._after_cr = chunk.endswith(b"\r")
        if b"\n" not in chunk and b"\r" not in chunk:
            self._hold(chunk)
            return []
        if self._rest:
            chunk = b"".join((*self._rest, chunk))
            self._rest.clear()
            self._held = 0
        lines = chunk.splitlines()
        if chunk[-1] not in b"\r\n":
            self._hold(lines.pop())
        return self._read(lines)

    def close(self) -> list[Frame]:
        """The last frame, where the stream ended without the blank line it should have."""
        last = b"".join(self._rest)
        self._rest.clear()
        return self._read([last, b""] if last else [b""])

    def _hold(self, piece: bytes) -> None:
        self._rest.append(piece)
        self._held += len(piece)
        if self._held > self._limit:
            self.overflowed = True
            self._rest.clear()

    def _read(self, lines: list[bytes]) -> list[Frame]:
        frames: list[Frame] = []
        for line in lines:
            if self._at_start:
                line = line.removeprefix(BOM)
                self._at_start = False
            if line.startswith(b"data:"):
                self._add(line[6:] if line[5:6] == b" " else line[5:])
            elif not line:
                if self._data:
                    data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
                    frames.append(Frame(self._event, data))
                    self._data.clear()
                    self._waiting = 0
                self._event = None
            elif line.startswith(b":"):
                self.comments += 1
            elif line.startswith(b"event:"):
                self._event = line[6:].strip().decode("utf-8", "replace")
            elif line.startswith((b"{", b"data")):
                # A bare object (an error written into the stream) or a `data` without a colon.
                self._add(line.removeprefix(b"data"))
        return frames

    def _add(self, data: bytes) -> None:
        self._waiting += len(data)
        if self._waiting > self._limit:
            self.overflowed = True
            self._data.clear()
        else:
            self._data.append(data)


class Parsed(NamedTuple):
    """The JSON values of one frame. `problem` says what was put right, `lost` what could not be;
    `odd` warns that text may hold halves of characters."""

    values: list[Any]
    problem: str | None = None
    lost: bytes = b""
    odd: bool = False


def parse_payload(data: bytes) -> Parsed:
    """The JSON of a frame's data; several values glued together are taken apart."""
    try:
        return Parsed([_decode(data)])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _recover(data)


def _recover(data: bytes) -> Parsed:
    text = data.decode("utf-8", "replace")
    problem = "invalid UTF-8 was replaced" if "\ufffd" in text else None
    decoder, values, at = json.JSONDecoder(), list[Any](), 0
    while at < len(text):
        at += len(text[at:]) - len(text[at:].lstrip())
        if text.startswith("data:", at):
            at += 5
            continue
        if at >= len(text):
            break
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return Parsed(values, problem, text[at:].encode("utf-8", "replace"), odd=True)
        values.append(value)
    if len(values) > 1:
        problem = f"{len(values)} events in one frame were taken apart"
    return Parsed(values, problem, odd=True)
