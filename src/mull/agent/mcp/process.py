"""A server that is a child process: its pipes as the streams of the SDK's client.

The SDK has such a transport too. This one differs when a server misbehaves: messages have a maximum
size, non-messages on stdout are logged and skipped, error output goes to a bounded log, and when
the connection ends nothing of the process's session is left running.
"""

from __future__ import annotations

import asyncio
import math
import shutil
import signal
import sys
from asyncio.subprocess import SubprocessStreamProtocol
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mull.agent.mcp.lines import MOST_BYTES, Lines, LongLine, answered_id, too_large
from mull.agent.mcp.log import ServerLog
from mull.agent.mcp.settled import Settled
from mull.agent.processes import signal_all
from mull.neutral.errors import LocalError

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp import MCPError
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

    from mull.agent.sandbox.cage import Cage, Launch

__all__ = ["ProcessTransport"]

_PIECE = 64 * 1024
_GRACE = 2.0
"""Seconds for a process to end once its input is closed, and again once it is asked to."""
_LAST_WORDS = 1.0
"""Seconds for the rest of a process's output after it has ended."""


class ProcessTransport:
    """Runs the command while it is entered; `ended` is set when nothing more is expected."""

    def __init__(self, settled: Settled, log: ServerLog) -> None:
        self._settled = settled
        self._log = log
        self.ended = asyncio.Event()
        self._ended_itself: bool | None = None

    async def __aenter__(self) -> TransportStreams:
        import anyio

        self._confined = await asyncio.to_thread(_confined, self._settled)
        launch = self._confined[1] if self._confined else None
        self._pipes, self._process = await _start(self._settled, launch)
        self._log.note(f"--- {self._settled.command} started, process {self._pipes.get_pid()}")
        to_session, incoming = anyio.create_memory_object_stream[Any](0)
        # unbounded: a server that does not read must not block its writers
        outgoing, from_session = anyio.create_memory_object_stream[Any](math.inf)
        self._streams = (to_session, incoming, outgoing, from_session)
        self._writer = asyncio.create_task(self._write(from_session))
        reader = asyncio.create_task(self._read(to_session))
        self._others = [
            reader,
            asyncio.create_task(self._pump_errors()),
            asyncio.create_task(self._watch(reader)),
        ]
        return incoming, outgoing

    async def __aexit__(self, *reason: object) -> None:
        self._ended_itself = self.ended.is_set()
        try:
            await self._end()
        finally:
            _signal_session(self._pipes, "SIGKILL")  # what the process left behind
            for task in (self._writer, *self._others):
                task.cancel()
            self._pipes.close()
            for stream in self._streams:
                stream.close()
            await asyncio.gather(self._writer, *self._others, return_exceptions=True)
            self._log.note(f"--- {self._fate()}")
            if self._confined is not None:
                cage, launch = self._confined
                await asyncio.to_thread(cage.end, launch, self._settled.command or "")

    def is_lost(self, error: MCPError) -> bool:
        """Whether this error means that the connection is lost.

        The code alone does not tell: servers use the same one for their own errors.
        """
        from mcp_types import CONNECTION_CLOSED

        return error.code == CONNECTION_CLOSED and self.ended.is_set()

    @property
    def ended_itself(self) -> bool:
        """Whether it ended before we closed it."""
        return self.ended.is_set() if self._ended_itself is None else self._ended_itself

    def how_it_ended(self) -> str:
        """How the process ended, and its last output, for the user."""
        last = f"; its last output: {self._log.last_line}" if self._log.last_line else ""
        return f"{self._fate()}{last}"

    def _fate(self) -> str:
        status = self._pipes.get_returncode()
        if status is None:
            return "its process closed its output"
        if status < 0:
            return f"its process was ended by signal {-status}"
        return f"its process ended with status {status}"

    async def _read(self, to_session: MemoryObjectSendStream[SessionMessage]) -> None:
        """Messages from stdout until it ends; read on after the session closes, to drain the
        pipe.
        """
        import anyio

        lines = Lines(MOST_BYTES)
        stdout = _pipe(self._process.stdout)
        try:
            while piece := await stdout.read(_PIECE):
                for line in lines.feed(piece):
                    message = self._message(line)
                    if message is not None:
                        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                            await to_session.send(message)
        finally:
            to_session.close()
            self.ended.set()

    def _message(self, line: bytes | LongLine) -> SessionMessage | None:
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        if isinstance(line, LongLine):
            self._log.note(f"[stdout: a line of {line.size:,} bytes, left out]")
            return _failed(line.request_id, too_large(line.size))
        if not line.strip():
            return None
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError:
            self._log.note(f"[stdout, no message] {line[:1000].decode('utf-8', 'replace')}")
            return _failed(answered_id(line), "its response is not a valid message of the protocol")

    async def _write(self, from_session: MemoryObjectReceiveStream[SessionMessage]) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            async for sent in from_session:
                line = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                stdin.write(line.encode("utf-8", "replace") + b"\n")
                await stdin.drain()
        except (ConnectionError, RuntimeError):
            self.ended.set()  # nobody reads our output
        finally:
            stdin.close()

    async def _pump_errors(self) -> None:
        stderr = _pipe(self._process.stderr)
        while piece := await stderr.read(_PIECE):
            self._log.feed(piece)

    async def _watch(self, reader: asyncio.Task[None]) -> None:
        """A process may end while its child keeps the output open."""
        await self._process.exited.wait()
        await asyncio.wait([reader], timeout=_LAST_WORDS)
        reader.cancel()

    async def _end(self) -> None:
        """Close its input; if that is not enough ask it and its children to end."""
        _, incoming, outgoing, _ = self._streams
        incoming.close()
        outgoing.close()
        await asyncio.wait([self._writer], timeout=_GRACE / 4)
        self._writer.cancel()
        for name in ("", "SIGTERM", "SIGKILL"):
            _signal_session(self._pipes, name)
            with suppress(TimeoutError):
                async with asyncio.timeout(_GRACE):
                    await self._process.exited.wait()
                    return


