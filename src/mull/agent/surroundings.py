"""The environment of a session, in a few sentences for the model: system, shell, state of the
repository.

The repository is only read. git itself is not run: what a cloned repository configures (hooks,
filters, a file system monitor) would run with it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from mull.neutral.patterns import pattern

__all__ = ["git_folder", "git_state", "platform_name"]

_LONGEST = 4096
_BRANCH = pattern(r"ref: refs/heads/([^\x00-\x20\x7f~^:?*\[\\]{1,200})\s*")
_COMMIT = pattern(r"([0-9a-f]{40}|[0-9a-f]{64})\s*")
_SHORT = 10
_UNDER_WAY = (
    ("MERGE_HEAD", "a merge"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("BISECT_LOG", "a bisection"),
)


def platform_name() -> str:
    """`Linux (x86_64)`."""
    known = os.uname()
    return f"{'macOS' if known.sysname == 'Darwin' else known.sysname} ({known.machine})"


def git_folder(top: Path) -> Path | None:
    """The git directory of a working folder with this top, if there is one."""
    place = top / ".git"
    if place.is_dir():
        return place
    head, _, path = _read(place).partition(": ")
    return top / path.strip() if head == "gitdir" and path.strip() else None


def git_state(top: Path) -> str:
    """`on the branch main`, `at the commit 0123456789`, and any operation in progress; empty if
    unknown.
    """
    folder = git_folder(top)
    return "" if folder is None else ", ".join(_facts(folder))


def _facts(folder: Path) -> Iterator[str]:
    head = _read(folder / "HEAD")
    if found := _BRANCH.fullmatch(head):
        yield f"on the branch {found[1]}"
    elif found := _COMMIT.fullmatch(head):
        yield f"at the commit {found[1][:_SHORT]}, on no branch"
    else:
        return
    yield from (f"in the middle of {what}" for name, what in _UNDER_WAY if (folder / name).exists())


def _read(path: Path) -> str:
    try:
        if not path.is_file():  # a FIFO would block forever
            return ""
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_LONGEST)
    except OSError:
        return ""
