"""Asks at the terminal whether a tool may run, and asks the model's questions to the user, line by
line, for commands without a screen.
"""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import suppress
from typing import TextIO

from mull.agent.tools.approve import LETTERS, ApprovalAnswer, ApprovalRequest, UserQuestion
from mull.agent.trust import TRUST_LETTERS, TrustAnswer, TrustRequest
from mull.tui.text.safe import neutralise, one_line

__all__ = ["LineApprover", "find_terminal"]

_ASK = "[y] once  [s] this session  [a] always  [n] no  [x] never: "
_TRUST = "[y] yes, until it changes  [o] only this time  [n] no: "
_LONGEST_ANSWER = 4096


def find_terminal() -> tuple[int, TextIO] | None:
    """The user's terminal to read from and write to, whatever the pipes are; None if there is
    none.
    """
    try:
        return os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC), open("/dev/tty", "w")
    except OSError:
        return None


def _quoted(text: str) -> str:
    """The text after a bar, so that no line of it can be mistaken for one of ours."""
    return "\n".join(f"  | {line}" for line in neutralise(text).split("\n"))


class LineApprover:
    """Shows what a call would do and reads a line. `keyboard` is a descriptor."""

    def __init__(self, keyboard: int, screen: TextIO) -> None:
        self._keyboard = keyboard
        self._screen = screen

    async def ask(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Ask once; any other input counts as a no and is passed on to the model."""
        title, detail = request.preview.title, request.preview.detail
        shown = (
            f"\n{one_line(title)}\n{_quoted(detail or title)}\n",
            f"Allow {one_line(request.tool)}?\n",
            f"[s], [a] and [x] apply to {one_line(request.rules[0])}.\n{_ASK}",
        )
        said = (await self._asked("".join(shown))).strip()
        if said.lower() in LETTERS:
            return ApprovalAnswer(LETTERS[said.lower()])
        return ApprovalAnswer("no", feedback=said)

    async def _asked(self, text: str) -> str:
        import termios  # where there is a terminal to ask on, this exists

        with suppress(termios.error):  # what was typed before the question is not an answer to it
            termios.tcflush(self._keyboard, termios.TCIFLUSH)
        self._show(text)
        typed = ""
        try:
            typed = await self._line()
        finally:
            if not typed.endswith("\n"):  # the next output gets its own line
                self._show("\n")
        return typed

    async def question(self, question: UserQuestion) -> str | None:
        """Ask the model's question; a number chooses an option, an empty line is no answer."""
        options = [f"{number}. {one_line(one)}" for number, one in enumerate(question.options, 1)]
        hint = "A number, your own answer, or Enter for none" if options else "Your answer"
        shown = ("\nThe model asks:", _quoted(question.text), *options, f"{hint}: ")
        said = (await self._asked("\n".join(shown))).strip()
        if said.isdecimal() and 1 <= int(said) <= len(options):
            return question.options[int(said) - 1]
        return said or None

    async def trust(self, request: TrustRequest) -> TrustAnswer:
        """Show a project's instructions for models in full, and ask whether to use them."""
        files = "".join(
            f"\n{one_line(one.path)} tells the model:\n{_quoted(one.text.rstrip())}\n"
            for one in request.files
        )
        said = (await self._asked(f"{files}Give this to the model?\n{_TRUST}")).strip().lower()
        return TRUST_LETTERS.get(said, "no")

    def _show(self, text: str) -> None:
        print(neutralise(text), end="", file=self._screen, flush=True)

    async def _line(self) -> str:
        loop = asyncio.get_running_loop()
        typed: asyncio.Future[bytes] = loop.create_future()

        def settle(data: bytes) -> None:
            if not typed.done():
                typed.set_result(data)

        def read() -> None:
            try:
                data = os.read(self._keyboard, _LONGEST_ANSWER)
            except OSError:  # the terminal is gone
                data = b""
            with suppress(RuntimeError):  # and the caller may be gone too
                loop.call_soon_threadsafe(settle, data)

        # a thread of the loop's pool would have to end, with a line, before Ctrl-C could end us
        threading.Thread(target=read, daemon=True).start()
        return (await typed).decode("utf-8", "replace")
