"""The content at a path, and restoring it: files, links, or nothing."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import NamedTuple

from mull.store.checkpoints import LARGEST, FileState, digest_of

__all__ = ["Found", "look_at", "put_at"]


class Found(NamedTuple):
    """A state, and its content; None if that is too large to store."""

    state: FileState
    content: bytes | None


def look_at(path: str | Path) -> Found | None:
    """What is there; None if nothing is, or nothing that can be restored.

    Raises:
        OSError: it cannot be read.
    """
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(found.st_mode):
        leads = os.fsencode(os.readlink(path))
        return Found(FileState(digest_of(leads), "link"), leads)
    if not stat.S_ISREG(found.st_mode):
        return None
    with open(path, "rb") as file:
        content = file.read()
    state = FileState(digest_of(content), mode=stat.S_IMODE(found.st_mode))
    return Found(state, content if len(content) <= LARGEST else None)


def put_at(path: str | Path, state: FileState | None, content: bytes) -> None:
    """Restore this state, completely or not at all; missing folders are created.

    Raises:
        OSError: it cannot be written.
    """
    import tempfile  # few turns are undone

    path = Path(path)
    if state is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():  # what was in it is gone
        for folder, _, _ in os.walk(path, topdown=False):
            os.rmdir(folder)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(b"" if state.kind == "link" else content)
        if state.kind == "link":
            os.unlink(temporary)
            os.symlink(os.fsdecode(content), temporary)
        else:
            os.chmod(temporary, state.mode)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
