"""What a person is asked: a choice by key, some words, or one of many things. One at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from mull.tui.screen.front import Question
from mull.tui.screen.picker import Picker
from mull.tui.screen.theme import Theme
from mull.tui.text.lines import Line, Span
from mull.tui.text.width import cell_width

__all__ = ["Asking"]

_WORDS = "In your own words; Enter sends them."
QUIET = 0.7
"""Seconds without a key before a choice takes one: who is typing has not seen the question."""


class Asking:
    """The question that has the keyboard, if there is one. `changed` is called when it does."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.question: Question | None = None
        self.picker: Picker | None = None
        self.wants_words = False
        self._changed = changed
        self._turn = asyncio.Lock()
        self._answer: asyncio.Future[Any] | None = None
        self._quiet_since = 0.0

    async def key(self, question: Question) -> str:
        """Wait for the key of a choice."""
        async with self._turn:
            self.question = question
            self._listen_later()
            try:
                key: str = await self._wait()
                return key
            finally:
                self.question = None
                self._changed()

    async def words(self) -> str:
        """Wait for a line of text."""
        async with self._turn:
            self.wants_words = True
            try:
                text: str = await self._wait()
                return text
            finally:
                self.wants_words = False
                self._changed()

    async def item(self, picker: Picker) -> str | None:
        """Wait until something is picked, or nothing is."""
        async with self._turn:
            self.picker = picker
            try:
                picked: str | None = await self._wait()
                return picked
            finally:
                self.picker = None
                self._changed()

    @property
    def listens(self) -> bool:
        """Whether a key now is meant for the question."""
        return asyncio.get_running_loop().time() - self._quiet_since >= QUIET

    def press(self, key: str) -> bool:
        """A key was pressed while a choice is to be made; False if it belongs to the line that
        was being typed when the question came."""
        if not self.listens:
            self._listen_later()
            return False
        if self.question and any(choice.key == key for choice in self.question.choices):
            self.give(key)
        return True

    def _listen_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._quiet_since = loop.time()
        loop.call_later(QUIET, self._changed)

    def give(self, answer: Any) -> None:
        """Answer what is asked."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)

    def lines(self, theme: Theme, width: int) -> Sequence[Line]:
        """What stands above the input."""
        if self.picker is not None:
            return self.picker.lines(theme, width)
        if self.wants_words:
            return [(Span(_WORDS, theme.warning),)]
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
            self._answer = None


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
