"""Starts the server's process and waits for its first word.

The process gets a session of its own, so that Ctrl-C is not meant for it, and only those
variables of the environment that it needs.
"""

from __future__ import annotations

import os
import select
from collections.abc import Sequence
from pathlib import Path

from mull.neutral.errors import LocalError

__all__ = ["PIPE", "last_line", "spawn"]

PIPE = 3
"""Where the process finds the pipe for its first word."""
# the server needs nothing else, and least of all other providers' keys
_PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_PASSED_ON_BEGINNING = ("LC_", "PYTHON")


def spawn(command: Sequence[str], log: Path, seconds: float) -> tuple[int, str]:
    """Run a command and wait for its first word; nothing, if it ended without one.

    Raises:
        LocalError: it cannot be run.
    """
    ours, theirs = os.pipe()
    try:
        try:
            child = _run(command, log, theirs)
        finally:
            os.close(theirs)
        return child, _read(ours, seconds)
    finally:
        os.close(ours)


def _run(command: Sequence[str], log: Path, pipe: int) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions: list[tuple[int, ...] | tuple[int, int, str, int, int]] = [
        (os.POSIX_SPAWN_DUP2, pipe, PIPE),
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), flags, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in _PASSED_ON or name.startswith(_PASSED_ON_BEGINNING)
    }
    try:
        return os.posix_spawn(
            command[0], tuple(command), environment, file_actions=actions, setsid=True
        )
    except OSError as error:
        raise LocalError(f"cannot run {command[0]}: {error.strerror}") from None


def _read(pipe: int, seconds: float) -> str:
    """What the child says, or nothing if it ends first."""
    if not select.select([pipe], [], [], seconds)[0]:
        return f"it took longer than {seconds:g} seconds"
    return os.read(pipe, 4096).decode(errors="replace").strip()


def last_line(log: Path) -> str:
    """The last thing the process said in its log."""
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1].strip()[:200] if lines else "its process ended without a word"
