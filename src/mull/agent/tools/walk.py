"""Every file below a folder, in a fixed order, without following links; and which are skipped.

Version control folders, caches, and files named by .gitignore are skipped. The rules of .gitignore
apply only inside a git repository, as in git, from its top folder down. A file or folder that a
call names itself is never skipped.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from mull.policy.globs import path_matches, text_matches

__all__ = ["PASSED_OVER", "Entry", "Ignores", "entries", "walk"]

PASSED_OVER = (
    ".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__", ".venv", ".tox",
    ".mypy_cache", ".pytest_cache", ".ruff_cache",
)  # fmt: skip
_FILE = ".gitignore"
_LARGEST = 1 << 20
_TRAILING_SPACES = re.compile(r"(?<!\\) +$")


class _Line(NamedTuple):
    pattern: str
    negated: bool
    folders_only: bool
    anchored: bool

    def fits(self, path: str, is_folder: bool) -> bool:
        if self.folders_only and not is_folder:
            return False
        if self.anchored:
            return path_matches(self.pattern, path)
        return text_matches(self.pattern, path.rpartition("/")[2])


class Ignores:
    """The rules of one folder; `inside` returns those of a subfolder."""

    def __init__(
        self, folder: str, above: Ignores | None = None, *, in_repository: bool = False
    ) -> None:
        self._folder = folder
        self._above = above
        self._lines = list(_read(os.path.join(folder, _FILE))) if in_repository else []
        self._in_repository = in_repository

    @classmethod
    def of(cls, folder: str) -> Ignores:
        """The rules of a folder, with those of the repository that contains it."""
        above = [folder]
        while not os.path.lexists(os.path.join(above[-1], ".git")):
            parent = os.path.dirname(above[-1])
            if parent == above[-1]:
                return cls(folder)
            above.append(parent)
        rules: Ignores | None = None
        for path in reversed(above):
            rules = cls(path, rules, in_repository=True)
        assert rules is not None
        return rules

    def inside(self, name: str) -> Ignores:
        """The rules of a subfolder."""
        path = os.path.join(self._folder, name)
        return Ignores(path, self, in_repository=self._in_repository)

    def ignores(self, name: str, is_folder: bool) -> bool:
        """Whether this name in this folder is skipped."""
        if name in PASSED_OVER:
            return True
        path = name
        rules: Ignores | None = self
        while rules is not None:
            for line in reversed(rules._lines):
                if line.fits(path, is_folder):
                    return not line.negated
            path = f"{os.path.basename(rules._folder)}/{path}"
            rules = rules._above
        return False


def _read(path: str) -> Iterator[_Line]:
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _LARGEST:
            return
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().split("\n")
    except OSError:
        return
    for line in lines:
        parsed = _parse(line.removesuffix("\r"))
        if parsed is not None:
            yield parsed


def _parse(line: str) -> _Line | None:
    line = _TRAILING_SPACES.sub("", line)
    if not line or line.startswith("#"):
        return None
    negated = line.startswith("!")
    pattern = line[negated:]
    folders_only = pattern.endswith("/")
    pattern = pattern.rstrip("/") if folders_only else pattern
    anchored = "/" in pattern
    pattern = pattern.removeprefix("/")
    if not pattern:
        return None
    return _Line(pattern, negated, folders_only, anchored)


class Entry(NamedTuple):
    """An entry of a folder; `path` is relative to where the walk started."""

    path: str
    is_folder: bool
    is_link: bool = False


def walk(
    start: str, ignores: Ignores | None = None, gone: Callable[[], bool] = lambda: False
) -> Iterator[Entry]:
    """Everything below, each folder sorted by bytes and followed by its content."""
    rules = ignores or Ignores.of(start)
    open_folders = [("", rules, iter(entries(start)))]
    while open_folders and not gone():
        folder, rules, left = open_folders[-1]
        found = next(left, None)
        if found is None:
            open_folders.pop()
            continue
        name, is_folder, is_link = found
        if rules.ignores(name, is_folder):
            continue
        path = f"{folder}{name}"
        yield Entry(path, is_folder, is_link)
        if is_folder:
            inner = iter(entries(os.path.join(start, path)))
            open_folders.append((f"{path}/", rules.inside(name), inner))


def entries(folder: str) -> list[Entry]:
    """The entries of one folder; an unreadable one is empty."""
    try:
        with os.scandir(folder) as found:
            listed = [
                Entry(one.name, one.is_dir(follow_symlinks=False), one.is_symlink())
                for one in found
            ]
    except OSError:
        return []
    return sorted(listed, key=lambda one: os.fsencode(one.path))
