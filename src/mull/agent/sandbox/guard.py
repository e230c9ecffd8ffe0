"""Protected files after a command: those that it could change are put back, and those that it made
are found.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from mull.agent.sandbox.territory import Bounds
from mull.agent.tools.files import open_folder
from mull.agent.tools.states import Found, look_at, put_at
from mull.policy.protected import is_protected

__all__ = ["Checked", "Guard", "folders_of", "make_changeable", "set_aside"]

_MOST_FILES = 500
_MOST_BYTES = 16 << 20


class Checked(NamedTuple):
    """Absolute paths: protected files that are new, those that were changed and are put back, and
    those that were changed and could not be.
    """

    made: tuple[str, ...] = ()
    put_back: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(self)


class Guard:
    """The protected files of a working folder before a command. If the sandbox locks files, only
    those that cannot be locked are remembered. A locked file that another program replaces
    meanwhile, as editors and git do, is no longer locked: of those only that is noticed. And of
    hidden ones that could be moved.
    """

    def __init__(self, bounds: Bounds, *, locks_files: bool) -> None:
        self._locks = locks_files
        self._known = bounds.protected if locks_files else frozenset(_files(bounds.protected))
        self._states: dict[str, Found | None] = {}
        size = 0
        for path in bounds.links if locks_files else sorted(self._known):
            found = _look(path)
            size += len(found.content or b"") if found else 0
            if len(self._states) < _MOST_FILES and size <= _MOST_BYTES:
                self._states[path] = found
        sealed = bounds.locked if locks_files else bounds.hidden
        around = (*bounds.roots, *bounds.holders)
        self._open = [path for path in around if os.access(path, os.R_OK | os.X_OK)]
        self._seals = {path: _seal(path) for path in sealed if path not in self._states}

    def open(self) -> None:
        """A command may have closed folders, to hide what is in them."""
        make_changeable(path for path in self._open if not os.access(path, os.R_OK | os.X_OK))

    def check(self, now: Bounds, granted: tuple[str, ...] = ()) -> Checked:
        """What a command did to them, with these paths granted; changed ones are put back."""
        there = now.protected if self._locks else frozenset(_files(now.protected))
        new = [path for path in sorted(there - self._known) if not _is_in(path, granted)]
        made = [path for path in new if not _is_closed(path)]
        put_back, lost = list[str](), [path for path in new if _is_closed(path)]
        for path, before in self._states.items():
            if _is_in(path, granted) or _same(before, _look(path)):
                continue
            try:
                _restore(path, before)
                put_back.append(path)
            except OSError:
                lost.append(path)
        lost += [
            path
            for path, seal in self._seals.items()
            if not _is_in(path, granted) and _seal(path) != seal
        ]
        return Checked(tuple(made), tuple(put_back), tuple(lost))


def set_aside(paths: tuple[str, ...]) -> Path:
    """Move them to a new folder, which mull does not delete; returns it. No link on the way is
    followed: a command that still runs may put one there.

    Raises:
        OSError: one cannot be moved.
    """
    folder = Path(tempfile.mkdtemp(prefix="mull-set-aside-"))
    for number, path in enumerate(paths):
        above, name = os.path.split(path)
        try:
            handle = open_folder("/", Path(above))
        except FileNotFoundError:  # it was in another of them
            continue
        try:
            # elsewhere a descriptor has no path; the check still stands
            held = f"/proc/self/fd/{handle}/." if sys.platform == "linux" else above
            if os.path.lexists(f"{held}/{name}"):
                place = folder / str(number)
                place.mkdir()
                make_changeable(chain((held,), folders_of(f"{held}/{name}")))
                shutil.move(f"{held}/{name}", place / name)
        finally:
            os.close(handle)
    return folder


def make_changeable(folders: Iterable[str]) -> None:
    """Whatever modes a command gave them."""
    for folder in folders:
        if os.path.isdir(folder) and not os.path.islink(folder):
            with suppress(OSError):
                os.chmod(folder, stat.S_IMODE(os.stat(folder).st_mode) | stat.S_IRWXU)


def folders_of(path: str) -> Iterator[str]:
    """The folder and all below it; each is looked into after it was given."""
    yield path
    for above, below, _ in os.walk(path):
        yield from (os.path.join(above, name) for name in below)


def _files(paths: frozenset[str]) -> Iterator[str]:
    """The files and links among them, and in them."""
    for path in sorted(paths):
        if os.path.islink(path) or not os.path.isdir(path) or _is_closed(path):
            yield path
            continue
        for folder, _, names in os.walk(path):
            yield from (os.path.join(folder, name) for name in sorted(names))


def _is_closed(path: str) -> bool:
    """Whether it is a folder that is locked only because nobody can look into it now."""
    return (
        os.path.isdir(path)
        and not os.access(path, os.R_OK)
        and not is_protected(os.path.basename(path))
    )


def _seal(path: str) -> tuple[int, int] | None:
    """What changes with a file, or if something else is in its place."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_ino, 0 if stat.S_ISDIR(found.st_mode) else found.st_ctime_ns


def _look(path: str) -> Found | None:
    try:
        return look_at(path)
    except OSError:
        return None


def _same(before: Found | None, after: Found | None) -> bool:
    return (before and before.state) == (after and after.state)


def _restore(path: str, before: Found | None) -> None:
    if before is None or before.content is None:
        raise OSError(f"{path} was not kept")
    if os.path.isdir(path) and not os.path.islink(path):
        raise OSError(f"{path} is a folder now")
    put_at(path, before.state, before.content)


def _is_in(path: str, places: tuple[str, ...]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)
