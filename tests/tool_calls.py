"""Calling tools as the runner does, and a folder for them to work in."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
from pathlib import Path
from typing import Any

from mull.agent.tools.table import builtin_tools
from mull.agent.tools.tool import Preview, RunnableTool, ToolContext, ToolFailure
from mull.agent.tools.workspace import Workspace
from mull.neutral.blocks import ToolCallBlock, ToolResultBlock


class Screen(ToolContext):
    """Takes what tools show while they run."""

    def __init__(self, tokens: int | None = None, deps: Any = None) -> None:
        super().__init__(deps, tokens=tokens, on_emit=self._show)
        self.text = ""

    def _show(self, text: str) -> None:
        self.text += text


def call(name: str, **given: Any) -> ToolCallBlock:
    return ToolCallBlock("c1", name, given)


async def start(
    workspace: Workspace, name: str, *, screen: Screen | None = None, **given: Any
) -> ToolResultBlock:
    return await answer(builtin_tools(workspace)[name], call(name, **given), screen)


async def answer(
    tool: RunnableTool, call: ToolCallBlock, screen: ToolContext | None = None
) -> ToolResultBlock:
    """What the model gets for a call that nobody has to approve."""
    try:
        prepared = tool.prepare(call)
    except ToolFailure as failure:
        return ToolResultBlock(call.id, str(failure), is_error=True)
    return await prepared.run(screen or Screen())


def preview(tool: RunnableTool, **given: Any) -> Preview:
    """What a person is shown of a call."""
    return tool.prepare(call(tool.definition.name, **given)).preview


def use(workspace: Workspace, name: str, **given: Any) -> str:
    """The output of a call that is to succeed."""
    result = asyncio.run(start(workspace, name, **given))
    assert not result.is_error, result.output
    return result.output


def fail(workspace: Workspace, name: str, **given: Any) -> str:
    """The output of a call that is to fail."""
    result = asyncio.run(start(workspace, name, **given))
    assert result.is_error, result.output
    return result.output


def fill(folder: Path, files: dict[str, str | bytes]) -> Workspace:
    """A workspace with these files."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return Workspace(folder)


def is_running(pid: int) -> bool:
    """Whether a process lives; one that only waits to be buried does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in ("Z", "X")


async def wait_for_the_rest() -> None:
    """Block until all else that runs on this loop is done: ends of processes are noticed."""
    if rest := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(rest)


def wait_until_gone(pid: int) -> None:
    """Block until a process has ended; a thread that waits for ever would keep its loop waiting."""
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            assert select.select([handle], [], [], 30)[0], f"process {pid} does not end"
        finally:
            os.close(handle)
