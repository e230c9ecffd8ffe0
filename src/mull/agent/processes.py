"""The processes of one session, and a signal to all of them.

A program started in its own session can be ended as a whole. The process group is not enough:
`timeout` and shells with job control leave theirs. Only a process that created its own session, a
daemon, survives; if the system does not tell who is in a session, its group is used.
"""

from __future__ import annotations

import contextlib
import os
import signal

__all__ = ["members", "signal_all"]

_MOST_LOOKS = 50


def members(session: int) -> list[int]:
    """The living processes of the session that this process started, for `os.kill`."""
    if os.path.isdir("/proc/self"):
        return [pid for pid in map(int, _numbers()) if _session_of(pid) == session]
    return [-session] if _has_group(session) else []


def signal_all(session: int, number: signal.Signals) -> bool:
    """Send a signal to all of them; returns whether there were any.

    A process that is forked during the look is missing from the list, so it looks again until there
    is no new one, but gives up on a program that ignores the signal and keeps forking.
    """
    told: set[int] = set()
    for _ in range(_MOST_LOOKS):
        new = [member for member in members(session) if member not in told]
        if not new:
            break
        for member in new:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(member, number)
        told.update(new)
    return bool(told)


def _has_group(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _numbers() -> list[str]:
    return [name for name in os.listdir("/proc") if name.isdigit()]


def _session_of(pid: int) -> int | None:
    """The session of a process that is not a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # the name is in parentheses and may contain anything, including parentheses
            fields = file.read().rpartition(b")")[2].split()
        state, session = fields[0], int(fields[3])
    except (OSError, ValueError, IndexError):
        return None
    return None if state in b"ZX" else session
