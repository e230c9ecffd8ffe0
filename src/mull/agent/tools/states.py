"""The content at a path, and restoring it: files, links, or nothing."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import NamedTuple

from mull.store.checkpoints import LARGEST, FileState, digest_of

__all__ = ["UNKNOWN", "Found", "look_at", "look_at_folder", "put_at"]

UNKNOWN = FileState("unknown")
"""The state of a file that could not be read."""


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


def look_at_folder(path: str | Path) -> FileState | None:
    """The folder that is there, with its permissions; None if none is."""
    try:
        found = os.lstat(str(path).rstrip("/"))
    except OSError:
        return None
    return FileState("", mode=stat.S_IMODE(found.st_mode)) if stat.S_ISDIR(found.st_mode) else None


def put_at(path: str | Path, state: FileState | None, content: bytes) -> None:
    """Restore this state, completely or not at all; missing folders are created, and no link on
    the way is followed: a command that still runs may put one there.

    Raises:
        OSError: it cannot be written.
    """
    from mull.agent.tools.files import open_folder  # few turns are undone

    path = Path(path)
    try:
        folder = open_folder("/", path.parent, make=state is not None)
    except FileNotFoundError:
        if state is None:
            return
        raise
    try:
        if state is not None:
            _put(folder, path.name, state, content)
        else:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path.name, dir_fd=folder)
    finally:
        os.close(folder)


def _put(folder: int, name: str, state: FileState, content: bytes) -> None:
    import secrets

    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            for _, inner, _, at in os.fwalk(name, topdown=False, dir_fd=folder):
                for one in inner:  # what was in it is gone
                    os.rmdir(one, dir_fd=at)
            os.rmdir(name, dir_fd=folder)
    temporary = f".{name[:100]}.{secrets.token_hex(4)}"
    try:
        if state.kind == "link":
            os.symlink(os.fsdecode(content), temporary, dir_fd=folder)
        else:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with open(os.open(temporary, flags, 0o600, dir_fd=folder), "wb") as file:
                file.write(content)
                os.fchmod(file.fileno(), state.mode)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
