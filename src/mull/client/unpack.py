"""Decompresses bodies, a bounded piece at a time: one may be a thousand times as long as it was.

gzip (any number of members) and deflate (with and without the zlib header, which many servers leave
out) are always read; br and zstd if a package for them is installed. Bytes behind the compressed
data are not part of the body.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias

__all__ = ["UNPACKED", "Unpacker", "unpacker"]

UNPACKED = 64 * 1024
"""Bytes that are decompressed at once."""
_SLICE = 16 * 1024
"""Compressed bytes that are looked at at once: libraries copy what they leave of them."""
_UNLIMITED_SLICE = 256
"""The same for a library that takes no limit: 4 bytes of zstd can become 128 kB."""
_WINDOW_LOG = 23
"""The largest window that a zstd body may ask for is 8 MiB (RFC 9659)."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"

_Step: TypeAlias = tuple[bytes, int]
"""What came out, and how many of the bytes were not used."""


class Unpacker:
    """Decompresses one body. After `fault` is set nothing more comes out."""

    _slice = _SLICE
    _errors: type[Exception]

    def __init__(self) -> None:
        self._waiting, self._at = b"", 0
        self._full = False  # whether the library still has output for input that it was given
        self._over = False
        self.holds_more = False
        self.fault: Exception | None = None

    def feed(self, data: bytes) -> bytes:
        """The next bytes; while it `holds_more`, feed nothing to get them."""
        self.holds_more = False
        if self._over or self.fault is not None:
            return b""
        if data:
            self._waiting, self._at = self._waiting[self._at :] + data, 0
        piece = b"" if self._full else self._waiting[self._at : self._at + self._slice]
        try:
            step = self._step(piece)
        except self._errors as error:
            self.fault = error
            return self._salvage(piece)
        if step is None:
            return b""
        out, left = step
        self._at += len(piece) - left
        self.holds_more = self._has_more()
        return out

    def _has_more(self) -> bool:
        return not self._over and (self._full or self._at < len(self._waiting))

    def _step(self, piece: bytes) -> _Step | None:
        """Decompress; None if more is needed to know what this is."""
        raise NotImplementedError

    def _salvage(self, piece: bytes) -> bytes:
        """What can be decompressed before the byte that is wrong, if the library can tell."""
        return b""


def unpacker(coding: str) -> Unpacker | None:
    """What decompresses a body with this content encoding, if anything here does."""
    make = _UNPACKERS.get(coding)
    return make() if make is not None else None


class _Zlib(Unpacker):
    """gzip and deflate."""

    _errors = zlib.error

    def __init__(self, coding: str) -> None:
        super().__init__()
        self._gzip = coding == "gzip"
        self._inflate: zlib._Decompress | None = None
        self._before: zlib._Decompress

    def _step(self, piece: bytes) -> _Step | None:
        inflate = self._inflate
        if inflate is None or inflate.eof:
            if len(piece) < len(_GZIP):
                return None
            if inflate is not None and not (self._gzip and piece.startswith(_GZIP)):
                self._over = True
                return b"", 0
            self._inflate = inflate = zlib.decompressobj(self._wbits(piece))
        self._before = inflate.copy()
        out = inflate.decompress(piece, UNPACKED)
        self._full = len(out) == UNPACKED and not (inflate.eof or inflate.unconsumed_tail)
        return out, len(inflate.unused_data if inflate.eof else inflate.unconsumed_tail)

    def _wbits(self, start: bytes) -> int:
        if self._gzip:
            return 31
        return 47 if _has_header(start) else -15

    def _salvage(self, piece: bytes) -> bytes:
        pieces: list[bytes] = []
        try:
            for at in range(len(piece)):
                pieces.append(self._before.decompress(piece[at : at + 1]))
        except zlib.error:
            pass
        return b"".join(pieces)


def _has_header(data: bytes) -> bool:
    """Whether deflated data begins with a zlib or gzip header (RFC 1950, section 2.2). Taken for
    raw data, such a header would be a stored block with padding that nobody writes."""
    begins = data[0] & 0x0F == 8 and data[0] >> 4 <= 7 and int.from_bytes(data[:2]) % 31 == 0
    return begins or data.startswith(_GZIP)


class _Brotli(Unpacker):
    """br, through the packages brotli or brotlicffi in a version that can limit its output."""

    def __init__(self, package: Any) -> None:
        super().__init__()
        self._inflate = package.Decompressor()
        self._errors = package.error

    def _step(self, piece: bytes) -> _Step | None:
        out: bytes = self._inflate.process(piece, output_buffer_limit=UNPACKED)
        self._over = self._inflate.is_finished()
        self._full = not (self._over or self._inflate.can_accept_more_data())
        return out, 0


class _Zstd(Unpacker):
    """zstd, through Python's own module (3.14 and later) or its backport."""

    def __init__(self, package: Any) -> None:
        super().__init__()
        self._package = package
        self._errors = package.ZstdError
        self._inflate: Any = None

    def _step(self, piece: bytes) -> _Step | None:
        if self._inflate is None or self._inflate.eof:
            if len(piece) < len(_ZSTD):
                return None
            if self._inflate is not None and not _is_frame(piece):
                self._over = True
                return b"", 0
            limit = self._package.DecompressionParameter.window_log_max
            self._inflate = self._package.ZstdDecompressor(options={limit: _WINDOW_LOG})
        out: bytes = self._inflate.decompress(piece, UNPACKED)
        self._full = not (self._inflate.eof or self._inflate.needs_input)
        return out, len(self._inflate.unused_data) if self._inflate.eof else 0


def _is_frame(data: bytes) -> bool:
    """Whether a frame begins here, possibly one to be skipped (RFC 8878, section 3.1.2)."""
    return data.startswith(_ZSTD) or (data[0] >> 4 == 5 and data[1:4] == b"\x2a\x4d\x18")


class _Zstandard(Unpacker):
    """zstd, through the package zstandard."""

    _slice = _UNLIMITED_SLICE

    def __init__(self, package: Any) -> None:
        super().__init__()
        inflate = package.ZstdDecompressor(max_window_size=1 << _WINDOW_LOG)
        self._inflate = inflate.decompressobj(read_across_frames=True)
        self._errors = package.ZstdError

    def _step(self, piece: bytes) -> _Step | None:
        return self._inflate.decompress(piece), 0


def _brotli() -> Unpacker | None:
    for name in ("brotli", "brotlicffi"):
        if (package := _installed(name)) and hasattr(package.Decompressor, "can_accept_more_data"):
            return _Brotli(package)
    return None


def _zstd() -> Unpacker | None:
    for name in ("compression.zstd", "backports.zstd"):
        if package := _installed(name):
            return _Zstd(package)
    package = _installed("zstandard")
    return _Zstandard(package) if package else None


def _installed(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


_UNPACKERS: dict[str, Callable[[], Unpacker | None]] = {
    "gzip": lambda: _Zlib("gzip"),
    "x-gzip": lambda: _Zlib("gzip"),
    "deflate": lambda: _Zlib("deflate"),
    "br": _brotli,
    "zstd": _zstd,
}