def _failed(request_id: int | None, why: str) -> SessionMessage | None:
    """An error in place of an unusable response, if it is known which request it answers."""
    from mcp.shared.message import SessionMessage
    from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError

    if request_id is None:
        return None
    error = ErrorData(code=INTERNAL_ERROR, message=why)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=error))


class _Process(SubprocessStreamProtocol):
    """The pipes as readers and a writer, and when the process itself ended."""

    def __init__(self) -> None:
        super().__init__(limit=_PIECE, loop=asyncio.get_running_loop())
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


def _program(settled: Settled) -> list[str]:
    assert settled.command is not None
    found = shutil.which(settled.command, path=settled.env.get("PATH")) or settled.command
    return [found, *settled.args]


def _confined(settled: Settled) -> tuple[Cage, Launch] | None:
    """The server as it is started in the sandbox, if it is to be.

    Raises:
        LocalError: there is none; then it is not started.
    """
    if not settled.sandbox:
        return None
    from mull.agent.sandbox.cage import confine

    return confine(_program(settled), settled.env, settled.cwd or Path.cwd())


async def _start(
    settled: Settled, launch: Launch | None
) -> tuple[asyncio.SubprocessTransport, _Process]:
    program = launch.program if launch else _program(settled)
    try:
        started = await asyncio.get_running_loop().subprocess_exec(
            _Process,
            *program,
            env=dict(launch.environment if launch else settled.env),
            cwd=settled.cwd,
            start_new_session=True,  # to end it as a whole, and to keep our Ctrl-C from it
            pass_fds=launch.passed if launch else (),
        )
    except (OSError, ValueError) as error:
        raise LocalError(_why_not(settled, error)) from None
    finally:
        if launch is not None:
            launch.started()
    return started


def _why_not(settled: Settled, error: OSError | ValueError) -> str:
    if settled.cwd is not None and not settled.cwd.is_dir():
        return f"its folder {settled.cwd} does not exist"
    if isinstance(error, FileNotFoundError):
        return f"command not found: {settled.command}: install it, or give its full path"
    reason = getattr(error, "strerror", None) or str(error)
    return f"cannot run {settled.command}: {reason}"


def _pipe(reader: asyncio.StreamReader | None) -> asyncio.StreamReader:
    assert reader is not None, "started with pipes"
    return reader


def _signal_session(pipes: asyncio.SubprocessTransport, name: str) -> None:
    """Send a signal to the process and everything it started; without a name, to nobody."""
    if not name:
        return
    if sys.platform == "win32":
        with suppress(ProcessLookupError, PermissionError):
            pipes.kill()
    else:
        signal_all(pipes.get_pid(), signal.Signals[name])
