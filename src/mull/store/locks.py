"""A lock that dies with its holder: the system drops it however the process ends."""

from __future__ import annotations

import os
from pathlib import Path

from mull.neutral.errors import LocalError

__all__ = ["FileLock"]


class FileLock:
    """One process's hold on a lock file; shared or alone. Never inherited by children."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether this object holds it."""
        return self._handle is not None

    def acquire(self, *, shared: bool = False, wait: bool = True) -> bool:
        """Take the lock; False if someone else has it and `wait` is false."""
        try:
            import fcntl
        except ImportError:
            raise LocalError("this system has no file locks that mull knows how to use") from None
        how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        while True:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(handle, how if wait else how | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                return False
            except BaseException:
                os.close(handle)
                raise
            if _is_at(handle, self._path):
                break
            os.close(handle)  # its last holder removed the file: whoever comes sees another one
        self.release()
        self._handle = handle
        return True

    def release(self, *, remove: bool = False) -> None:
        """Let go of it, if held; `remove` the file with it, if nothing else is to be kept there."""
        handle, self._handle = self._handle, None
        if handle is None:
            return
        if remove:
            self._path.unlink(missing_ok=True)
        os.close(handle)

    def __enter__(self) -> FileLock:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _is_at(handle: int, path: Path) -> bool:
    """Whether the open file is still the one of this name."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
