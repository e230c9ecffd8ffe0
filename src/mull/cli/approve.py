"""Asks at the terminal whether a tool may run, and asks the model's questions to the user, line by
line, for commands without a screen.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

from mull.agent.tools.approve import (
    ApprovalAnswer,
    ApprovalChoice,
    ApprovalRequest,
    UserQuestion,
    offered,
)
from mull.agent.trust import TRUST_WORDS, TrustAnswer, TrustRequest
from mull.tui.text.safe import neutralise, one_line

__all__ = ["LineApprover", "find_terminal"]

_LONGEST_ANSWER = 4096
_LONGEST_ROW = 1000


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
        """Ask once: a number is an answer, any other input is a no and its reason."""
        title, detail = request.preview.title, request.preview.detail
        shown = [
            f"\n{one_line(title)}",
            _quoted(detail or title),
            f"Allow {one_line(request.tool)}?",
            *(one_line(why, _LONGEST_ROW) for why in (request.wants, request.altered) if why),
        ]
        rows = offered(request)
        said = await self._number(shown, [word for _, word in rows], "Number, or a reason for no")
        choice: ApprovalChoice = "no" if isinstance(said, str) else rows[said][0]
        if choice == "always":
            said = await self._keeping(request.kept)
            choice = "no" if isinstance(said, str) else ("yes", "always")[said]
        return ApprovalAnswer(choice, said if isinstance(said, str) else "")

    async def _keeping(self, kept: str) -> int | str:
        """Whether a rule is to be written that holds for ever, shown as it will be written: 1 if
        it is, 0 if the call is allowed without it; any other input is a no here, too.
        """
        where, _, text = kept.partition("\n")
        shown = ["Keep this rule for ever?", f"It will be written to {one_line(where)}"]
        words = ["No, allow it only this time", "Yes, keep the rule"]
        return await self._number([*shown, _quoted(text)], words, "Number, or a reason for no")

    async def _number(self, shown: Sequence[str], words: Sequence[str], prompt: str) -> int | str:
        """The row whose number is given, from 0; or what else is typed."""
        rows = [f"{number}. {one_line(word, _LONGEST_ROW)}" for number, word in enumerate(words, 1)]
        said = (await self._asked("\n".join((*shown, *rows, f"{prompt}: ")))).strip()
        if said.isdecimal() and 1 <= int(said) <= len(rows):
            return int(said) - 1
        return said

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
        hint = "Number, your own answer, or Enter for none" if question.options else "Your answer"
        shown = ("\nThe model asks:", _quoted(question.text))
        said = await self._number(shown, question.options, hint)
        return (said or None) if isinstance(said, str) else question.options[said]

    async def trust(self, request: TrustRequest) -> TrustAnswer:
        """Show a project's instructions for models in full, and ask whether to use them."""
        files = [
            f"\n{one_line(one.path)} tells the model:\n{_quoted(one.text.rstrip())}"
            for one in request.files
        ]
        shown = [*files, "Give this to the model?"]
        said = await self._number(shown, list(TRUST_WORDS.values()), "Number")
        return "no" if isinstance(said, str) else list(TRUST_WORDS)[said]

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
