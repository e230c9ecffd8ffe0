"""`run`: a shell command in the working folder, with a time limit and without input.

A command that the user has approved, or a rule allows, may do whatever the user may. Any other runs
in the sandbox; if it fails because it wanted more, the user is asked for just that, and it runs
again. Variables with keys of model providers are withheld, so that a model cannot print them, and
so are those that config.toml names and those called a token, a key or a password.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta, Struct

from mull.agent.tools.builtin import BuiltinTool, Plan, in_thread
from mull.agent.tools.jobs import job_outcome
from mull.agent.tools.looking import command_subject
from mull.agent.tools.output import MOST, Output
from mull.agent.tools.process import Command
from mull.agent.tools.shown import one_line, visible
from mull.agent.tools.snapshot import take_snapshot
from mull.agent.tools.tool import Outcome, Preview, ToolContext, ToolFailure
from mull.agent.tools.workspace import Workspace
from mull.neutral.errors import LocalError
from mull.policy.allowance import room
from mull.policy.approval import Rule
from mull.store.paths import find_program

if TYPE_CHECKING:
    from mull.agent.sandbox.cage import Cage, Launch, Report
    from mull.agent.sandbox.order import Grants
    from mull.agent.sandbox.wants import Want

__all__ = ["MOST_SECONDS", "Run", "shell", "without_secrets"]

USUAL_SECONDS = 120
_FIRST_LOOK = 1.0
MOST_SECONDS = 600
# there is no user to page through a text or to answer; and `cd` goes where it says
_CALM = {
    "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "TERM": "dumb", "CDPATH": "",
}  # fmt: skip
_KEY_ENDINGS = (
    "_KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "_PWD", "PASSPHRASE", "CREDENTIALS",
    "_PAT", "_PASS", "_AUTH", "_HEADERS", "JWT", "_KEYS", "SECRETS",
)  # fmt: skip
_OWN = "MULL_"
_MOST_ATTEMPTS = 5
_REFUSED_BEFORE = "the user has refused that before"
_CONFINED = "[it ran in a sandbox: no network, and only the working folder can be written]"
_UNASKED = "; the user is asked for it only if the command fails, as with `set -o pipefail`"
_ALONE = "[it runs in a sandbox without network: only other commands here reach its ports]"


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
        rules: Sequence[Rule] = (),
        cage: Callable[[], Cage] | None = None,
    ) -> None:
        """`cage` is the sandbox for calls that may not run outside it."""
        super().__init__(workspace, rules)
        self._most_seconds = most_seconds
        self._withheld = withheld
        self._passed_on = passed_on
        self._cage = cage
        self._refused: set[str] = set()
        """What the user does not want commands to have: asked once in a session."""

    def plan(self, given: RunArguments) -> Plan:
        """The command, shown so that nothing of it can hide."""
        if "\0" in given.command:
            raise ToolFailure("a command cannot contain a zero byte")
        self.workspace.check()
        how = "run in the background" if given.background else "run"
        preview = Preview(f"{how}: {one_line(given.command)}", visible(given.command), "command")
        subject = command_subject(given.command, self.workspace, self._rules)
        if given.background:
            return Plan(subject, preview, lambda context: self._background(given, context))
        looks = subject.is_harmless
        return Plan(subject, preview, lambda context: self._run(given, context, looks=looks))

    async def _background(self, given: RunArguments, context: ToolContext) -> Outcome:
        confined = context.permit.confined
        return await in_thread(lambda *more: self._start(given, confined, *more))(context)

    def _start(
        self, given: RunArguments, confined: bool, left: threading.Event, tokens: int | None
    ) -> Outcome:
        """Leave it running; a failing command usually fails immediately."""
        if self.workspace.keeper is not None:
            self.workspace.keeper.keep_unobserved()
        words, environment = _shell(given.command), self._environment()
        if not confined:
            job = self.workspace.jobs.start(words, given.command, self.workspace.root, environment)
            job.ended.wait(_FIRST_LOOK)
            return job_outcome(job, room(tokens, MOST))
        cage = self._sandbox()
        launch = _launched(cage, words, environment)
        try:
            job = self.workspace.jobs.start(
                launch.program,
                given.command,
                self.workspace.root,
                launch.environment,
                passed=launch.passed,
                on_end=lambda: cage.end(launch, one_line(given.command)),
            )
        finally:
            launch.started()
        cage.stays(launch)
        job.ended.wait(_FIRST_LOOK)
        outcome = job_outcome(job, room(tokens, MOST))
        return outcome._replace(text=f"{outcome.text}\n{_ALONE}")

    async def _run(self, given: RunArguments, context: ToolContext, *, looks: bool) -> Outcome:
        """Run it to its end, or to its time limit; what it changed can be undone. One that only
        `looks` changes nothing.
        """
        keeper, root = None if looks else self.workspace.keeper, self.workspace.root
        before = await asyncio.to_thread(take_snapshot, root) if keeper else None
        outcome, diff = None, ""
        try:
            if context.permit.confined:
                outcome = await self._run_confined(given, context)
            else:
                outcome = (await self._attempt(given, context)).outcome()
        finally:
            if keeper is not None:
                diff = await asyncio.to_thread(keeper.keep_changed, before)
        return outcome._replace(diff=diff)

    async def _attempt(
        self, given: RunArguments, context: ToolContext, launch: Launch | None = None
    ) -> _Attempt:
        """Run it once."""
        seconds = min(given.timeout, self._most_seconds)
        try:
            command = await Command.start(
                launch.program if launch else _shell(given.command),
                self.workspace.root,
                launch.environment if launch else self._environment(),
                passed=launch.passed if launch else (),
            )
        finally:
            if launch is not None:
                launch.started()
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
            report = launch.ended() if launch else None
        if report is not None:  # walls that are just coming down look like something left
            left_behind = report.left
        return _Attempt(output.text(), status, seconds if is_late else None, left_behind, report)

    def _sandbox(self) -> Cage:
        if self._cage is None:
            raise ToolFailure("there is no sandbox to run it in")
        return self._cage()

    async def _run_confined(self, given: RunArguments, context: ToolContext) -> Outcome:
        """Run it in the sandbox, and again with what it wanted, if the user allows that."""
        from mull.agent.sandbox.order import Grants  # most commands start no sandbox

        cage = self._sandbox()
        grants: Grants = Grants()
        notes: list[str] = []
        for attempts in range(1, _MOST_ATTEMPTS + 1):
            shell, environment = _shell(given.command), self._environment()
            launch = await asyncio.to_thread(_launched, cage, shell, environment, grants)
            try:
                attempt = await self._attempt(given, context, launch)
            except asyncio.CancelledError:  # the user stopped it, and is not asked anything
                cage.end(launch, one_line(given.command))
                raise
            if attempt.report is not None and attempt.report.failed:
                raise ToolFailure(f"the sandbox could not be set up: {attempt.report.failed}")
            wants = await self._wants(given, cage, launch, attempt, context, notes)
            if not wants or attempts == _MOST_ATTEMPTS:
                break
            words = [want.words for want in wants]
            if (refusal := await self._ask_for(words, context)) is not None:
                notes.append(f"[the sandbox denied it {' and '.join(words)}; {refusal}]")
                break
            more = _granting(grants, wants)
            context.emit("\n[it runs again]\n")
            if more is None:
                return (await self._attempt(given, context)).outcome(notes)
            grants = more
        return attempt.outcome(notes)

    async def _wants(
        self,
        given: RunArguments,
        cage: Cage,
        launch: Launch,
        attempt: _Attempt,
        context: ToolContext,
        notes: list[str],
    ) -> list[Want]:
        """What it wanted, as far as that is known and the user has not refused it before."""
        from mull.agent.sandbox.wants import Want, is_denial, wants_of

        checked = await asyncio.to_thread(cage.check, launch)
        name = self._named
        if checked.made:
            await self._ask_to_keep(checked.made, context, notes)
        if checked.lost:
            lost = ", ".join(map(name, checked.lost))
            notes.append(f"[changed although protected, and not put back: {lost}]")
            cage.warn(f"look at {lost}: changed while {one_line(given.command)} ran in the sandbox")
        changed = [Want("write", name(path), path) for path in checked.put_back]
        assert attempt.report is not None
        if not attempt.failed:  # the status may be that of the end of a pipe: `curl … | sh`
            tried = [want.words for want in wants_of("", attempt.report, launch) if want.what]
            notes.extend(f"[the sandbox denied it {words}{_UNASKED}]" for words in tried)
            return changed
        guessed = wants_of(attempt.text, attempt.report, launch)
        wants = [want for want in (*changed, *guessed) if want.words not in self._refused]
        if not wants and (guessed or is_denial(attempt.text)):
            notes.append(_CONFINED)
        return wants

    async def _ask_to_keep(
        self, made: Sequence[str], context: ToolContext, notes: list[str]
    ) -> None:
        """A protected file that was not there could be created: the user decides whether it
        stays.
        """
        from mull.agent.sandbox.guard import set_aside

        words = [f"to write {self._named(path)}" for path in made]
        names = ", ".join(map(self._named, made))
        warn = self._sandbox().warn
        try:
            is_known = self._refused.issuperset(words)
            refusal = _REFUSED_BEFORE if is_known else await self._ask_for(words, context)
        except asyncio.CancelledError:
            warn(f"look at {names}: a command in the sandbox created it")
            raise
        if refusal is None:
            return
        try:
            folder = await asyncio.to_thread(set_aside, tuple(made))
            notes.append(f"[moved to {folder}: {names}; {refusal}]")
        except OSError as error:
            notes.append(f"[cannot be moved away: {names}; {refusal}]")
            warn(f"look at {names}: it cannot be moved away: {error}")

    async def _ask_for(self, words: Sequence[str], context: ToolContext) -> str | None:
        """None if the user allows it, otherwise what the model is told."""
        more = context.permit.more
        said = f"wants {' and '.join(words)}"
        refusal = await more(said) if more else "not allowed: there is nobody to ask"
        if refusal is not None:
            self._refused.update(words)
        return refusal

    def _named(self, path: str) -> str:
        """The path in one line, whatever it contains."""
        return visible(self.workspace.name(Path(path))).replace("\n", "\\n")

    def _environment(self) -> dict[str, str]:
        return without_secrets(os.environ, self._withheld, self._passed_on) | _CALM


def without_secrets(
    environ: Mapping[str, str], withheld: Collection[str], passed_on: Collection[str]
) -> dict[str, str]:
    """The variables without those called a token, a key or a password, mull's own, and those that
    are `withheld`, unless they are `passed_on`."""

    def holds_secret(name: str) -> bool:
        kind = name.upper().rstrip("_0123456789")  # there may be several of a kind
        return kind.endswith(_KEY_ENDINGS) or name.startswith(_OWN) or name in withheld

    return {
        name: value
        for name, value in environ.items()
        if name in passed_on or not holds_secret(name)
    }


def shell() -> str:
    """The shell that commands are written for."""
    return find_program("bash") or "/bin/sh"


def _shell(command: str) -> tuple[str, ...]:
    return (shell(), "-c", command)


class _Attempt(NamedTuple):
    """One run of a command. `late_after` is the limit that it exceeded, in seconds."""

    text: str
    status: int
    late_after: int | None
    left_behind: bool
    report: Report | None

    @property
    def failed(self) -> bool:
        return self.late_after is not None or self.status != 0

    def outcome(self, notes: Sequence[str] = ()) -> Outcome:
        """What the model is told."""
        said = [self.text.rstrip("\n")] if self.text.strip() else []
        if self.late_after is not None:
            after = f"[ended after {self.late_after} seconds, before it finished"
            said.append(f"{after}; timeout can be longer]")
        elif self.status < 0:
            said.append(f"[ended by signal {_signal_name(-self.status)}]")
        elif self.status:
            said.append(f"[exit status {self.status}]")
        if self.left_behind and self.late_after is None:
            said.append("[what it left running was ended: set background to keep it running]")
        return Outcome("\n".join((*said, *notes)) or "(no output)", failed=self.failed)


def _launched(
    cage: Cage, words: Sequence[str], environment: Mapping[str, str], grants: Grants | None = None
) -> Launch:
    try:
        return cage.launch(words, environment, grants)
    except LocalError as error:
        raise ToolFailure(f"not run: {error}") from None


def _granting(grants: Grants, wants: Sequence[Want]) -> Grants | None:
    from mull.agent.sandbox.wants import granting

    return granting(grants, wants)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
