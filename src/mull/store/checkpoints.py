"""What files held before a session's tools changed them, so that a turn can be undone.

One folder for each session, for the user only: an index of changes, and the contents by their hash.
What is too large is known by its hash alone. The oldest turns go where it becomes too much.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import structs

from mull.neutral.blocks import Value
from mull.neutral.errors import ConfigError
from mull.store.files import read_bytes, remove, write_atomic
from mull.store.paths import data_dir

__all__ = ["LARGEST", "Change", "Checkpoints", "FileState", "checkpoints_of", "forget_checkpoints"]

LARGEST = 16 << 20
"""Bytes of one content that is kept."""
MOST = 256 << 20
"""Bytes that are kept of one session."""
_INDEX = "index.jsonl"
_AS_BYTES = "\0"
"""Before a path in hexadecimal digits: no path has it."""


class FileState(Value, frozen=True):
    """What stands at a path: a file with its permissions, or a symbolic link. `digest` is the hash
    of its content, or of where it leads."""

    digest: str
    kind: Literal["file", "link"] = "file"
    mode: int = 0o644


class Change(Value, frozen=True):
    """One path that the turn beginning at record `turn` changed. None is no file. A path that ends
    with a slash is a folder's, whose states have no digest; an empty one stands for whatever a
    command changed unobserved.
    """

    turn: int
    path: str
    before: FileState | None = None
    after: FileState | None = None


class Checkpoints:
    """The changes of one session, and the contents that are needed to take them back."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._adding = (
            threading.Lock()
        )  # commands that run side by side end in threads of their own

    def add(self, changes: Iterable[Change], contents: Iterable[bytes]) -> None:
        """Keep changes and the contents of both their sides; on disk when this returns.

        Raises:
            ConfigError: they cannot be written.
        """
        with self._adding:
            for content in contents:
                path = self._folder / digest_of(content)
                if len(content) <= LARGEST and not path.exists():
                    write_atomic(path, content)
            lines = _lines(changes)
            write_atomic(self._folder / _INDEX, (read_bytes(self._folder / _INDEX) or b"") + lines)
            self._prune()

    def changes(self) -> list[Change]:
        """All that is known, oldest first; a line that cannot be read is none."""
        found: list[Change] = []
        for line in (read_bytes(self._folder / _INDEX) or b"").splitlines():
            with contextlib.suppress(msgspec.MsgspecError, ValueError):
                change = msgspec.json.decode(line, type=Change)
                if change.path.startswith(_AS_BYTES):
                    path = os.fsdecode(bytes.fromhex(change.path[1:]))
                    change = structs.replace(change, path=path)
                found.append(change)
        return found

    def content(self, state: FileState) -> bytes | None:
        """What the state held; None where that was not kept, or is damaged."""
        content = read_bytes(self._folder / state.digest)
        return content if content is not None and digest_of(content) == state.digest else None

    def _prune(self) -> None:
        """Drop the oldest turns while there is too much, but never the last."""
        sizes = {one.name: one.stat().st_size for one in self._folder.iterdir()}
        changes = self.changes()
        while sum(sizes.values()) > MOST and changes[0].turn != changes[-1].turn:
            changes = [change for change in changes if change.turn != changes[0].turn]
            used = {s.digest for c in changes for s in (c.before, c.after) if s is not None}
            for name in sizes.keys() - used - {_INDEX}:
                remove(self._folder / name)
                del sizes[name]
            write_atomic(self._folder / _INDEX, _lines(changes))


def _lines(changes: Iterable[Change]) -> bytes:
    """Changes for the index. JSON has no words for a path that is not UTF-8."""
    lines: list[bytes] = []
    for change in changes:
        try:
            lines.append(msgspec.json.encode(change))
        except UnicodeEncodeError:
            path = _AS_BYTES + os.fsencode(change.path).hex()
            lines.append(msgspec.json.encode(structs.replace(change, path=path)))
    return b"".join(line + b"\n" for line in lines)


def digest_of(content: bytes) -> str:
    """The name of a content."""
    from hashlib import sha256

    return sha256(content).hexdigest()


def checkpoints_of(session: str) -> Checkpoints:
    """The checkpoints of a session; nothing is created before something is kept."""
    return Checkpoints(_folder(session))


def forget_checkpoints(session: str) -> None:
    """Delete all that is kept of a session.

    Raises:
        ConfigError: it cannot be deleted.
    """
    import shutil  # few commands delete anything

    folder = _folder(session)
    try:
        if os.path.lexists(folder):
            shutil.rmtree(folder)
    except OSError as error:
        raise ConfigError(f"cannot delete {folder}: {error.strerror or error}") from error


def _folder(session: str) -> Path:
    return data_dir() / "checkpoints" / session
