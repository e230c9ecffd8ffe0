"""Paths as they are typed: what lies in a folder, from the folder that the session works in."""

from __future__ import annotations

import os
from collections.abc import Iterator

from mull.tui.screen.front import Item

__all__ = ["file_offers"]

MOST_FILES = 200
_MOST_SEEN = 5000
"""Entries of a folder that are looked at: somebody waits for this."""


def file_offers(folder: str, typed: str) -> Iterator[Item]:
    """Entries that begin as typed, folders with a slash; hidden ones only behind a dot."""
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
