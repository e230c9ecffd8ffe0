"""Asks on the terminal whether a tool may run, line by line, for commands that draw no screen."""

from __future__ import annotations

import asyncio
from typing import TextIO

from mull.agent.tools.approve import Answer, ApprovalRequest, Choice
from mull.tui.safe import neutralise

__all__ = ["LineApprover", "find_terminal"]

_CHOICES: dict[str, Choice] = {
    "y": "once",
    "s": "session",
    "a": "always",
    "n": "no",
    "x": "never",
}
_ASK = "[y] once  [s] this session  [a] always  [n] no  [x] never: "


def find_terminal() -> tuple[TextIO, TextIO] | None:
    """The user's terminal to read from and write to, whatever the pipes are; None without one."""
    try:
        return open("/dev/tty"), open("/dev/tty", "w")
    except OSError:
        return None


class LineApprover:
    """Shows what a call would do and reads a line."""

    def __init__(self, keyboard: TextIO, screen: TextIO) -> None:
        self._keyboard = keyboard
        self._screen = screen

    async def ask(self, request: ApprovalRequest) -> Answer:
        """Ask until the answer is one of those offered; words of any other kind are a no."""
        shown = neutralise(request.preview.detail or request.preview.title)
        title = neutralise(request.preview.title)
        print(f"\n{title}\n{shown}\nMay {request.tool} run?", file=self._screen)
        print(f"{request.rules[0]} is what [s], [a] and [x] are about.", file=self._screen)
        said = await asyncio.to_thread(self._read)
        if said.lower() in _CHOICES:
            return Answer(_CHOICES[said.lower()])
        return Answer("no", feedback=said)

    def _read(self) -> str:
        print(_ASK, end="", file=self._screen, flush=True)
        return self._keyboard.readline().strip()
