"""Detects what a command changed in a folder under git, by comparing its files before and after.

git knows the content of tracked files that are unchanged; the content of all others is remembered
before the command runs. Ignored files are skipped. Nothing is written to the repository.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from mull.agent.tools.states import Found, look_at
from mull.store.checkpoints import LARGEST, FileState, digest_of

__all__ = ["Changed", "Snapshot", "take_snapshot"]

SECONDS = 5.0
"""Seconds that git may take for one query; a folder where it takes longer is not watched."""
MOST_FILES = 50_000
MOST_LOOSE = 2_000
"""Maximum files that git does not know as they are: each is read before a command."""
MOST_BYTES = 128 << 20
MOST_CHANGED = 500
_LINK = "120000"


class Changed(NamedTuple):
    """A path with its content before and after."""

    path: str
    before: Found | None
    after: Found | None


class _Tracked(NamedTuple):
    mode: str
    blob: str


class Snapshot(NamedTuple):
    """A folder under git at one moment: what git tracks, the metadata of its files, and the content
    of those that git does not know.
    """

    root: Path
    tracked: Mapping[str, _Tracked]
    seen: Mapping[str, tuple[int, ...] | None]
    loose: Mapping[str, Found | None]

    def changed(self) -> list[Changed] | None:
        """What is different now; None if that is unknown, or too much."""
        now = _listed(self.root)
        if now is None:
            return None
        tracked, loose = now
        paths = [
            path
            for path in sorted({*self.seen, *tracked, *loose})
            if self.seen.get(path) != _signature(self.root / path)
        ]
        if len(paths) > MOST_CHANGED:
            return None
        both = [
            Changed(str(self.root / path), self._before(path), _look(self.root / path))
            for path in paths
        ]
        return [one for one in both if _state(one.before) != _state(one.after)]

    def _before(self, path: str) -> Found | None:
        seen = self.seen.get(path)
        if seen is None or path in self.loose:
            return self.loose.get(path)
        tracked = self.tracked[path]
        link = tracked.mode == _LINK
        how = () if link else ("--filters", f"--path={path}")
        content = _git(self.root, "cat-file", *(how or ("blob",)), tracked.blob)
        if content is None:
            return Found(FileState("unknown"), None)
        state = FileState(digest_of(content), "link" if link else "file", stat.S_IMODE(seen[0]))
        return Found(FileState(state.digest, "link") if link else state, _kept(content))


def take_snapshot(root: Path) -> Snapshot | None:
    """The current state of the folder; None if it is not under git, or too large to watch."""
    listed = _listed(root)
    if listed is None:
        return None
    tracked, loose = listed
    seen = {path: _signature(root / path) for path in {*tracked, *loose}}
    if sum(found[1] for path in loose if (found := seen[path]) is not None) > MOST_BYTES:
        return None
    return Snapshot(root, tracked, seen, {path: _look(root / path) for path in loose})


def _listed(root: Path) -> tuple[dict[str, _Tracked], set[str]] | None:
    """What is tracked below the folder, and what git does not know as it is."""
    listed = _git(root, "ls-files", "-s", "-z")
    status = _git(root, "status", "--porcelain", "-z", "-uall", "--no-renames", ".")
    prefix = _git(root, "rev-parse", "--show-prefix")
    if listed is None or status is None or prefix is None:
        return None
    tracked: dict[str, _Tracked] = {}
    for line in _split(listed):
        head, _, path = line.partition("\t")
        mode, blob, _ = head.split(" ")
        if mode != "160000":  # a nested repository
            tracked[path] = _Tracked(mode, blob)
    below = os.fsdecode(prefix.rstrip(b"\n"))
    loose = {line[3:].removeprefix(below) for line in _split(status) if not line.endswith("/")}
    if len(tracked) > MOST_FILES or len(loose) > MOST_LOOSE:
        return None
    return tracked, loose


def _git(root: Path, *arguments: str) -> bytes | None:
    """The output of git; None if it fails, is missing, or takes too long."""
    quiet = ("--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.quotepath=false")
    unbound = {name: v for name, v in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ("git", *quiet, *arguments),
            cwd=root,
            env={**unbound, "GIT_TERMINAL_PROMPT": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _split(data: bytes) -> Iterable[str]:
    return (os.fsdecode(line) for line in data.split(b"\0") if line)


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
        return Found(FileState("unknown"), None)


def _kept(content: bytes) -> bytes | None:
    return content if len(content) <= LARGEST else None


def _state(found: Found | None) -> FileState | None:
    return None if found is None else found.state
