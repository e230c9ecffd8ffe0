"""Detects what a command changed in a folder, by comparing its files before and after.

git knows the content of tracked files that are unchanged; the content of all others is remembered
before the command runs, as long as it is not too much. Without git that is all files. Of ignored
files small ones are remembered, such as `.env` or a database; folders that are ignored as a whole
and other repositories are skipped, also if a command makes them visible. Nothing is written to the
repository, and no program that it names is run.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Mapping
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from mull.agent.tools.states import UNKNOWN, Found, look_at, look_at_folder
from mull.agent.tools.walk import PASSED_OVER, Ignores, walk
from mull.store.checkpoints import LARGEST, FileState, digest_of
from mull.store.git import Git, Repository, find_repository, reading

__all__ = ["Changed", "Snapshot", "take_snapshot"]

MOST_FILES = 50_000
MOST_LOOSE = 2_000
"""Maximum files that git does not know as they are: each is read before a command."""
MOST_BYTES = 128 << 20
MOST_PLAIN_BYTES = 32 << 20
"""The same for a folder that is not under git, where every file is read."""
MOST_IGNORED = 200
LARGEST_IGNORED = 1 << 20
MOST_CHANGED = 500
_LINK = "120000"
_SUBMODULE = "160000"
_IGNORED = "!! "
_CACHED = "H"
_PASSED_OVER = frozenset(PASSED_OVER)
_NO_SUBMODULES = "--ignore-submodules=all"


class Changed(NamedTuple):
    """A path with its content before and after. That of a folder ends with a slash."""

    path: str
    before: Found | None
    after: Found | None


class _Tracked(NamedTuple):
    mode: str
    blob: str


class _Listed(NamedTuple):
    """The files of a folder: what git tracks, and what it does not know as it is. Without a
    repository that is everything. `unwatched` are ignored files that are not read, and folders,
    with a slash at the end.
    """

    found: Repository | None
    tracked: Mapping[str, _Tracked]
    loose: frozenset[str]
    unwatched: frozenset[str] = frozenset()


class Snapshot(NamedTuple):
    """A folder at one moment: what git tracks, the metadata of its files, and the content of those
    that git does not know.
    """

    root: Path
    tracked: Mapping[str, _Tracked]
    seen: Mapping[str, tuple[int, ...] | None]
    loose: Mapping[str, Found | None]
    folders: Mapping[str, FileState]
    unwatched: frozenset[str] = frozenset()
    is_in_git: bool = False

    def changed(self) -> list[Changed] | None:
        """What is different now; None if that is unknown, or too much."""
        now = _listed(self.root)
        if now is None:
            return None
        found = {path for path in (*now.tracked, *now.loose) if not self._is_unwatched(path)}
        seen = _signatures(self.root, {*self.seen, *found})
        paths = [path for path in sorted(seen) if self.seen.get(path) != seen[path]]
        folders = self._changed_folders(now)
        if len(paths) + len(folders) > MOST_CHANGED:
            return None
        with reading(now.found, exact=True) if now.found else nullcontext() as git:
            both = [
                Changed(
                    str(self.root / path),
                    self._before(git, path),
                    None if seen[path] is None else _look(self.root / path),
                )
                for path in paths
            ]
        return [one for one in both if _state(one.before) != _state(one.after)] + folders

    def _changed_folders(self, now: _Listed) -> list[Changed]:
        """Those with other permissions, those that are gone, and new ones, not in new ones."""
        there = _folders(self.root, now.unwatched).keys() - self.folders.keys()
        new = {path for path in there if not self._is_unwatched(f"{path}/")}
        new = {path for path in new if os.path.dirname(path) not in new}
        changed: list[Changed] = []
        for path in sorted({*self.folders, *new}):
            before, after = self.folders.get(path), look_at_folder(self.root / path)
            if before != after:
                sides = [None if side is None else Found(side, None) for side in (before, after)]
                changed.append(Changed(f"{self.root / path}/", *sides))
        return changed

    def _is_unwatched(self, path: str) -> bool:
        """Whether it may have been there before."""
        if path in self.seen:
            return False
        names = path.split("/")
        above = ("/".join(names[:end]) + "/" for end in range(1, len(names)))
        passed = not self.is_in_git and not _PASSED_OVER.isdisjoint(names)
        return passed or path in self.unwatched or any(one in self.unwatched for one in above)

    def _before(self, git: Git | None, path: str) -> Found | None:
        seen = self.seen.get(path)
        if seen is None or path in self.loose:
            return self.loose.get(path)
        if git is None:  # the repository is gone
            return Found(UNKNOWN, None)
        tracked = self.tracked[path]
        link = tracked.mode == _LINK
        how = () if link else ("--filters", f"--path={path}")
        content = git("cat-file", *(how or ("blob",)), tracked.blob)
        if content is not None and len(content) != seen[1]:  # git accepts other line ends, too
            content = git("cat-file", "blob", tracked.blob)
        if content is None or len(content) != seen[1]:
            return Found(UNKNOWN, None)
        state = FileState(digest_of(content), "link" if link else "file", stat.S_IMODE(seen[0]))
        return Found(FileState(state.digest, "link") if link else state, _kept(content))


def take_snapshot(root: Path) -> Snapshot | None:
    """The current state of the folder; None if it is too large to watch."""
    listed = _listed(root)
    if listed is None:
        return None
    found, tracked, loose, unwatched = listed
    seen = _signatures(root, {*tracked, *loose})
    size = sum(seen_as[1] for path in loose if (seen_as := seen[path]) is not None)
    if size > (MOST_BYTES if found else MOST_PLAIN_BYTES):
        return None
    contents = {path: None if seen[path] is None else _look(root / path) for path in loose}
    folders = _folders(root, unwatched)
    return Snapshot(root, tracked, seen, contents, folders, unwatched, found is not None)


def _listed(root: Path) -> _Listed | None:
    """What is below the folder; None if that is too much, or git does not answer."""
    found = find_repository(root)
    if found is not None:
        return _listed_by_git(found)
    return _listed_by_walk(root)


def _listed_by_walk(root: Path) -> _Listed | None:
    everything = walk(str(root), Ignores(str(root)))
    files = (one.path for one in everything if not one.is_folder)
    loose = frozenset(islice(files, MOST_LOOSE + 1))
    return _Listed(None, {}, loose) if len(loose) <= MOST_LOOSE else None


def _listed_by_git(found: Repository) -> _Listed | None:
    with reading(found) as git:
        listed = git("ls-files", "-s", "-v", "-z")
        # in a submodule git would do what that one's own config says
        how = ("--porcelain", "-z", "-uall", "--ignored=matching", "--no-renames", _NO_SUBMODULES)
        status = git("status", *how, ".")
    if listed is None or status is None:
        return None
    files = list(_split(status))
    folders = {line[3:] for line in files if line.endswith("/")}
    if any(found.prefix.startswith(one) for one in folders):  # all of it is ignored
        return _listed_by_walk(found.folder)
    unwatched = {one.removeprefix(found.prefix) for one in folders}
    files = [line for line in files if not line.endswith("/")]
    loose = {_name(line, found) for line in files if not line.startswith(_IGNORED)}
    tracked: dict[str, _Tracked] = {}
    for line in _split(listed):
        head, _, path = line.partition("\t")
        tag, mode, blob, _ = head.split(" ")
        if mode == _SUBMODULE:
            unwatched.add(f"{path}/")
            continue
        tracked[path] = _Tracked(mode, blob)
        if tag != _CACHED and os.path.lexists(found.folder / path):
            loose.add(path)  # git was told not to look whether it is as it knows it
    if len(tracked) > MOST_FILES or len(loose) > MOST_LOOSE:
        return None
    ignored = [_name(line, found) for line in files if line.startswith(_IGNORED)]
    small = {*islice((one for one in ignored if _is_small(found.folder / one)), MOST_IGNORED)}
    unwatched.update(ignored)
    return _Listed(found, tracked, frozenset(loose | small), frozenset(unwatched - small))


def _folders(root: Path, unwatched: Collection[str]) -> dict[str, FileState]:
    """The folders below that are watched."""
    found: dict[str, FileState] = {}
    for above, below, _ in os.walk(root):
        start = above.removeprefix(str(root)).lstrip("/")
        below[:] = (name for name in below if name not in _PASSED_OVER)
        for name in tuple(below):
            path = os.path.join(start, name)
            if f"{path}/" in unwatched:
                below.remove(name)
            elif (state := look_at_folder(root / path)) is not None:
                found[path] = state
    return found


def _name(line: str, found: Repository) -> str:
    return line[3:].removeprefix(found.prefix)


def _is_small(path: Path) -> bool:
    seen = _signature(path)
    return seen is not None and seen[1] <= LARGEST_IGNORED


def _split(data: bytes) -> Iterable[str]:
    return (os.fsdecode(line) for line in data.split(b"\0") if line)


def _signatures(root: Path, paths: Iterable[str]) -> dict[str, tuple[int, ...] | None]:
    """The metadata of each; what is behind a link is not there."""
    linked: dict[str, bool] = {"": False}

    def is_linked(folder: str) -> bool:
        if folder not in linked:
            above = folder.rpartition("/")[0]
            linked[folder] = is_linked(above) or os.path.islink(root / folder)
        return linked[folder]

    return {
        path: None if is_linked(path.rpartition("/")[0]) else _signature(root / path)
        for path in paths
    }


def _signature(path: Path) -> tuple[int, ...] | None:
    """The metadata of a file that changes with its content."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    if stat.S_ISDIR(found.st_mode):
        return None
    return found.st_mode, found.st_size, found.st_mtime_ns, found.st_ino, found.st_ctime_ns


def _look(path: Path) -> Found | None:
    try:
        return look_at(path)
    except OSError:
        return Found(UNKNOWN, None)


def _kept(content: bytes) -> bytes | None:
    return content if len(content) <= LARGEST else None


def _state(found: Found | None) -> FileState | None:
    return None if found is None else found.state
