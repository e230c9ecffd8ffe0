"""Undoes what a session's tools did to files, and redoes it.

A file is restored only if it still has the content that the tools left: a file that someone else
has changed since is reported and left alone. So is a command whose changes were not observed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mull.agent.tools.shown import shown_name
from mull.agent.tools.states import UNKNOWN, Found, look_at, look_at_folder, put_at
from mull.neutral.blocks import Value
from mull.neutral.errors import ConfigError
from mull.store.checkpoints import Change, Checkpoints, FileState

if TYPE_CHECKING:
    from mull.agent.tools.snapshot import Changed, Snapshot

__all__ = ["Keeper", "Restored", "Restoring", "plan_restoring"]

CHANGED_SINCE = "a command or another program has changed it since"
UNOBSERVED = "a command ran in the background, or the folder is too large to watch"
NOT_KEPT = "too large to save"
NOT_READ = "its earlier content could not be read"
A_FOLDER = "only files are restored, no folders and no permissions of folders"
_LARGEST_SHOWN = 1 << 20
_MOST_SHOWN = 50
"""Files of a command's diff."""


class Keeper:
    """Stores what tools change during the current turn. `turn` is where it starts."""

    def __init__(
        self, checkpoints: Checkpoints, turn: Callable[[], int], warn: Callable[[str], None]
    ) -> None:
        self.checkpoints = checkpoints
        self._turn = turn
        self._warn = warn

    def keep(self, changed: Iterable[Changed | tuple[str, Found | None, Found | None]]) -> None:
        """Store a change, before and after; a full disk costs the undo, not the change."""
        turn, changes, contents = self._turn(), list[Change](), list[bytes]()
        for path, before, after in changed:
            states = [None if found is None else found.state for found in (before, after)]
            changes.append(Change(turn, path, *states))
            found = (one for one in (before, after) if one is not None)
            contents += [one.content for one in found if one.content is not None]
        if changes:
            self._add(changes, contents)

    def keep_unobserved(self) -> None:
        """Store that a command ran whose changes are unknown, so that undoing the turn says so."""
        change = Change(self._turn(), "")
        if change not in self.checkpoints.changes():
            self._add([change], ())

    def _add(self, changes: Sequence[Change], contents: Iterable[bytes]) -> None:
        try:
            self.checkpoints.add(changes, contents)
        except ConfigError as error:
            self._warn(f"/undo cannot restore what just changed: {error}")

    def keep_changed(self, since: Snapshot | None) -> str:
        """Store what differs from a snapshot, if that can be determined; returns the diff."""
        changed = None if since is None else since.changed()
        if changed is None:
            self.keep_unobserved()
        if since is None:
            return ""
        if changed is None:
            self._warn("/undo cannot restore what this command changed: it is too much")
            return ""
        self.keep(changed)
        return _diff(changed, since.root)


class Restored(Value, frozen=True):
    """A restored file, with the number of lines added and removed, or the reason why it was not
    restored. Without a path, it is about files that commands changed unobserved.
    """

    path: str
    added: int = 0
    removed: int = 0
    problem: str = ""


class _Step(NamedTuple):
    path: str
    now: FileState | None
    then: FileState | None


class Restoring:
    """Files to restore: checked first, then written."""

    def __init__(self, steps: Sequence[_Step], broken: Iterable[str], kept: Checkpoints) -> None:
        self._kept = kept
        self._leaving = {one.path for one in steps if one.now and one.now.kind == "link"}
        self._ready: list[tuple[_Step, bytes]] = []
        self.files: list[Restored] = [Restored(path, problem=CHANGED_SINCE) for path in broken]
        """What happens to each."""
        self._folders = [step for step in steps if step.path.endswith("/")]
        for step in steps:
            if step not in self._folders:
                self.files.append(self._look(step))

    def run(self) -> list[Restored]:
        """Restore them; returns what happened to each. What goes makes room for what comes."""
        failed: dict[str, str] = {}
        self._ready.sort(key=lambda one: one[0].then is not None)
        for step, content in self._ready:
            try:
                put_at(step.path, step.then, content)
            except OSError as error:
                failed[step.path] = error.strerror or str(error)
        files = [
            Restored(one.path, problem=failed[one.path]) if one.path in failed else one
            for one in self.files
        ]
        others = [one.path for one in self._folders if look_at_folder(one.path) != one.then]
        return files + [Restored(path, problem=A_FOLDER) for path in others]

    def _look(self, step: _Step) -> Restored:
        above = Path(step.path).parents
        link = next((str(one) for one in reversed(above) if one.is_symlink()), "")
        is_moved = bool(link) and link not in self._leaving
        try:
            found = None if link else look_at(step.path)
        except OSError as error:
            return Restored(step.path, problem=error.strerror or str(error))
        if is_moved or (found.state if found else None) != step.now:
            return Restored(step.path, problem=CHANGED_SINCE)
        content = b"" if step.then is None else self._kept.content(step.then)
        if content is None:
            return Restored(step.path, problem=NOT_READ if step.then == UNKNOWN else NOT_KEPT)
        self._ready.append((step, content))
        from mull.agent.tools.compare import diff  # few turns are undone

        held = found.content if found and found.content else b""
        change = diff(_text(held), _text(content), step.path)
        return Restored(step.path, change.added, change.removed)


def plan_restoring(
    kept: Checkpoints, turns: Iterable[int], *, again: bool = False
) -> Restoring | None:
    """What undoing these turns, or redoing them (`again`), does to files; None if nothing."""
    wanted = set(turns)
    first: dict[str, FileState | None] = {}
    last: dict[str, FileState | None] = {}
    broken: list[str] = []
    unobserved = False
    for change in kept.changes():
        if change.turn not in wanted:
            continue
        path = change.path
        if not path:
            unobserved = not again  # left as they were, so there is nothing to redo
        elif path not in first:
            first[path], last[path] = change.before, change.after
        elif change.before == last[path]:
            last[path] = change.after
        elif change.after != last[path] and path not in broken:
            broken.append(path)  # someone else changed it in between
    sides = (first, last) if again else (last, first)
    steps = [
        _Step(path, sides[0][path], sides[1][path])
        for path in first
        if path not in broken and first[path] != last[path]
    ]
    if not (steps or broken or unobserved):
        return None
    restoring = Restoring(steps, broken, kept)
    if unobserved:
        restoring.files.append(Restored("", problem=UNOBSERVED))
    return restoring


def _diff(changed: Sequence[Changed], root: Path) -> str:
    """What a command changed, for the user; a file that cannot be compared is only named."""
    from mull.agent.tools.compare import diff  # few commands change anything

    parts: list[str] = []
    files = [one for one in changed if not one.path.endswith("/")]
    for path, *sides in files[:_MOST_SHOWN]:
        name = shown_name(os.path.relpath(path, root))
        before, after = (b"" if side is None else side.content for side in sides)
        if before is None or after is None or len(before) + len(after) > _LARGEST_SHOWN:
            parts.append(f"{name} changed: too large to show")
        elif b"\0" in before + after:
            parts.append(f"{name} changed: not text")
        else:
            parts.append(diff(_text(before), _text(after), name).text or f"{name} changed")
    return "\n".join(parts)


def _text(content: bytes) -> str:
    """The text whose lines are counted: empty for a binary file."""
    return "" if b"\0" in content else content.decode("utf-8", "replace")
