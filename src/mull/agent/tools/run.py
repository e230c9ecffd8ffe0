"""`run`: a shell command in the working folder, with a time limit and without input.

The boundary of the file tools does not apply to a command: it may do whatever the user may.
Approval protects against that instead. Variables with keys of model providers are withheld, so that
a model cannot print them, and so are those that config.toml names and those called a token, a key
or a password.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import threading
from collections.abc import Collection
from typing import Annotated

from msgspec import Meta, Struct

from mull.agent.tools.builtin import BuiltinTool, Plan, in_thread
from mull.agent.tools.jobs import job_outcome
from mull.agent.tools.output import MOST, Output
from mull.agent.tools.process import Command
from mull.agent.tools.shown import one_line, visible
from mull.agent.tools.snapshot import take_snapshot
from mull.agent.tools.tool import Outcome, Preview, ToolContext, ToolFailure
from mull.agent.tools.workspace import Workspace
from mull.policy.allowance import room
from mull.policy.approval import Subject

__all__ = ["MOST_SECONDS", "Run", "shell"]

USUAL_SECONDS = 120
_FIRST_LOOK = 1.0
MOST_SECONDS = 600
# there is no user to page through a text or to answer
_CALM = {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "TERM": "dumb"}
_KEY_ENDINGS = (
    "_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_PASSWD", "_PASSPHRASE", "_CREDENTIALS", "_PAT",
)  # fmt: skip
_OWN = "MULL_"


class RunArguments(Struct, kw_only=True, forbid_unknown_fields=True):
    """What to run."""

    command: Annotated[str, Meta(min_length=1, description="the shell command")]
    timeout: Annotated[int, Meta(ge=1, description="seconds until it is ended")] = USUAL_SECONDS
    background: Annotated[
        bool, Meta(description="keep it running, for example a server; jobs shows and ends it")
    ] = False


class Run(BuiltinTool[RunArguments]):
    """Runs commands."""

    name = "run"
    description = (
        "Run a shell command in the working folder and get its output, including "
        "errors, and its exit status. It cannot ask for input. Processes it leaves "
        "running are ended with it, unless background is set. To read, search or "
        "change files use the other tools."
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
        if "\0" in given.command:
            raise ToolFailure("a command cannot contain a zero byte")
        self.workspace.check()
        how = "run in the background" if given.background else "run"
        preview = Preview(f"{how}: {one_line(given.command)}", visible(given.command), "command")
        subject = Subject("command", given.command)
        if given.background:
            return Plan(subject, preview, in_thread(lambda *more: self._start(given, *more)))
        return Plan(subject, preview, lambda context: self._run(given, context))

    def _start(self, given: RunArguments, left: threading.Event, tokens: int | None) -> Outcome:
        """Leave it running; a failing command usually fails immediately."""
        job = self.workspace.jobs.start(
            _shell(given.command), given.command, self.workspace.root, self._environment()
        )
        if self.workspace.keeper is not None:
            self.workspace.keeper.keep_unobserved()
        job.ended.wait(_FIRST_LOOK)
        return job_outcome(job, room(tokens, MOST))

    async def _run(self, given: RunArguments, context: ToolContext) -> Outcome:
        """Run it to its end, or to its time limit."""
        seconds = min(given.timeout, self._most_seconds)
        keeper, root = self.workspace.keeper, self.workspace.root
        before = await asyncio.to_thread(take_snapshot, root) if keeper else None
        command = await Command.start(
            _shell(given.command), self.workspace.root, self._environment()
        )
        output = Output(self.workspace.put_aside, context.emit, room(context.tokens, MOST))
        is_late = False
        try:
            async with asyncio.timeout(seconds):
                while data := await command.read():
                    output.add(data)
                await command.wait()
        except TimeoutError:
            is_late = True
        finally:
            output.close()
            left_behind = command.left_behind
            status = await command.end()
            if keeper is not None:
                await asyncio.to_thread(keeper.keep_changed, before)
        return _outcome(output.text(), status, seconds if is_late else None, left_behind)

    def _environment(self) -> dict[str, str]:
        kept = {n: value for n, value in os.environ.items() if not self._is_withheld(n)}
        return {**kept, **_CALM}

    def _is_withheld(self, name: str) -> bool:
        if name in self._passed_on:
            return False
        holds_key = name.upper().endswith(_KEY_ENDINGS) or name.startswith(_OWN)
        return holds_key or name in self._withheld


def shell() -> str:
    """The shell that commands are written for."""
    return shutil.which("bash") or "/bin/sh"


def _shell(command: str) -> tuple[str, ...]:
    return (shell(), "-c", command)


def _outcome(text: str, status: int, late_after: int | None, left_behind: bool) -> Outcome:
    said = [text.rstrip("\n")] if text.strip() else []
    if late_after is not None:
        said.append(
            f"[ended after {late_after} seconds, before it finished; timeout can be longer]"
        )
    elif status < 0:
        said.append(f"[ended by signal {_signal_name(-status)}]")
    elif status:
        said.append(f"[exit status {status}]")
    if left_behind and late_after is None:
        said.append("[what it left running was ended: set background to keep it running]")
    return Outcome("\n".join(said) or "(no output)", failed=late_after is not None or status != 0)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
