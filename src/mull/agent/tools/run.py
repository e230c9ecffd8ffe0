"""`run`: a shell command in the working folder, with a time limit and nothing to read from.

The boundary of the file tools does not hold for a command: it may do whatever the user may.
Approval stands before it instead. Variables that hold keys of model providers are kept from it,
so that a model cannot print them. However much it prints, a fixed amount is kept in memory, a
larger fixed amount is put aside on disk, and the rest is counted.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import shutil
import signal
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from mull.agent.tools.builtin import BuiltinTool, Plan
from mull.agent.tools.process import Command
from mull.agent.tools.shown import one_line, plural, shown_name, visible
from mull.agent.tools.tool import Outcome, Preview, ToolContext, ToolFailure
from mull.agent.tools.workspace import Workspace
from mull.policy.approval import Subject

__all__ = ["MOST_SECONDS", "Output", "Run"]

USUAL_SECONDS = 120
MOST_SECONDS = 600
# nobody is there to page through a text or to answer
_CALM = {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "TERM": "dumb"}
_KEY_ENDINGS = ("_API_KEY", "_API_TOKEN")
_OWN = "MULL_"

_HEAD = 32 << 10
_TAIL = 32 << 10
_ASIDE = 32 << 20
_LIVE = 256 << 10


class RunArguments(Struct, kw_only=True, forbid_unknown_fields=True):
    """What to run."""

    command: Annotated[str, Meta(min_length=1, description="for the shell")]
    timeout: Annotated[int, Meta(ge=1, description="seconds until it is ended")] = USUAL_SECONDS


class Run(BuiltinTool[RunArguments]):
    """Runs commands."""

    name = "run"
    description = (
        "Run a shell command in the working folder and get its output, errors included, and its"
        " exit status. It cannot ask for input. What it leaves running in the background is ended"
        " with it. To read, search or change files use the other tools."
    )
    arguments = RunArguments
    changes = True

    def __init__(
        self,
        workspace: Workspace,
        most_seconds: int = MOST_SECONDS,
        withheld: Collection[str] = (),
        passed_on: Collection[str] = (),
    ) -> None:
        super().__init__(workspace)
        self._most_seconds = most_seconds
        self._withheld = withheld
        self._passed_on = passed_on

    def plan(self, given: RunArguments) -> Plan:
        """The command, shown so that nothing of it can hide."""
        if given.timeout > self._most_seconds:
            raise ToolFailure(f"timeout can be at most {self._most_seconds} seconds")
        if "\0" in given.command:
            raise ToolFailure("a command cannot hold a zero byte")
        preview = Preview(f"run: {one_line(given.command)}", visible(given.command), "command")
        subject = Subject("command", given.command)
        return Plan(subject, preview, lambda context: self._run(given, context))

    async def _run(self, given: RunArguments, context: ToolContext) -> Outcome:
        """Run it to its end, or to the end of its time."""
        self.workspace.check()
        command = await Command.start(
            (_shell(), "-c", given.command), self.workspace.root, self._environment()
        )
        output = Output(self.workspace.put_aside, context.emit)
        is_late = False
        try:
            async with asyncio.timeout(given.timeout):
                while data := await command.read():
                    output.add(data)
                await command.wait()
        except TimeoutError:
            is_late = True
        finally:
            output.close()
            left_behind = command.left_behind
            status = await command.end()
        return _outcome(output.text(), status, given.timeout if is_late else None, left_behind)

    def _environment(self) -> dict[str, str]:
        kept = {n: value for n, value in os.environ.items() if not self._is_withheld(n)}
        return {**kept, **_CALM}

    def _is_withheld(self, name: str) -> bool:
        if name in self._passed_on:
            return False
        holds_key = name.upper().endswith(_KEY_ENDINGS) or name.startswith(_OWN)
        return holds_key or name in self._withheld


def _shell() -> str:
    return shutil.which("bash") or "/bin/sh"


def _outcome(text: str, status: int, late_after: int | None, left_behind: bool) -> Outcome:
    said = [text.rstrip("\n")] if text.strip() else []
    if late_after is not None:
        said.append(f"[ended after {late_after} seconds: it was not done; timeout can be longer]")
    elif status < 0:
        said.append(f"[ended by signal {_signal_name(-status)}]")
    elif status:
        said.append(f"[exit status {status}]")
    if left_behind and late_after is None:
        said.append("[processes that it left in the background were ended]")
    return Outcome("\n".join(said) or "(no output)", failed=late_after is not None or status != 0)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


class Output:
    """Takes bytes as they come; shows them live up to a limit, and gives a text at the end."""

    def __init__(
        self, put_aside: Callable[[], tuple[int, Path]], emit: Callable[[str], None]
    ) -> None:
        self._put_aside = put_aside
        self._emit = emit
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._live = _LIVE
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self._file: int | None = None
        self._path: Path | None = None
        self._is_disk_full = False

    def add(self, data: bytes) -> None:
        """Take the next piece."""
        self._show(data)
        self._total += len(data)
        self._write(data)
        room = _HEAD - len(self._head)
        self._head += data[:room]
        self._tail += data[room:][-_TAIL:]
        if len(self._tail) > 2 * _TAIL:
            del self._tail[:-_TAIL]

    def close(self) -> None:
        """No more will come."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def text(self) -> str:
        """All of it, or its beginning and end with a note on what is missing between them."""
        if self._total <= _HEAD + _TAIL:
            return bytes(self._head + self._tail).decode("utf-8", "replace")
        head, tail = (
            _to_last_break(bytes(self._head)),
            _from_first_break(bytes(self._tail[-_TAIL:])),
        )
        missing = self._total - len(head) - len(tail)
        return "\n".join(
            (
                head.decode("utf-8", "replace"),
                f"[{plural(missing, 'byte')} left out here{self._where(head)}]",
                tail.decode("utf-8", "replace"),
            )
        )

    def _where(self, head: bytes) -> str:
        if self._path is None:
            return ""
        kept = min(self._total, _ASIDE)
        amount = "all of it" if kept == self._total else f"its first {plural(kept, 'byte')}"
        line = head.count(b"\n") + 2
        return f"; {amount}: read path={shown_name(self._path)} offset={line}"

    def _show(self, data: bytes) -> None:
        if self._live <= 0:
            return
        text = self._decoder.decode(data[: self._live])
        self._live -= len(data)
        if self._live <= 0:
            text += "\n[more output comes and is not shown]\n"
        if text:
            self._emit(text)

    def _write(self, data: bytes) -> None:
        """Put aside what does not fit in memory, from the beginning on."""
        if self._total <= _HEAD + _TAIL or self._is_disk_full:
            return
        try:
            if self._file is None:
                self._file, self._path = self._put_aside()
                os.write(self._file, self._head + self._tail)
            room = _ASIDE - (self._total - len(data))
            if room > 0:
                os.write(self._file, data[:room])
        except OSError:
            self._is_disk_full, self._path = True, None


def _to_last_break(data: bytes) -> bytes:
    at = data.rfind(b"\n")
    return data[:at] if at > len(data) // 2 else data


def _from_first_break(data: bytes) -> bytes:
    at = data.find(b"\n")
    return data[at + 1 :] if 0 <= at < len(data) // 2 else data
