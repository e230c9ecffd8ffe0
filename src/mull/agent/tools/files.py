"""Opens, writes and removes files so that no link leads elsewhere.

`Workspace.locate` says where a path leads at one moment. A running command may replace it with a
symbolic link the next. So the path is walked folder by folder from the root, each opened inside the
last and none of them a link: what is opened is what was located, or nothing.

A file is replaced by a new one, which is complete or absent. Only where that would break a hard
link or lose the file's owner is it overwritten, and its content is restored if that fails.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

from mull.agent.tools.shown import shown_name
from mull.agent.tools.tool import ToolFailure
from mull.agent.tools.workspace import Located

__all__ = [
    "check_writable",
    "hard_links",
    "is_read_only",
    "kind_of",
    "mode_of",
    "open_folder",
    "open_to_read",
    "read_whole",
    "remove_file",
    "replace_file",
]


def _flags(*names: str) -> int:
    """Flags missing on this system are 0; `builtin_tools` rejects such systems."""
    return sum(getattr(os, name, 0) for name in names)


_FOLDER = _flags("O_PATH" if hasattr(os, "O_PATH") else "O_RDONLY", "O_DIRECTORY", "O_CLOEXEC")
# non-blocking: a FIFO without a writer would block the caller forever
_READ = _flags("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC")
_NEW = _flags("O_WRONLY", "O_CREAT", "O_EXCL", "O_NOFOLLOW", "O_CLOEXEC")
_OVER = _flags("O_RDWR", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC")
_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
_OWN_ATTRIBUTES = ("user.", "system.posix_acl")
_CHUNK = 1 << 20

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISCHR, "a character device"),
)


def open_to_read(place: Located) -> int:
    """A descriptor of a regular file.

    Raises:
        ToolFailure: it is something else, missing or not allowed.
    """
    with _folder_of(place) as (folder, name), _explained(place):
        _check_regular(os.stat(name, dir_fd=folder, follow_symlinks=False), place)
        handle = os.open(name, _READ, dir_fd=folder)
        try:
            _check_regular(os.fstat(handle), place)
        except ToolFailure:
            os.close(handle)
            raise
        return handle


def read_whole(place: Located, most: int) -> bytes | None:
    """The content of a file, or None if it does not exist.

    Raises:
        ToolFailure: it is not a regular file, cannot be read, or is larger than `most` bytes.
    """
    if kind_of(place) is None:
        return None
    with os.fdopen(open_to_read(place), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ToolFailure(
            f"{place.name} is larger than {most:,} bytes: too large to change this "
            "way, use a command"
        )
    return data


def replace_file(place: Located, data: bytes, mode: int | None = None) -> None:
    """Write the file completely or not at all; missing folders are created. Its mode, its owner and
    its other names (hard links) are kept; a new one has this mode, or the default.

    Raises:
        ToolFailure: it cannot be written; the old content is unchanged.
    """
    with _folder_of(place, make=True) as (folder, name), _explained(place):
        before = _stat(name, folder)
        if before is not None:
            _check_regular(before, place)
        if before is not None and (before.st_nlink > 1 or not _may_make(folder)):
            _write_over(name, folder, before, data)
            return
        temporary = f".{name[:100]}.{secrets.token_hex(4)}.tmp"
        handle = os.open(temporary, _NEW, 0o666, dir_fd=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                if mode is not None:
                    os.fchmod(handle, mode)
                kept = _keep_owner(handle, name, folder, before)
                os.fsync(handle)
            if before is not None and not kept:
                _write_over(name, folder, before, data)
                os.unlink(temporary, dir_fd=folder)
            else:
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise


def remove_file(place: Located) -> None:
    """Remove a regular file.

    Raises:
        ToolFailure: it is something else, missing, or cannot be removed.
    """
    with _folder_of(place) as (folder, name), _explained(place):
        _check_regular(os.stat(name, dir_fd=folder, follow_symlinks=False), place)
        os.unlink(name, dir_fd=folder)


def hard_links(place: Located) -> int:
    """How many names a file has; a write to one affects all, wherever they are."""
    try:
        return os.stat(place.path, follow_symlinks=False).st_nlink
    except OSError:
        return 1


def mode_of(place: Located) -> int:
    """The permission bits of a file."""
    return stat.S_IMODE(os.stat(place.path, follow_symlinks=False).st_mode)


def is_read_only(place: Located) -> bool:
    """Whether a file is marked read-only, for everybody or for us."""
    try:
        mode = os.stat(place.path, follow_symlinks=False).st_mode
        return not mode & _WRITABLE or not os.access(place.path, os.W_OK)
    except OSError:
        return False


def check_writable(place: Located) -> None:
    """Raises ToolFailure if this file cannot be written whoever allows it."""
    if not place.root.is_dir():
        raise ToolFailure(_gone(place))
    if is_file := os.path.lexists(place.path):
        _check_regular(os.stat(place.path, follow_symlinks=False), place)
    folder = place.path.parent
    while not os.path.lexists(folder) and folder != place.root:
        folder = folder.parent
    if not folder.is_dir():
        raise ToolFailure(f"{place.name}: {shown_name(folder.name)} is not a folder")
    may_make = os.access(folder, os.W_OK | os.X_OK)
    if not may_make and not (is_file and os.access(place.path, os.W_OK)):
        raise ToolFailure(f"{place.name}: permission denied")


def _write_over(name: str, folder: int, before: os.stat_result, data: bytes) -> None:
    """Overwrite the file in place."""
    with os.fdopen(_open_over(name, folder, before), "r+b", buffering=0) as file:
        held = _read_all(file)
        try:
            _fill(file, data)
        except OSError:
            _fill(file, held)
            raise


def _may_make(folder: int) -> bool:
    return os.access(".", os.W_OK | os.X_OK, dir_fd=folder)


def _open_over(name: str, folder: int, before: os.stat_result) -> int:
    """A descriptor to write exactly this file. The owner of a read-only file may do that: whether
    it is intended was asked before.
    """
    with contextlib.ExitStack() as later:
        mode = stat.S_IMODE(before.st_mode)
        if not mode & stat.S_IWUSR and before.st_uid == os.geteuid():
            reading = os.open(name, _READ, dir_fd=folder)
            later.callback(os.close, reading)
            os.fchmod(reading, mode | stat.S_IWUSR)
            later.callback(os.fchmod, reading, mode)
        handle = os.open(name, _OVER, dir_fd=folder)
        if not os.path.samestat(os.fstat(handle), before):
            os.close(handle)
            raise FileNotFoundError(errno.ENOENT, "it has changed since")
        return handle


def _read_all(file: FileIO) -> bytes:
    pieces: list[bytes] = []
    while data := file.read(_CHUNK):
        pieces.append(data)
    return b"".join(pieces)


def _fill(file: FileIO, data: bytes) -> None:
    file.seek(0)
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
    file.truncate(len(data))
    os.fsync(file.fileno())


def kind_of(place: Located) -> str | None:
    """`a file`, `a folder`, `a FIFO`…, or None if nothing is there."""
    try:
        with _explained(place):
            mode = os.stat(place.path, follow_symlinks=False).st_mode
    except ToolFailure as failure:
        if isinstance(failure.__cause__, FileNotFoundError | NotADirectoryError):
            return None
        raise
    return _kind(mode)


def open_folder(root: str | Path, path: Path, *, make: bool = False) -> int:
    """A descriptor of the folder, reached from its root without following links.

    Raises:
        OSError: it is missing, not a folder, or not allowed.
    """
    handle = os.open(root, _FOLDER)
    try:
        for part in path.relative_to(root).parts:
            inner = _enter(part, handle, make=make)
            os.close(handle)
            handle = inner
    except BaseException:
        os.close(handle)
        raise
    return handle


@contextlib.contextmanager
def _open_folder(place: Located, *, make: bool = False) -> Iterator[int]:
    """The same for a located one.

    Raises:
        ToolFailure: it is missing, not a folder, or not allowed.
    """
    with _explained(place):
        handle = open_folder(place.root, place.path, make=make)
    try:
        yield handle
    finally:
        os.close(handle)


@contextlib.contextmanager
def _folder_of(place: Located, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """The folder that contains a file, and its name there."""
    if place.path == place.root:
        raise ToolFailure(f"{place.name} is a folder, not a file")
    above = place._replace(path=place.path.parent)
    with _open_folder(above, make=make) as handle:
        yield handle, place.path.name


def _enter(part: str, folder: int, *, make: bool) -> int:
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(part, dir_fd=folder)
    return os.open(part, _FOLDER | _flags("O_NOFOLLOW"), dir_fd=folder)


def _stat(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _check_regular(found: os.stat_result, place: Located) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ToolFailure(f"{place.name} is {_kind(found.st_mode)}, not a file")


def _kind(mode: int) -> str:
    return next((name for test, name in _KINDS if test(mode)), "a file")


def _keep_attributes(handle: int, name: str, folder: int) -> bool:
    """Copy the extended attributes, including access lists; False if one cannot be copied."""
    if not hasattr(os, "listxattr"):
        return True
    try:
        old = os.open(name, _READ, dir_fd=folder)
    except OSError:
        return True
    try:
        own = [one for one in os.listxattr(old) if one.startswith(_OWN_ATTRIBUTES)]
        for attribute in own:
            os.setxattr(handle, attribute, os.getxattr(old, attribute))
    except OSError as error:
        return error.errno == errno.ENOTSUP
    finally:
        os.close(old)
    return True


def _keep_owner(handle: int, name: str, folder: int, before: os.stat_result | None) -> bool:
    """Whether the new file has the owner, the group, the mode and the attributes of the old one."""
    if before is None:
        return True
    new = os.fstat(handle)
    if (new.st_uid, new.st_gid) != (before.st_uid, before.st_gid):
        try:
            os.fchown(handle, before.st_uid, before.st_gid)
        except OSError:  # only root may give files away
            return False
    os.fchmod(handle, stat.S_IMODE(before.st_mode))
    return _keep_attributes(handle, name, folder)


def _gone(place: Located) -> str:
    return f"the working folder {shown_name(place.root)} no longer exists"


@contextlib.contextmanager
def _explained(place: Located) -> Iterator[None]:
    """File system errors, in words for the model."""
    try:
        yield
    except FileNotFoundError as error:
        if not place.root.is_dir():
            raise ToolFailure(_gone(place)) from error
        raise ToolFailure(f"{place.name} does not exist") from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            said = "is a symbolic link that loops, or has changed since"
            raise ToolFailure(f"{place.name} {said}") from error
        raise ToolFailure(f"{place.name}: {(error.strerror or str(error)).lower()}") from error
