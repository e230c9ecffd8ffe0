"""Room on the disk that is kept for one thing: to delete sessions when there is no other.

Deleting writes before it frees. On a disk that is full that would be impossible, and with it the
only way to make room.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["give_up_reserve", "keep_reserve"]

_BYTES = 1 << 20
_ROOM = 64
"""It is made where this many times as much is free: a small or full disk is left alone."""


def keep_reserve(store: Path) -> None:
    """Make the reserve beside the store, if it is not there and the disk has room."""
    path = _beside(store)
    if str(store) == ":memory:":
        return
    with suppress(OSError, AttributeError):  # without it deleting works as long as there is room
        if path.exists() or _free(store) < _ROOM * _BYTES:
            return
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.posix_fallocate(handle, 0, _BYTES)
        finally:
            os.close(handle)


def give_up_reserve(store: Path) -> bool:
    """Free the reserve; whether there was one."""
    try:
        _beside(store).unlink()
    except OSError:
        return False
    return True


def _beside(store: Path) -> Path:
    return store.with_name(f"{store.name}.reserve")


def _free(store: Path) -> int:
    found = os.statvfs(store.parent)
    return found.f_bavail * found.f_frsize
