"""A conversation in plain lines: nothing is redrawn, nothing moves, nothing is coloured.

For screen readers, for terminals without escape sequences, and for pipes. Lines are read as they
are typed; Ctrl-C interrupts the model.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mull.neutral.errors import LocalError
from mull.tui.conversation.sections import Look
from mull.tui.screen.front import Item, Mark, Preview, Question, Unfolded
from mull.tui.screen.keys import Key
from mull.tui.screen.picker import matching
from mull.tui.screen.plain_lines import LineReader, unechoed
from mull.tui.screen.theme import Theme, theme_for
from mull.tui.text.lines import Span
from mull.tui.text.safe import draw_on, neutralise, one_line
from mull.tui.text.sgr import encode

if TYPE_CHECKING:
    from mull.tui.screen.painter import Frame
    from mull.tui.screen.viewer import Document
    from mull.tui.talk import Talk

__all__ = ["PlainFront", "spoken_theme"]

_SHOWN = 20
_LONGEST_ROW = 1000
SILENCE = 10.0
"""Seconds after which a line says that the model is still working."""


def spoken_theme() -> Theme:
    """A theme without colours or symbols, for screen readers."""
    return replace(theme_for("plain", None, "none"), bar="", words=True)


class PlainFront:
    """Standard input and output, line by line."""

    has_keys = False
    keys: Sequence[Key] = ()

    def __init__(self, frame: Callable[[], Frame], progress: Callable[[], str]) -> None:
        self.theme: Theme = spoken_theme()
        self.echoes = sys.stdin.isatty()
        self._frame = frame
        self._progress = progress
        self._said_last = time.monotonic()
        self._soon: asyncio.Handle | None = None
        self._lines = LineReader(sys.stdin.fileno())
        self._leaving = False

    @property
    def width(self) -> int:
        """The columns that a line may take."""
        return get_terminal_size().columns

    def refresh(self) -> None:
        """Write what is finished."""
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_soon(self._write_now)

    def clear(self) -> None:
        """There is no screen to clear: output continues below."""

    def repaint(self, change: Callable[[int], int]) -> None:
        """Written lines stay: only new ones change."""
        change(0)

    async def view(
        self, title: str, documents: Callable[[], Sequence[Document]], *, unfolded: Unfolded
    ) -> None:
        """Write all of them."""
        self._write()
        look = Look(self.theme, self.width, "full")
        for document in documents():
            head = (Span(document.title, self.theme.heading),)
            draw_on(sys.stdout, encode([head, *document.lines(look)], "none"))

    def set_theme(self, name: str) -> None:
        """There are no colours here.

        Raises:
            LocalError: always.
        """
        raise LocalError("plain mode has no colours: start mull without --plain")

    @property
    def draft(self) -> str:
        """Nothing: the line is read elsewhere."""
        return ""

    def put(self, text: str) -> None:
        """Show text that was taken back; it cannot be put into a line that is read elsewhere."""
        self._write()
        print(f"(discarded) {neutralise(text)}")

    def copy(self, text: str) -> bool:
        """Plain output contains no escape sequences."""
        return False

    def alert(self, text: str, seconds: float) -> None:
        """The end is read out anyway."""

    def leave(self) -> None:
        """Quit, even while a line is being typed."""
        self._leaving = True
        self._lines.close()

    def finish(self) -> None:
        """Write the last messages."""
        self._write()

    async def ask(self, question: Question) -> tuple[str, str]:
        """Number the choices and read a line: a number is a choice, anything else is text for the
        one that takes text, or else the refusal. So is the end of the input.

        Input from a pipe is data and never an answer, nor is what was typed before the question.
        """
        self._write()
        title = one_line(question.title)
        if not self.echoes:
            print(f"{title} There is nobody to ask: no.")
            return question.choices[question.refusal].key, ""
        rows = [title, *question.about, *question.quoted.split("\n")]
        if question.numbered:
            rows += [f"{number}. {one.word}" for number, one in enumerate(question.choices, 1)]
        self._lines.set_aside()
        try:
            print("\n".join(one_line(row, _LONGEST_ROW) for row in rows if row))
            return await self._answer(question)
        finally:
            self._lines.bring_back()

    async def _answer(self, question: Question) -> tuple[str, str]:
        refusal, text_row = question.choices[question.refusal], question.text_row
        typed = refusal if text_row is None else question.choices[text_row]
        reason = "Reason for no, or Enter for none: "
        prompt = "Number, or a reason for no: " if typed.refuses else "Number, or your own answer: "
        if text_row is None or not question.numbered:
            prompt = "Number: " if question.numbered else "Your answer, or Enter for none: "
        while True:
            said = await self._read(prompt)
            if said is None or not (said.strip() or question.numbered):
                return refusal.key, ""
            said = said.strip()
            row = int(said) if said.isdecimal() and question.numbered else 0
            if 1 <= row <= len(question.choices):
                choice = question.choices[row - 1]
                prompt_for_text = reason if choice.refuses else "Your answer: "
                text = await self._read(prompt_for_text) if choice.takes_text else ""
                return choice.key, (text or "").strip()
            if said:
                return typed.key, said if typed.takes_text else ""

    async def pick(
        self,
        title: str,
        items: Sequence[Item],
        found: str = "",
        mark: Mark | None = None,
        preview: Preview | None = None,
    ) -> str | None:
        """Show a numbered list; a number picks, words search, an empty line picks nothing."""
        self._write()
        while True:
            fitting = matching(items, found)
            print(one_line(title))
            for number, item in enumerate(fitting[:_SHOWN], 1):
                print(one_line(f"{number}. {item.name}  {item.remark}").rstrip())
            if len(fitting) > _SHOWN:
                print(f"{len(fitting) - _SHOWN} more")
            said = await self._read("Number, words to search for, or Enter to cancel: ")
            if not said or not said.strip():
                return None
            if said.strip().isdecimal() and 1 <= int(said) <= len(fitting[:_SHOWN]):
                return fitting[int(said) - 1].name
            found = said

    async def secret(self, title: str) -> str | None:
        """Read a line without echo; a pipe cannot provide one."""
        self._write()
        if not self.echoes:
            return None
        with unechoed(sys.stdin.fileno()):
            said = await self._read(f"{one_line(title)}: ")
        print()
        return said

    async def run(self, talk: Talk, begin: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Read lines until there are no more, or the user quits."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._stopper(talk))
        talk.start(begin)
        await talk.wait()
        while not self._leaving:
            self._write()
            line = await self._read("> " if self.echoes else "")
            if line is None:
                break
            if line.strip():
                talk.enter(line)
                await talk.wait()
        if self.echoes:
            print()

    def _stopper(self, talk: Talk) -> Callable[[], None]:
        def stop() -> None:
            if not talk.stop():
                self.leave()

        return stop

    async def _read(self, prompt: str) -> str | None:
        print(neutralise(prompt), end="", flush=True)
        return await self._lines.read()

    def _write_now(self) -> None:
        try:
            self._write()
        except BrokenPipeError:  # nobody reads any more: the next line says so to `main`
            self.leave()

    def _write(self) -> None:
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        final, _ = self._frame()
        draw_on(sys.stdout, encode(final, "none"))
        if final:
            self._said_last = time.monotonic()
        self._tell_progress()

    def _tell_progress(self) -> None:
        """An occasional line while waiting: nothing else shows that the model is working."""
        going_on = self._progress() if self.echoes else ""
        if not going_on:
            self._said_last = time.monotonic()
        elif time.monotonic() - self._said_last >= SILENCE:
            self._said_last = time.monotonic()
            print(one_line(going_on), flush=True)
