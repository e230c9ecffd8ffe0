"""Reading and writing whole files, so that a reader finds the old content or the new, never half.

Every failure of the file system becomes a ConfigError that names the file and the reason.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from mull.neutral.errors import ConfigError

__all__ = ["make_parents", "read_bytes", "remove", "write_atomic"]


def read_bytes(path: Path) -> bytes | None:
    """The content of a file, or None if there is no such file.

    Raises:
        ConfigError: it is there and cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {_reason(error)}") from error


def remove(path: Path) -> None:
    """Delete a file; it is no error if it is gone already.

    Raises:
        ConfigError: it cannot be deleted.
    """
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot delete {path}: {_reason(error)}") from error


def write_atomic(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write the file whole or not at all; missing directories are made, for the user only.

    Raises:
        ConfigError: it could not be written; the old file is as it was.
    """
    try:
        target = Path(os.path.realpath(path))  # a linked file stays a link
        make_parents(target.parent)
        _replace(target, data, mode)
    except OSError as error:
        raise ConfigError(
            f"cannot write {path}: {_reason(error)}; what was there before is unchanged"
        ) from error


def _replace(target: Path, data: bytes, mode: int) -> None:
    import tempfile  # most commands write no file

    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_directory(target.parent)


def make_parents(directory: Path) -> None:
    """Make a directory and what is missing above it, for the user only."""
    missing = [d for d in (directory, *directory.parents) if not d.exists()]
    for parent in reversed(missing):  # mkdir(parents=True) would give only the last its mode
        parent.mkdir(mode=0o700, exist_ok=True)


def _sync_directory(directory: Path) -> None:
    """Make the new name last through a power cut, where the system lets a directory be opened."""
    with contextlib.suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
