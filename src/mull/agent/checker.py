"""The command that judges the answers of a sweep: one process for each answer.

It gets JSON on standard input and ends with 0 if the answer is right, with another status if it is
wrong. If it cannot be run, is killed or times out, the answer is left ungraded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

from mull.agent.tools.process import Command

__all__ = ["LONGEST", "Verdict", "check"]

LONGEST = 300.0
"""Seconds that a checker may take for one answer."""
_NOT_RUN = (126, 127)
"""How a shell ends if a command in it cannot be run."""
_TAIL = 2000


class Verdict(NamedTuple):
    """Whether an answer is right; None if the checker failed. `said` is why it failed, or the last
    line that it printed.
    """

    right: bool | None
    said: str


async def check(command: Sequence[str], given: bytes) -> Verdict:
    """Have an answer judged; what the command starts ends with it."""
    with TemporaryFile() as file:
        file.write(given)
        file.seek(0)
        try:
            running = await Command.start(command, Path(), stdin=file)
        except OSError as error:
            return Verdict(None, f"it cannot be run: {error.strerror}")
    is_late, status, printed = False, 0, ""
    try:
        async with asyncio.timeout(LONGEST):
            printed = await _last_line(running)
            await running.wait()
    except TimeoutError:
        is_late = True
    finally:
        status = await running.end()
    if is_late:
        return Verdict(None, f"it was stopped after {LONGEST:.0f} s")
    if status < 0:
        return Verdict(None, f"signal {-status} ended it")
    if status in _NOT_RUN:
        return Verdict(None, printed or f"it ended with status {status}")
    return Verdict(status == 0, printed)


async def _last_line(running: Command) -> str:
    """The last line that it prints, of however many."""
    tail = b""
    while chunk := await running.read():
        tail = (tail + chunk)[-_TAIL:]
    lines = tail.decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else ""
