"""`/jobs`: lists background commands, shows their output, and ends them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence

from mull.agent.tools.background import Job, JobStatus
from mull.agent.tools.tool import ToolFailure
from mull.neutral.errors import LocalError
from mull.tui.commands.host import Host, page
from mull.tui.commands.known import Known
from mull.tui.commands.words import split_words
from mull.tui.screen.front import Item
from mull.tui.text.safe import one_line

__all__ = ["FORMS", "job_offers", "use_jobs"]

FORMS = (
    ("/jobs", "list background commands"),
    ("/jobs N", "the last output of one command"),
    ("/jobs end N|all", "end one, or all of them"),
)
_SHOWN = 20
_READ = 64 << 10


async def use_jobs(host: Host, text: str) -> None:
    """List background commands, show one, or end some.

    Raises:
        LocalError: no background command has this number.
    """
    toolbox, words = host.session.toolbox, split_words(text)
    jobs = toolbox.workspace.jobs if toolbox else None
    if jobs is None or not jobs.statuses:
        host.tell("No background commands were started.")
        return
    if words[:1] == ["end"] and len(words) == 2:
        running = [one.id for one in jobs.statuses if one.is_running]
        wanted = running if words[1] == "all" else [_number(words[1])]
        for number in wanted:
            await asyncio.to_thread(_found(host, number).end)
    elif len(words) == 1:
        return _show_output(host, _found(host, _number(words[0])))
    elif words:
        raise LocalError(
            "/jobs lists background commands, /jobs N shows one, /jobs end N|all ends them"
        )
    shown = page(host)
    theme = shown.theme
    rows = [(str(one.id), _state(one), one_line(one.command)) for one in jobs.statuses]
    shown.table(rows, (theme.accent, theme.note, theme.text))
    host.show(shown.lines)


def _number(word: str) -> int:
    if not (word.isascii() and word.isdigit()):
        raise LocalError("give the number of a background command: /jobs lists them")
    return int(word[:9])


def _found(host: Host, number: int) -> Job:
    assert host.session.toolbox is not None
    try:
        return host.session.toolbox.workspace.jobs.find(number)
    except ToolFailure as error:
        raise LocalError(str(error)) from None


def _show_output(host: Host, job: Job) -> None:
    """Its last output; what the model has already read is not affected."""
    with open(job.path, "rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - _READ))
        lines = file.read().decode("utf-8", "replace").splitlines()
    shown = page(host)
    shown.title(one_line(f"{job.id}: {job.command} ({_state(job.status)})"))
    for line in lines[-_SHOWN:]:
        shown.text(line, shown.theme.tool_output, indent=2)
    if not lines:
        shown.note("No output yet.")
    elif len(lines) > _SHOWN:
        shown.note(f"The last {_SHOWN} lines; the full output is in {job.path}.")
    host.show(shown.lines)


def _state(status: JobStatus) -> str:
    if status.status is not None:
        return f"ended, exit status {status.status}"
    seconds = int(time.time() - status.started)
    return (
        f"running for {seconds // 60} min {seconds % 60} s"
        if seconds >= 60
        else (f"running for {seconds} s")
    )


def job_offers(known: Known, words: Sequence[str]) -> Iterable[Item]:
    """Numbers, and the word `end`."""
    toolbox = known.session.toolbox
    statuses = toolbox.jobs if toolbox else ()
    if len(words) == 2 and words[0] == "end":
        running = [Item(str(one.id), one_line(one.command)) for one in statuses if one.is_running]
        return [*running, Item("all", "end all of them")]
    if len(words) > 1:
        return []
    return [Item("end", "end one"), *(Item(str(one.id), one_line(one.command)) for one in statuses)]
