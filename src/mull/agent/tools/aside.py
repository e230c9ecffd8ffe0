"""Files for output that is too long to be shown, in a folder that is deleted when mull ends."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import tempfile
import weakref
from collections import deque
from pathlib import Path

__all__ = ["Aside"]

_MOST_FILES = 100
"""Maximum outputs kept at once; the oldest is deleted first."""


class Aside:
    """A temporary folder, created when first needed and readable only by its owner."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self._numbers = itertools.count(1)
        self._kept: deque[Path] = deque()

    def open(self, name: str = "output", *, for_good: bool = False) -> tuple[int, Path]:
        """A new file to write to. Unless it is `for_good`, it is deleted when many others
        follow.
        """
        if self.folder is None:
            self.folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="mull-")))
            weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        path = self.folder / f"{name}-{next(self._numbers)}.txt"
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        if not for_good:
            self._kept.append(path)
            if len(self._kept) > _MOST_FILES:
                with contextlib.suppress(OSError):
                    self._kept.popleft().unlink()
        return handle, path
