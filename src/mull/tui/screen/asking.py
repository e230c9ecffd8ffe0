"""Questions to the user: a choice by key, text, or one of many items. One at a time.

An answer closes the question before the next key is processed: keys arrive in batches, and what
follows an answer is meant for the input line.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from mull.tui.screen.front import Question
from mull.tui.screen.picker import Picker
from mull.tui.screen.theme import Theme
from mull.tui.text.lines import Line, Span
from mull.tui.text.width import cell_width, fitted

__all__ = ["Asking"]

_WORDS = "Type your answer; Enter sends it."
QUIET = 0.7
"""Seconds without a keypress before a choice accepts one: a user who is typing has not seen the
question.
"""


class Asking:
    """The question that has the keyboard, if there is one. `changed` is called when that changes.

    `line` lends the input line with an initial text, and takes None to return it.
    """

    def __init__(
        self, changed: Callable[[], None], line: Callable[[str | None], None] = lambda _: None
    ) -> None:
        self.question: Question | None = None
        self.picker: Picker | None = None
        self.wants_words = False
        self.is_secret = False
        """Input is hidden."""
        self._title = _WORDS
        self._changed = changed
        self._line = line
        self._has_line = False
        self._turn = asyncio.Lock()
        self._answer: asyncio.Future[Any] | None = None
        self._quiet_since = 0.0

    async def key(self, question: Question) -> str:
        """Wait for the key of a choice."""
        async with self._turn:
            self.question = question
            self._listen_later()
            key: str = await self._wait()
            return key

    async def words(self) -> str:
        """Wait for a line of text."""
        async with self._turn:
            self._title, self.wants_words = _WORDS, True
            self._borrow("")
            text: str = await self._wait()
            return text

    async def secret(self, title: str) -> str | None:
        """Wait for a hidden line; None if there is none."""
        async with self._turn:
            self._title, self.wants_words, self.is_secret = title, True, True
            self._borrow("")
            text: str | None = await self._wait()
            return text

    async def item(self, picker: Picker, found: str) -> str | None:
        """Wait until an item is picked, or none is."""
        async with self._turn:
            self.picker = picker
            self._borrow(found)
            picked: str | None = await self._wait()
            return picked

    @property
    def listens(self) -> bool:
        """Whether a key pressed now is meant for the question."""
        return asyncio.get_running_loop().time() - self._quiet_since >= QUIET

    def press(self, key: str) -> bool:
        """Handle a key while a choice is open; False if it belongs to the line that was being typed
        when the question appeared.
        """
        if not self.listens:
            self._listen_later()
            return False
        if self.question and any(choice.key == key for choice in self.question.choices):
            self.give(key)
        return True

    def mark(self) -> None:
        """Toggle the mark of the picker's current item."""
        if self.picker is not None:
            self.picker.mark()
            self._changed()

    def _listen_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._quiet_since = loop.time()
        loop.call_later(QUIET, self._changed)

    def give(self, answer: Any) -> None:
        """Answer the question."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)
            self._close()

    def lines(self, theme: Theme, width: int) -> Sequence[Line]:
        """The lines above the input."""
        if self.picker is not None:
            return self.picker.lines(theme, width)
        if self.wants_words:
            return [(Span(fitted(self._title, width), theme.warning),)]
        if self.question is None:
            return []
        if not self.listens:
            return [(Span(f"{self.question.title} …", theme.warning),)]
        return _question_lines(self.question, theme, width)

    async def _wait(self) -> Any:
        self._answer = asyncio.get_running_loop().create_future()
        self._changed()
        try:
            return await self._answer
        finally:
            if not self._answer.done() or self._answer.cancelled():
                self._close()
            self._answer = None

    def _borrow(self, text: str) -> None:
        self._has_line = True
        self._line(text)

    def _close(self) -> None:
        """Close the question and restore the line."""
        self.question = self.picker = None
        if self._has_line:
            self._has_line = False
            self._line(None)
        self.wants_words = self.is_secret = False
        self._changed()


def _question_lines(question: Question, theme: Theme, width: int) -> list[Line]:
    """The title and its choices, as many to a line as fit."""
    lines: list[list[Span]] = [[Span(question.title, theme.warning)]]
    used = cell_width(question.title)
    for choice in question.choices:
        spans = [
            Span(f"  [{choice.key}]", theme.accent),
            Span(f" {choice.word}", theme.text),
        ]
        wide = sum(cell_width(span.text) for span in spans)
        if used + wide > width:
            lines.append([])
            used = 0
        lines[-1] += spans
        used += wide
    return [tuple(spans) for spans in lines]
