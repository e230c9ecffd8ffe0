"""The boundary: which files tools may touch, and opening them so that no link leads elsewhere.

A path counts by where it really leads, symbolic links and `..` resolved, also through folders
that do not exist yet. What lies outside the working folder and the folders added to it does not
exist for tools, neither for reading nor for writing. The one exception is what `run` itself put
aside because it was too long.

`Workspace.locate` says where a path leads at one moment. A running command may put a symbolic
link in its way the next. So the way is walked folder by folder from the root, each opened inside
the last and none of them a link: what is opened is what was located, or nothing.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import secrets
import shutil
import stat
import tempfile
import threading
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from mull.agent.tools.shown import one_line, shown_name
from mull.agent.tools.tool import ToolFailure
from mull.neutral.errors import LocalError

__all__ = ["Located", "Workspace", "kind_of", "open_to_read", "read_whole", "replace_file"]


class Located(NamedTuple):
    """A path inside the boundary, free of links; `name` is how the model and people know it."""

    root: Path
    path: Path
    name: str


class Workspace:
    """A working folder, and more folders that tools may use as well."""

    def __init__(self, root: str | os.PathLike[str], extra_roots: Sequence[Path] = ()) -> None:
        self.root = _folder(root)
        self.extra_roots = tuple(_folder(extra) for extra in extra_roots)
        self.changing = threading.Lock()
        """Held while a file is read, changed and written: calls run side by side."""
        self._aside: Path | None = None
        self._numbers = itertools.count(1)

    def resolve(self, path: str) -> Path:
        """Where the path really leads.

        Raises:
            ToolFailure: outside.
        """
        return self.locate(path).path

    def locate(self, path: str, *, to_read: bool = False) -> Located:
        """The path and the root that it lies in; to read, `run`'s long outputs are inside too.

        Raises:
            ToolFailure: it leads outside, or is no path at all.
        """
        try:
            written = os.path.join(self.root, os.path.expanduser(path))
            real = Path(os.path.realpath(written))
        except (ValueError, OSError):
            raise ToolFailure(f"{one_line(repr(path))} is not a path") from None
        aside = (self._aside,) if to_read and self._aside else ()
        for root in (self.root, *self.extra_roots, *aside):
            if real.is_relative_to(root):
                return Located(root, real, self.name(real))
        raise ToolFailure(self._outside(path, real))

    def name(self, path: Path) -> str:
        """How the path is shown: relative to the working folder where it lies in it."""
        inside = path.is_relative_to(self.root)
        return shown_name(path.relative_to(self.root).as_posix() if inside else path)

    def put_aside(self) -> tuple[int, Path]:
        """A new file for an output that is too long; gone when the workspace is."""
        if self._aside is None:
            self._aside = Path(os.path.realpath(tempfile.mkdtemp(prefix="mull-")))
            weakref.finalize(self, shutil.rmtree, self._aside, ignore_errors=True)
        path = self._aside / f"output-{next(self._numbers)}.txt"
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), path

    def check(self) -> None:
        """Raises ToolFailure if the working folder is gone."""
        if not self.root.is_dir():
            raise ToolFailure(
                f"the working folder {shown_name(self.root)} does not exist any more:"
                " nothing can be done in it; tell the user"
            )

    def _outside(self, path: str, real: Path) -> str:
        leads = "" if os.path.isabs(path) else f" (it leads to {one_line(shown_name(real))})"
        allowed = " and ".join(shown_name(root) for root in (self.root, *self.extra_roots))
        return (
            f"{one_line(path)} is outside the working folder{leads}: only files in {allowed} can"
            " be used, with paths relative to it"
        )


def _folder(path: str | os.PathLike[str]) -> Path:
    real = Path(os.path.realpath(path))
    if not real.is_dir():
        raise LocalError(f"{shown_name(path)} is not a folder: tools need one to work in")
    return real


def _flags(*names: str) -> int:
    """Flags that a system does not have count as nothing; `builtin_tools` refuses such systems."""
    return sum(getattr(os, name, 0) for name in names)


_FOLDER = _flags("O_PATH" if hasattr(os, "O_PATH") else "O_RDONLY", "O_DIRECTORY", "O_CLOEXEC")
# not blocking: a FIFO without a writer would hold the caller for ever
_READ = _flags("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC")
_NEW = _flags("O_WRONLY", "O_CREAT", "O_EXCL", "O_NOFOLLOW", "O_CLOEXEC")

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
    """The content of a file, or None if there is no such file.

    Raises:
        ToolFailure: it is no regular file, cannot be read, or is larger than `most` bytes.
    """
    if kind_of(place) is None:
        return None
    with os.fdopen(open_to_read(place), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ToolFailure(
            f"{place.name} is larger than {most:,} bytes: too large to change this way,"
            " use a command"
        )
    return data


def replace_file(place: Located, data: bytes) -> None:
    """Write the file whole or not at all; missing folders are made, its mode and owner are kept.

    Raises:
        ToolFailure: it cannot be written; what was there is as it was.
    """
    with _folder_of(place, make=True) as (folder, name), _explained(place):
        before = _stat(name, folder)
        if before is not None:
            _check_regular(before, place)
        temporary = f".{name[:100]}.{secrets.token_hex(4)}.tmp"
        handle = os.open(temporary, _NEW, 0o666, dir_fd=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                _keep_owner(handle, before)
                os.fsync(handle)
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise


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


@contextlib.contextmanager
def _open_folder(place: Located, *, make: bool = False) -> Iterator[int]:
    """A descriptor of the folder, reached from its root without passing a link.

    Raises:
        ToolFailure: it is missing, no folder, or not allowed.
    """
    with _explained(place):
        handle = os.open(place.root, _FOLDER)
        try:
            for part in place.path.relative_to(place.root).parts:
                inner = _enter(part, handle, make=make)
                os.close(handle)
                handle = inner
        except BaseException:
            os.close(handle)
            raise
    try:
        yield handle
    finally:
        os.close(handle)


@contextlib.contextmanager
def _folder_of(place: Located, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """The folder that a file lies in, and its name there."""
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


def _keep_owner(handle: int, before: os.stat_result | None) -> None:
    if before is None:
        return
    with contextlib.suppress(OSError):  # only root may give files away
        os.fchown(handle, before.st_uid, before.st_gid)
    os.fchmod(handle, stat.S_IMODE(before.st_mode))


@contextlib.contextmanager
def _explained(place: Located) -> Iterator[None]:
    """Failures of the file system, in words for the model."""
    try:
        yield
    except FileNotFoundError as error:
        if not place.root.is_dir():
            gone = shown_name(place.root)
            raise ToolFailure(f"the working folder {gone} does not exist any more") from error
        raise ToolFailure(f"{place.name} does not exist") from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            said = "is a symbolic link that leads round in circles, or was changed meanwhile"
            raise ToolFailure(f"{place.name} {said}") from error
        raise ToolFailure(f"{place.name}: {(error.strerror or str(error)).lower()}") from error
