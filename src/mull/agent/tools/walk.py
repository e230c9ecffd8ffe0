"""Every file below a folder, in one order, without following links."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from mull.agent.tools.ignore import Ignores

__all__ = ["Entry", "entries", "walk"]


class Entry(NamedTuple):
    """Something in a folder; `path` is relative to where the walk began."""

    path: str
    is_folder: bool
    is_link: bool = False


def walk(
    start: str, ignores: Ignores | None = None, gone: Callable[[], bool] = lambda: False
) -> Iterator[Entry]:
    """All that lies below, each folder sorted by its bytes and followed by what is in it."""
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
    """What lies in one folder; one that cannot be read is empty."""
    try:
        with os.scandir(folder) as found:
            listed = [
                Entry(one.name, one.is_dir(follow_symlinks=False), one.is_symlink())
                for one in found
            ]
    except OSError:
        return []
    return sorted(listed, key=lambda one: os.fsencode(one.path))
