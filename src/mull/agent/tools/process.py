"""A command and everything it starts: run in its own session, ended as a whole."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from mull.agent.processes import members, signal_all

__all__ = ["Command"]

_GRACE = 2.0
_LOOK = 0.02
_LAST_WORDS = 0.25
_CHUNK = 1 << 17


class Command:
    """A running command whose output is read chunk by chunk; its input is empty, or a file."""

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
        *,
        stdin: IO[bytes] | None = None,
        passed: Sequence[int] = (),
    ) -> Command:
        """Start it, with the descriptors `passed`; cancelling this leaves nothing behind.

        Raises:
            OSError: the program or the folder does not exist.
        """
        starting = asyncio.ensure_future(cls._start(arguments, folder, environment, stdin, passed))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(_abandon)  # even if this is cancelled again
            await asyncio.wait((starting,))
            if not starting.cancelled() and starting.exception() is None:
                await starting.result().end()
            raise

    @classmethod
    async def _start(
        cls,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] | None,
        stdin: IO[bytes] | None,
        passed: Sequence[int],
    ) -> Command:
        """The pipe is ours, not the process's: other holders of it cannot stall us."""
        read_end, write_end = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *arguments,
                stdin=asyncio.subprocess.DEVNULL if stdin is None else stdin,
                stdout=write_end,
                stderr=asyncio.subprocess.STDOUT,
                cwd=folder,
                env=environment,
                start_new_session=True,
                pass_fds=passed,
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
        """The next chunk of output; empty at the end.

        That is when the pipe is closed, or shortly after the command itself has ended: what it left
        behind may keep the pipe open forever.
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
        """End all of it, gracefully at first, and return the command's exit status.

        Cancelling this kills it immediately.
        """
        try:
            if signal_all(self._session, signal.SIGTERM):
                for _ in range(int(_GRACE / _LOOK)):
                    if not members(self._session):
                        break
                    await asyncio.sleep(_LOOK)
        finally:
            self.kill()
        return await self._ended

    def kill(self) -> None:
        """Kill all of it."""
        signal_all(self._session, signal.SIGKILL)
        self._pipe.close()

    @property
    def left_behind(self) -> bool:
        """Whether the command has ended but something it started has not."""
        return self._process.returncode is not None and bool(members(self._session))


def _abandon(starting: asyncio.Future[Command]) -> None:
    if not starting.cancelled() and starting.exception() is None:
        starting.result().kill()
