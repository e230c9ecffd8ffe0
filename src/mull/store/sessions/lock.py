"""One writer per session: a lock file that dies with its process.

Only who writes a session takes its lock. Who reads one asks `holder` at most.
"""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import Self

from mull.neutral.errors import SessionBusy, UnwritableError
from mull.store.files import make_parents, read_bytes
from mull.store.locks import FileLock

__all__ = ["SessionLock", "holder"]

_TRIES = 10
_PAUSE = 0.02


class SessionLock:
    """The right to write one session; taken when it is made.

    Raises:
        SessionBusy: another process has it, or another part of this one.
        UnwritableError: the lock file cannot be made.
    """

    def __init__(self, directory: Path, session: str) -> None:
        self._path = _path(directory, session)
        self._lock = FileLock(self._path)
        try:
            make_parents(directory)
            if not self._acquire():
                raise _busy(session, _pid(self._path))
            self._sign()
        except OSError as error:
            self._lock.release()
            raise UnwritableError(f"cannot lock {self._path}: {error.strerror}") from None

    def _sign(self) -> None:
        """Say who has it; on a full disk that stays unknown, and the lock holds all the same."""
        try:
            self._path.write_bytes(b"%d\n" % os.getpid())
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise

    def _acquire(self) -> bool:
        # a reader that asks for the holder has the lock for a moment: that is not a writer
        for _ in range(_TRIES):
            if self._lock.acquire(wait=False):
                return True
            time.sleep(_PAUSE)
        return False

    @property
    def is_held(self) -> bool:
        """Whether it was not released yet."""
        return self._lock.is_held

    def release(self) -> None:
        """Let others write."""
        self._lock.release(remove=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def holder(directory: Path, session: str) -> int | None:
    """The process that writes a session: its number, 0 if unknown, or None if nobody does."""
    path = _path(directory, session)
    if not path.exists():
        return None
    probe = FileLock(path)
    try:
        if probe.acquire(shared=True, wait=False):
            return None
        return _pid(path) or 0
    except OSError:
        return None  # it went away, or cannot be opened: then nobody could have locked it
    finally:
        probe.release()


def _path(directory: Path, session: str) -> Path:
    return directory / f"{session}.lock"


def _pid(path: Path) -> int | None:
    text = (read_bytes(path) or b"").strip()
    return int(text) if text.isdigit() else None


def _busy(session: str, pid: int | None) -> SessionBusy:
    where = "in this process" if pid == os.getpid() else f"in process {pid or 'unknown'}"
    return SessionBusy(
        f"session {session} is open {where}: close it there, or continue with a copy"
        f" (`mull sessions fork {session}`)",
        pid,
    )
