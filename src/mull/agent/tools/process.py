"""A command and everything that it starts: begun in a session of its own, ended as a whole.

Programs such as `timeout` leave the process group they were started in, so the members of the
whole session are ended, where the system tells who they are. Only a process that made a session
for itself (a daemon) stays.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["Command"]

_GRACE = 2.0
_LOOK = 0.02
_LAST_WORDS = 0.25
_CHUNK = 1 << 17


class Command:
    """A running command whose output is read piece by piece; its input is empty."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        pipe: asyncio.ReadTransport,
    ) -> None:
        self._process = process
        self._reader = reader
        self._pipe = pipe
        self._session = process.pid
        self._ended = asyncio.ensure_future(process.wait())
        self._last_words: float | None = None

    @classmethod
    async def start(
        cls,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
    ) -> Command:
        """Start it. The pipe is ours, not the process's: whoever else holds it cannot stall us.

        Raises:
            OSError: the program or the folder is not there.
        """
        read_end, write_end = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=write_end,
                stderr=asyncio.subprocess.STDOUT,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
        except BaseException:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        reader = asyncio.StreamReader()
        pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_end, "rb", buffering=0)
        )
        return cls(process, reader, pipe)

    async def read(self) -> bytes:
        """The next piece of output; empty when there is none any more.

        That is when the pipe is closed, or shortly after the command itself has ended: what it
        left behind may keep the pipe open for ever.
        """
        loop = asyncio.get_running_loop()
        reading = asyncio.ensure_future(self._reader.read(_CHUNK))
        try:
            await asyncio.wait((reading, self._ended), return_when=asyncio.FIRST_COMPLETED)
            if self._ended.done():
                if self._last_words is None:
                    self._last_words = loop.time() + _LAST_WORDS
                await asyncio.wait((reading,), timeout=self._last_words - loop.time())
            return reading.result() if reading.done() else b""
        finally:
            reading.cancel()

    async def wait(self) -> None:
        """Wait until the command itself has ended; its output may have ended before."""
        await asyncio.wait((self._ended,))

    async def end(self) -> int:
        """End all of it, kindly at first, and give the command's exit status.

        Whoever cancels this gets the unkind end at once.
        """
        try:
            if self._signal(signal.SIGTERM):
                for _ in range(int(_GRACE / _LOOK)):
                    if not self._members():
                        break
                    await asyncio.sleep(_LOOK)
        finally:
            self._signal(signal.SIGKILL)
            self._pipe.close()
        return await self._ended

    @property
    def left_behind(self) -> bool:
        """Whether the command has ended and something that it started has not."""
        return self._process.returncode is not None and bool(self._members())

    def _signal(self, number: signal.Signals) -> bool:
        members = self._members()
        for member in members:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(member, number)
        return bool(members)

    def _members(self) -> list[int]:
        """The living processes of the session."""
        if os.path.isdir("/proc/self"):
            return [pid for pid in map(int, _numbers()) if _session_of(pid) == self._session]
        return [-self._session] if self._has_group() else []

    def _has_group(self) -> bool:
        try:
            os.killpg(self._session, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True


def _numbers() -> list[str]:
    return [name for name in os.listdir("/proc") if name.isdigit()]


def _session_of(pid: int) -> int | None:
    """The session of a process that is not just waiting to be buried."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # the name stands in parentheses and may hold anything, parentheses too
            fields = file.read().rpartition(b")")[2].split()
        state, session = fields[0], int(fields[3])
    except (OSError, ValueError, IndexError):
        return None
    return None if state in b"ZX" else session
