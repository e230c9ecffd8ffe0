"""`jobs`: shows background commands, and ends them."""

from __future__ import annotations

import threading
import time
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from mull.agent.tools.background import Job, JobStatus
from mull.agent.tools.builtin import BuiltinTool, Plan, in_thread
from mull.agent.tools.output import MOST
from mull.agent.tools.shown import one_line
from mull.agent.tools.tool import Outcome, Preview
from mull.policy.allowance import room
from mull.policy.approval import Subject

__all__ = ["JobTool", "job_outcome"]

_MOST_SECONDS = 600
_LOOK = 0.5


class JobArguments(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which one, and what to do."""

    id: Annotated[int, Meta(description="its number; without it, all are listed")] | UnsetType = (
        UNSET
    )
    wait: Annotated[
        int, Meta(ge=0, le=_MOST_SECONDS, description="seconds to wait for it to end")
    ] = 0
    end: Annotated[bool, Meta(description="end it")] = False


class JobTool(BuiltinTool[JobArguments]):
    """Looks at background commands."""

    name = "jobs"
    description = (
        "Look at the commands that run started in the background: what one has printed "
        "since the last look, and whether it is still running. Or end one."
    )
    arguments = JobArguments

    def plan(self, given: JobArguments) -> Plan:
        """The list, or one of them."""
        subject = Subject("text", "")
        if isinstance(given.id, UnsetType):
            listed = in_thread(lambda left, tokens: Outcome(self._listed()))
            return Plan(subject, Preview("jobs"), listed)
        job = self.workspace.jobs.find(given.id)
        verb = "end" if given.end else "look at"
        title = f"{verb} job {job.id}: {one_line(job.command)}"
        work = in_thread(lambda left, tokens: _looked(job, given, left, tokens))
        return Plan(subject, Preview(title), work)

    def _listed(self) -> str:
        rows = [f"{one.id}: {one_line(one.command)} {_state(one)}" for one in self._statuses]
        return "\n".join(rows) or "no background commands were started"

    @property
    def _statuses(self) -> tuple[JobStatus, ...]:
        return self.workspace.jobs.statuses


def _looked(job: Job, given: JobArguments, left: threading.Event, tokens: int | None) -> Outcome:
    if given.end:
        job.end()
    last = time.monotonic() + given.wait
    while not left.is_set() and not job.ended.is_set() and (rest := last - time.monotonic()) > 0:
        job.ended.wait(min(rest, _LOOK))
    return job_outcome(job, room(tokens, MOST))


def job_outcome(job: Job, room: int) -> Outcome:
    """Its new output and its state."""
    status = job.status
    text = job.look(room)
    return Outcome("\n".join(filter(None, (text, f"[job {job.id} {_state(status)[1:-1]}]"))))


def _state(status: JobStatus) -> str:
    if status.status is None:
        return "[runs]"
    return f"[ended with exit status {status.status}]"
