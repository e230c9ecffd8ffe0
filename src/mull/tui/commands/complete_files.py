"""File completion after an @: any file of the project by some letters of its path, and files
elsewhere folder by folder.

Files named by ignore files are not offered. The list is refreshed after a few seconds, and its size
and time are bounded, because the user is waiting for it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator

from mull.agent.tools.walk import walk
from mull.tui.screen.front import Item

__all__ = ["ProjectFiles", "file_offers"]

MOST_FILES = 200
_MOST_SEEN = 5000
"""Maximum entries examined in a folder."""
_MOST_LISTED = 50_000
_LONGEST = 2.0
"""Seconds after which listing a project stops with what it has found."""
_FRESH = 5.0
"""Seconds for which a list is reused."""
_HIDDEN = 5
"""Penalty for hidden files, unless the typed text starts with a dot."""
_ELSEWHERE = ("/", "~", "./", "../")


class ProjectFiles:
    """The files and folders below a folder."""

    def __init__(self, folder: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.folder = folder
        self._clock = clock
        self._listed: float | None = None
        self._names: list[tuple[str, str]] = []

    def look(self) -> None:
        """List the project, unless that was done a moment ago. This may take a moment."""
        now = self._clock()
        if self._listed is None or now - self._listed > _FRESH:
            self._names = [(name, name.lower()) for name in _listed(self.folder, self._clock)]
            self._listed = self._clock()

    def find(self, typed: str) -> Iterator[Item]:
        """Matching files, the best first; a path that leads outside is followed level by level."""
        if typed.startswith(_ELSEWHERE) or typed in ("~", "..", "."):
            yield from file_offers(self.folder, typed)
            return
        self.look()
        for name in _best(self._names, typed.lower()):
            yield Item(name, "folder" if name.endswith("/") else "")


def _listed(folder: str, clock: Callable[[], float]) -> Iterator[str]:
    """The names below a folder, folders with a slash, those near the top first."""
    until = clock() + _LONGEST
    found = []
    for entry in walk(folder, gone=lambda: clock() > until):
        if entry.path.isprintable():
            found.append(entry.path + ("/" if entry.is_folder else ""))
        if len(found) >= _MOST_LISTED:
            break
    return iter(sorted(found, key=lambda name: (name.rstrip("/").count("/"), name.lower())))


def _best(names: Iterable[tuple[str, str]], typed: str) -> list[str]:
    """The matching names, those with the letters closest together first; equal matches keep their
    order.
    """
    spread = re.compile("[^\n]*?".join(map(re.escape, typed))).search
    ranked = []
    for at, (name, lower) in enumerate(names):
        rank, gaps = _rank(lower, typed), 0
        if rank is None and (found := spread(lower)):
            rank, gaps = 4, found.end() - found.start()
        if rank is not None and "/." in f"/{lower}" and not typed.startswith("."):
            rank = rank + _HIDDEN if typed else None
        if rank is not None:
            ranked.append((rank, gaps, at, name))
    return [name for *_, name in sorted(ranked)[:MOST_FILES]]


def _rank(name: str, typed: str) -> int | None:
    at = name.find(typed)
    if at < 0:
        return None
    start = name.rstrip("/").rfind("/") + 1
    last = name[start:]
    if last.startswith(typed):
        return 0
    if name.startswith(typed):
        return 1
    return 2 if typed in last else 3


def file_offers(folder: str, typed: str) -> Iterator[Item]:
    """Entries of one folder that start with the typed text, folders with a slash; hidden ones only
    after a dot.
    """
    parent, _, start = typed.rpartition("/")
    parent = typed[: len(typed) - len(start)]
    place = os.path.join(folder, os.path.expanduser(parent))
    try:
        with os.scandir(place) as found:
            entries = [entry for _, entry in zip(range(_MOST_SEEN), found, strict=False)]
    except (OSError, ValueError):
        return
    fitting = sorted(
        (
            (not _is_folder(entry), entry.name)
            for entry in entries
            if entry.name.lower().startswith(start.lower())
            and (start.startswith(".") or not entry.name.startswith("."))
            and entry.name.isprintable()
        ),
        key=lambda one: (one[1].lower(), one[0]),
    )
    for is_file, name in fitting[:MOST_FILES]:
        yield Item(parent + name + ("" if is_file else "/"), "" if is_file else "folder")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
