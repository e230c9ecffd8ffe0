"""An answer on a terminal: drawn as in the conversation, with a progress line while waiting."""

from __future__ import annotations

import signal
from contextlib import suppress
from typing import TextIO

from mull.cli.board import Board
from mull.cli.draw import Plain, tell
from mull.cli.thoughts import DrawnThoughts
from mull.neutral.events import Event, StateChanged, TextDelta, ThinkingDelta
from mull.neutral.target import Target

__all__ = ["OnTerminal"]

_WORDS = {
    "sending": "Waiting for the model",
    "healing": "Asking again",
    "compressing": "Compressing the conversation",
    "tools": "",
}
"""What each state of a turn waits for; while tools run, the user may be asked."""


class OnTerminal(Plain):
    """The same on a screen that can be overwritten. Messages from mull during an answer appear
    below it.
    """

    def __init__(self, out: TextIO, err: TextIO, *, thinking: str, is_value: bool = False) -> None:
        super().__init__(out, err, thinking=thinking, is_value=is_value)
        self._board = Board(out)
        self._later: list[str] = []

    def begin(self, target: Target) -> None:
        super().begin(target)
        with suppress(ValueError, AttributeError):  # not in the main thread, or no such signal
            signal.signal(signal.SIGCONT, lambda *_: self._board.forget())

    def event(self, event: Event) -> None:
        match event:
            case ThinkingDelta():
                self._board.wait("Thinking" if self._hidden else "")
            case TextDelta() if event.text:
                self._board.wait("Answering" if self._is_value else "")
            case StateChanged() if event.state in _WORDS:
                self._board.wait(_WORDS[event.state])
        super().event(event)

    def tick(self) -> None:
        self._board.tick()

    def _write_answer(self, text: str, *, is_last: bool = False) -> None:
        if not text:
            return
        thoughts = self._thoughts
        if isinstance(thoughts, DrawnThoughts) and thoughts.glance is not None:
            self._board.take_look(thoughts.glance)
        self._board.add(text)

    def _end_line(self) -> None:
        self._thoughts.end()
        self._board.end()
        later, self._later = self._later, []
        for text in later:
            tell(text, self._err)

    def _say(self, text: str) -> None:
        if self._board.is_open:
            self._later.append(text)
            return
        self._thoughts.end()
        self._board.step_aside()
        tell(text, self._err)
