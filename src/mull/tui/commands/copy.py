"""`/copy`: copies the last answer, or its last code block, to the clipboard."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence

from mull.neutral.errors import LocalError
from mull.neutral.messages import Message
from mull.tui.commands.host import Host
from mull.tui.commands.known import Known
from mull.tui.screen.front import Item
from mull.tui.screen.signs import LONGEST_COPY

__all__ = ["clipboard_program", "copy_answer", "copy_offers", "last_code"]

_LONGEST_WAIT = 5.0
_PROGRAMS = (
    ("", ("pbcopy",)),
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard")),
    ("DISPLAY", ("xsel", "--clipboard", "--input")),
    ("WSL_DISTRO_NAME", ("clip.exe",)),
)
"""Each with the environment variable that shows that it can work here."""


async def copy_answer(host: Host, text: str) -> None:
    """Copy the last answer; `code` copies its last code block.

    Raises:
        LocalError: there is nothing to copy.
    """
    said = next((m.text for m in _answers(host) if m.text.strip()), "")
    if not said:
        raise LocalError("there is no answer to copy yet")
    if text.strip() == "code":
        said = last_code(said)
        if not said:
            raise LocalError("the last answer contains no code: /copy copies the whole answer")
    elif text.strip():
        raise LocalError("/copy copies the last answer, /copy code its last code block")
    size = f"{len(said):,} characters"
    program = clipboard_program(os.environ)
    done = program is not None and await asyncio.to_thread(_given, program, said)
    if len(said.encode()) <= LONGEST_COPY and host.front.copy(said):
        where = f"{program[0]} and " if done and program else ""
        host.tell(f"Copied {size} through {where}the terminal (OSC 52; some terminals disable it).")
    elif done and program:
        host.tell(f"Copied {size} with {program[0]}.")
    else:
        raise LocalError(f"no clipboard found for {size}: install xclip or wl-copy")


def _answers(host: Host) -> Iterable[Message]:
    said = [entry.message for _, entry in host.session.log.entries()]
    return (message for message in reversed(said) if message.role == "assistant")


def last_code(text: str) -> str:
    """The content of the last fenced code block; empty if there is none."""
    found, fence, inside = "", "", list[str]()
    for line in text.split("\n"):
        bare = line.strip()
        if not fence and bare.startswith(("```", "~~~")):
            fence, inside = bare[: len(bare) - len(bare.lstrip(bare[0]))], []
        elif fence and bare.startswith(fence) and not bare.strip(fence[0]):
            found, fence = "\n".join(inside), ""
        elif fence:
            inside.append(line)
    return found


def clipboard_program(environ: Mapping[str, str]) -> tuple[str, ...] | None:
    """The program that sets the clipboard on this system, if there is one."""
    for variable, command in _PROGRAMS:
        if (not variable or environ.get(variable)) and shutil.which(command[0]):
            return command
    return None


def _given(command: Sequence[str], text: str) -> bool:
    try:
        done = subprocess.run(
            command,
            input=text.encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_LONGEST_WAIT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def copy_offers(known: Known, words: Sequence[str]) -> Iterable[Item]:
    """The only argument."""
    return [Item("code", "only the last code block")] if len(words) == 1 else []
