"""Compresses what the gateway stores and seals."""

from __future__ import annotations

import zlib

__all__ = ["packed"]

_FAST = 1
_SMALL_WINDOW = 13
"""As a power of two, in bytes. A full window and its tables take 260 kB, which the system has to
clear for each use: much longer than compressing a few hundred bytes takes."""
_SMALL_MEMORY = 6


def packed(data: bytes) -> bytes:
    """The data in zlib's format."""
    if len(data) > 1 << _SMALL_WINDOW:
        return zlib.compress(data, _FAST)
    small = zlib.compressobj(_FAST, zlib.DEFLATED, _SMALL_WINDOW, _SMALL_MEMORY)
    return small.compress(data) + small.flush()
