"""Protected files after a command: those that it could change are put back, and those that it made
are found.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mull.agent.sandbox.territory import Bounds
from mull.agent.tools.states import Found, look_at, put_at

__all__ = ["Checked", "Guard", "set_aside"]

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
    those that cannot be locked are remembered.
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

    def check(self, now: Bounds, granted: tuple[str, ...] = ()) -> Checked:
        """What a command did to them, with these paths granted; changed ones are put back."""
        there = now.protected if self._locks else frozenset(_files(now.protected))
        made = [path for path in sorted(there - self._known) if not _is_in(path, granted)]
        put_back, lost = list[str](), list[str]()
        for path, before in self._states.items():
            if _is_in(path, granted) or _same(before, _look(path)):
                continue
            try:
                _restore(path, before)
                put_back.append(path)
            except OSError:
                lost.append(path)
        return Checked(tuple(made), tuple(put_back), tuple(lost))


def set_aside(paths: tuple[str, ...]) -> Path:
    """Move them to a new folder, which mull does not delete; returns it.

    Raises:
        OSError: one cannot be moved.
    """
    folder = Path(tempfile.mkdtemp(prefix="mull-set-aside-"))
    for number, path in enumerate(paths):
        if os.path.lexists(path):  # it may have been in another of them
            place = folder / str(number)
            place.mkdir()
            shutil.move(path, place / os.path.basename(path))
    return folder


def _files(paths: frozenset[str]) -> Iterator[str]:
    """The files and links among them, and in them."""
    for path in sorted(paths):
        if os.path.islink(path) or not os.path.isdir(path):
            yield path
            continue
        for folder, _, names in os.walk(path):
            yield from (os.path.join(folder, name) for name in sorted(names))


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
    above = os.path.dirname(path)
    if os.path.realpath(above) != above:  # writing there would be writing somewhere else
        raise OSError(f"{path} is behind a link now")
    if os.path.isdir(path) and not os.path.islink(path):
        raise OSError(f"{path} is a folder now")
    put_at(path, before.state, before.content)


def _is_in(path: str, places: tuple[str, ...]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)
