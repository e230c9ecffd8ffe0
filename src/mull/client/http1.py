"""HTTP/1.1 as a client speaks it: a request to bytes, bytes to an answer. No sockets, no time.

A reader is fed what the socket gives and returns the body's bytes as soon as they are there, also
where something wrong stands behind them. It follows RFC 9112 on where a body ends and is strict
there, because a wrong end is a wrong answer; it forgives bare line feeds and odd headers, which
small servers send.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from mull.neutral.patterns import pattern

__all__ = ["AnswerReader", "ProtocolError", "encode_head"]

HEAD_LIMIT = 256 * 1024
LINE_LIMIT = 16 * 1024

_TOKEN = pattern(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
_VALUE = pattern(r"[\t\x20-\x7e\x80-\xff]*")
_TARGET = pattern(r"[\x21-\x7e]+")
_BLANK_LINE = pattern(rb"\r?\n\r?\n")
_STATUS_LINE = pattern(rb"HTTP/(\d\.\d) (\d{3})(?: .*)?", re.DOTALL)
_LENGTH = pattern(r"[0-9]{1,18}", re.ASCII)
_CONTROLS = pattern(r"[\x01-\x08\x0a-\x1f\x7f]")
_SIZE = pattern(rb"[0-9A-Fa-f]{1,15}")
_PLAIN_SIZE = pattern(rb"[1-9a-f][0-9a-f]{0,4}\r\n")


class ProtocolError(ValueError):
    """What came, or what should go out, is not HTTP. Its text holds no header's value."""


