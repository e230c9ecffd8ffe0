"""`!command`: runs in the shell, shows the output, and sends it to the model with the next message.

It is the user's own command: it runs without approval and with the user's environment. It gets no
keyboard input.
"""

from __future__ import annotations

import os
from pathlib import Path

from mull.agent.attachments import fenced
from mull.agent.tools.output import Output
from mull.agent.tools.process import Command
from mull.agent.tools.run import shell
from mull.agent.tools.workspace import Workspace
from mull.neutral.blocks import TextBlock
from mull.neutral.errors import LocalError
from mull.tui.commands.host import Host, page
from mull.tui.text.safe import one_line

__all__ = ["run_shell"]

_ROOM = 16 << 10
"""Maximum bytes of one command's output that the model gets."""
_SHOWN = 40
_CALM = {"PAGER": "cat", "GIT_PAGER": "cat", "TERM": "dumb"}


async def run_shell(host: Host, command: str) -> None:
    """Run a command to its end; interrupting it keeps its output so far.

    Raises:
        LocalError: the command is empty, or it cannot be started.
    """
    if not command.strip():
        raise LocalError("!COMMAND runs a command in the shell, for example !git status")
    if "\0" in command:
        raise LocalError("a command cannot contain a zero byte")
    folder = Path(host.session.info.folder)
    output = Output(_workspace(host, folder).put_aside, lambda _: None, _ROOM)
    try:
        process = await Command.start((shell(), "-c", command), folder, {**os.environ, **_CALM})
    except OSError as error:
        raise LocalError(f"cannot start the shell: {error.strerror or error}") from None
    ended = "interrupted by the user"
    try:
        while data := await process.read():
            output.add(data)
        await process.wait()
        ended = ""
    finally:
        output.close()
        status = await process.end()
        _keep(host, command, output.text(), ended or (f"exit status {status}" if status else ""))


def _workspace(host: Host, folder: Path) -> Workspace:
    toolbox = host.session.toolbox
    return toolbox.workspace if toolbox else Workspace(folder)


def _keep(host: Host, command: str, text: str, ended: str) -> None:
    """Show it, and add it to the next message."""
    shown = page(host)
    lines = text.rstrip("\n").split("\n") if text.strip() else []
    if len(lines) > _SHOWN:
        shown.note(f"The first {len(lines) - _SHOWN:,} lines are not shown; the model gets them.")
    for line in lines[-_SHOWN:]:
        shown.text(line, shown.theme.tool_output, indent=2)
    if ended or not lines:
        shown.note(f"[{ended}]" if ended else "(no output)")
    host.show(shown.lines)
    name = f"the user ran {one_line(command)}"
    host.ran.append(TextBlock(fenced(name, text, ended, kind="")))