def encode_head(method: str, target: str, headers: Mapping[str, str]) -> bytes:
    """A request's head.

    Raises:
        ProtocolError: a part of it holds a character that HTTP does not allow.
    """
    if not _TARGET.fullmatch(target):
        raise ProtocolError("the address contains a blank or a non-ASCII character")
    lines = [f"{method} {target} HTTP/1.1"]
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            raise ProtocolError(f"a header cannot be called {name!r}")
        if not _VALUE.fullmatch(value):
            raise ProtocolError(
                f"the header {name!r} holds a character that HTTP does not allow,"
                " such as a line break or a NUL"
            )
        lines.append(f"{name}: {value}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


class AnswerReader:
    """Reads one answer. `touched` says that anything came at all; `status` is 0 until its head is
    there, `done` tells its end. `fault` is what was wrong behind the bytes that were given last.

    It `keeps` the connection open unless it says otherwise; `reusable` says that it may carry
    another request; ask when done.
    """

    def __init__(self, method: str) -> None:
        self._bare = False  # whether lines between chunks end without a CR
        self._method = method
        self._pending = b""
        self._state: Literal["head", "length", "open", "size", "data", "after", "trailer"] = "head"
        self._left = 0
        self.keeps: bool = True
        self._sizes: dict[bytes, int] = {}
        self.touched: bool = False
        self.status: int = 0
        self.headers: dict[str, str] = {}
        self.done: bool = False
        self.fault: ProtocolError | None = None
        self._head = 0

    @property
    def in_head(self) -> bool:
        """Whether a head has begun, and is not whole."""
        return self._state == "head" and bool(self._pending)

    @property
    def has_body(self) -> bool:
        """Whether the whole body is there; only trailers, which say nothing, may follow."""
        return self.done or self._state == "trailer"

    @property
    def reusable(self) -> bool:
        """Whether the connection is as fresh as before the request."""
        return self.done and self.keeps and not self._pending

    def feed(self, data: bytes) -> bytes:
        """The bytes of the body that these bytes bring.

        Raises:
            ProtocolError: they are not HTTP, or those before them were not.
        """
        if self.fault is not None:
            raise self.fault
        if self._pending:
            data, self._pending = self._pending + data, b""
        if self._state == "head":
            data = self._read_head(data)
        if self.done or not data:
            self._pending += data
            return b""
        if self._state == "open":
            return data
        if self._state == "length":
            return self._read_length(data)
        return self._read_chunks(data)

    def close(self) -> None:
        """The other side closed the connection.

        Raises:
            ProtocolError: the answer was not over.
        """
        if self.fault is not None:
            raise self.fault
        if self._state == "open":
            self.done = True
        if not self.done:
            where = "before it answered" if not self.status else "in the middle of the response"
            raise ProtocolError(f"it was closed {where}")

    def _read_head(self, data: bytes) -> bytes:
        self.touched = True
        while self._state == "head":
            if data[:1] in (b"\r", b"\n"):  # blank lines before a head are none of it
                bare = data.lstrip(b"\r\n")
                self._head, data = self._head + len(data) - len(bare), bare
            end = _BLANK_LINE.search(data)
            if self._head + (len(data) if end is None else end.end()) > HEAD_LIMIT:
                raise ProtocolError("the head of the response has no end")
            if end is None:
                self._pending = data
                return b""
            self._head += end.end()
            status = self._read_lines(data[: end.start()])
            data = data[end.end() :]
            if 100 <= status < 200:  # the real answer follows
                self.headers = {}
                continue
            self.status = status
            self._frame()
        return data

    def _read_lines(self, head: bytes) -> int:
        if b"\0" in head:
            raise ProtocolError("the head of its response contains a NUL byte")
        first, *lines = head.replace(b"\r\n", b"\n").split(b"\n")
        start = _STATUS_LINE.fullmatch(first)
        if start is None:
            raise ProtocolError("its response is not HTTP")
        self.keeps = start.group(1) == b"1.1"
        for line in lines:
            name, colon, value = line.decode("latin-1").partition(":")
            name, value = name.strip().lower(), _CONTROLS.sub(" ", value).strip()
            if colon and _TOKEN.fullmatch(name):
                before = self.headers.get(name)
                self.headers[name] = value if before is None else f"{before}, {value}"
        return int(start.group(2))

    def _frame(self) -> None:
        """Where the body ends: RFC 9112, section 6.3."""
        headers = self.headers
        words = headers.get("connection", "").lower()
        if "close" in words:
            self.keeps = False
        elif "keep-alive" in words:
            self.keeps = True
        length = headers.get("content-length")
        if self._method == "HEAD" or self.status in (204, 304):
            self._state, self.done = "length", True
        elif "transfer-encoding" in headers:
            coding = headers["transfer-encoding"].lower().split(",")[-1].strip()
            self._state = "size" if coding == "chunked" else "open"
        elif length is not None:
            sizes = {part.strip() for part in length.split(",")}
            size = sizes.pop()
            if sizes or not _LENGTH.fullmatch(size):
                raise ProtocolError("its content-length is not a number of bytes")
            self._state, self._left = "length", int(size)
            self.done = self._left == 0
        else:
            self._state = "open"
        if self._state == "open":
            self.keeps = False

    def _read_length(self, data: bytes) -> bytes:
        piece, self._pending = data[: self._left], data[self._left :]
        self._left -= len(piece)
        self.done = self._left == 0
        return piece

    def _read_chunks(self, data: bytes) -> bytes:
        pieces: list[bytes] = []
        try:
            self._pending = data[self._take_chunks(data, pieces) :]
        except ProtocolError as fault:
            if not pieces:
                raise
            self.fault = fault
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _take_chunks(self, data: bytes, pieces: list[bytes]) -> int:
        """Take the chunks that are there, and say where they end."""
        at, size = 0, len(data)
        while at < size and not self.done:
            if self._state == "size":
                at = self._read_whole_chunks(data, at, pieces)
            if self._state == "data":
                piece = data[at : at + self._left]
                pieces.append(piece)
                at += len(piece)
                self._left -= len(piece)
                if not self._left:
                    self._state = "after"
                continue
            end = data.find(b"\n", at)
            if end < 0:
                if size - at > LINE_LIMIT:
                    raise ProtocolError("a line between two chunks has no end")
                break
            self._read_line(data[at:end])
            at = end + 1
        return at

    def _read_whole_chunks(self, data: bytes, at: int, pieces: list[bytes]) -> int:
        """Take the chunks from `at` on that are there in full and written plainly, and say where
        they end. A stream is thousands of them, so each costs as little as can be: the sizes
        repeat, and what stands between two chunks, a line's end and a line with a size, is only
        looked up if it was read once."""
        sizes, find, take = self._sizes, data.find, pieces.append
        while begin := find(b"\n", at) + 1:
            line = data[at:begin]
            if not _PLAIN_SIZE.fullmatch(line):
                break
            size = sizes[b"\r\n" + line] = int(line, 16)
            end = begin + size
            while following := find(b"\n", end + 2) + 1:
                next_size = sizes.get(data[end:following])
                if next_size is None:
                    break
                take(data[begin:end])
                at, begin, end = end + 2, following, following + next_size
            if data[end : end + 2] != b"\r\n":
                break
            take(data[begin:end])
            at = end + 2
        return at

    def _read_line(self, line: bytes) -> None:
        bare, line = not line.endswith(b"\r"), line.rstrip(b"\r")
        if self._state == "size":
            self._bare = bare
            number = line.partition(b";")[0].strip()
            if not _SIZE.fullmatch(number):
                raise ProtocolError("a chunk without a size")
            self._left = int(number, 16)
            self._state = "data" if self._left else "trailer"
        elif self._state == "after":
            if line:
                raise ProtocolError("a chunk is longer than its size")
            if bare and not self._bare:  # the CR before it was taken for the chunk's last byte
                raise ProtocolError("a chunk is shorter than its size")
            self._state = "size"
        elif not line:
            self.done = True
