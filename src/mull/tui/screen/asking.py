"""Questions to the user: a list with a cursor, hidden text, or one of many items. One at a time.

Up, Down and digits move the cursor of a list, and Enter confirms. What is typed goes into the row
that takes text, so no letter of a sentence can approve anything. An answer closes the question
before the next key is processed: keys arrive in batches, and what follows an answer is meant for
the input line.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mull.tui.screen.front import LOOK, Question
from mull.tui.screen.picker import Picker
from mull.tui.screen.theme import Theme
from mull.tui.text.lines import BLANK, Line, Span, Style
from mull.tui.text.safe import neutralise
from mull.tui.text.width import cell_width, fitted
from mull.tui.text.wrap import wrapped

__all__ = ["Asking", "Drawing"]

QUIET = 0.7
"""Seconds without a keypress before a question accepts one: a user who is typing has not seen it.
"""
_HERE, _THERE = "❯ ", "  "
_KEYS = "↑↓ or a number chooses · "
_ARROWS = "↑↓ chooses · "
_LEAST_TEXT = 20
"""Columns left for text beside the words of its row."""


class Drawing(NamedTuple):
    """A question: the lines `above` what is typed and `below` it. `prompt` is before the typed
    text, None if it is not shown.
    """

    above: Sequence[Line] = ()
    prompt: Line | None = None
    below: Sequence[Line] = ()


class Asking:
    """The question that has the keyboard, if there is one. `changed` is called when that changes.

    `line` lends the input line with an initial text, and takes None to return it. `is_away` says
    that the screen does not show the question yet. `resume` is called when a question goes on
    after its viewer: with keys that were pressed meanwhile.
    """

    def __init__(
        self,
        changed: Callable[[], None],
        line: Callable[[str | None], None] = lambda _: None,
        is_away: Callable[[], bool] = lambda: False,
        resume: Callable[[], None] = lambda: None,
    ) -> None:
        self.question: Question | None = None
        self.picker: Picker | None = None
        self.wants_secret = False
        """A hidden line is asked for."""
        self.at = 0
        """The row with the cursor."""
        self.is_looking = False
        """The viewer of the question is open, or opening: keys are meant for that."""
        self._title = ""
        self._changed = changed
        self._line = line
        self._is_away = is_away
        self._resume = resume
        self._has_line = False
        self._opening: asyncio.TimerHandle | None = None
        self._digits = ""
        self._text = ""
        self._turn = asyncio.Lock()
        self._answer: asyncio.Future[Any] | None = None

    async def choose(self, question: Question) -> tuple[str, str]:
        """Wait for an answer: the key of a choice, and the text typed for it."""
        async with self._turn:
            self.question, self.at = question, question.start
            try:
                return await self._chosen(question)
            except BaseException:  # nobody waits for an answer any more
                self._close()
                raise

    async def _chosen(self, question: Question) -> tuple[str, str]:
        if question.follows:
            self._borrow("")
        else:
            self._listen_later()
        while True:
            answer: tuple[str, str] = await self._wait()
            if not self.is_looking or question.look is None:
                return answer
            await question.look()
            self.is_looking = False  # the question has been seen: it counts keys at once
            asyncio.get_running_loop().call_soon(self._resume)

    async def secret(self, title: str) -> str | None:
        """Wait for a hidden line; None if there is none."""
        async with self._turn:
            self._title, self.wants_secret = title, True
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
    def is_open(self) -> bool:
        """Whether keys are meant for the list."""
        return self.question is not None and self._opening is None

    @property
    def is_in_text(self) -> bool:
        """Whether the cursor is in the row that takes text."""
        return self.question is not None and self.at == self.question.text_row

    @property
    def takes_digits(self) -> bool:
        """Whether a digit moves the cursor: not in the middle of a text."""
        question = self.question
        if question is None or not question.numbered:
            return False
        return not (self._text and self.is_in_text)

    @property
    def approves(self) -> bool:
        """Whether Enter would give an answer that is neither a refusal nor harmless."""
        if self.question is None:
            return False
        choice = self.question.choices[self.at]
        return not (choice.refuses or choice.takes_text or choice.key == LOOK)

    def pressed(self) -> None:
        """A key was pressed, or the screen is back: a question that has just appeared waits."""
        if self._opening is not None:
            self._listen_later()

    def move(self, steps: int) -> None:
        """Move the cursor up or down."""
        if self.question is not None:
            self._digits = ""
            self.at = max(0, min(len(self.question.choices) - 1, self.at + steps))
            self._changed()

    def digit(self, digit: str) -> bool:
        """Move the cursor to the row of this number; False if there is none: then it is text."""
        row = int(digit) - 1
        if self.question is None or not 0 <= row < len(self.question.choices):
            return False
        self.at = row
        self._digits += digit
        self._changed()
        return True

    def typed(self, text: str) -> str:
        """What was typed so far has changed: the cursor goes where it belongs. Returns the digits
        before it that have turned out to be the beginning of a sentence.
        """
        question, was_empty = self.question, not self._text
        if not self.is_open or question is None:
            return ""
        self._text = text
        digits, self._digits = self._digits if was_empty and not self.is_in_text else "", ""
        if text:
            self.at = question.refusal if question.text_row is None else question.text_row
            self._changed()
        # `2 is enough` is a sentence; `2` and then `no` are a row and a change of mind
        return digits if text and self.is_in_text and not text[0].isalnum() else ""

    def confirm(self, text: str) -> None:
        """Answer with the row of the cursor, and this text if it takes one."""
        if self.question is None:
            return
        choice = self.question.choices[self.at]
        if choice.takes_text and not choice.refuses and not text.strip():
            return  # an answer in one's own words needs words
        self.is_looking = choice.key == LOOK
        self.give((choice.key, text if choice.takes_text else ""))

    def refuse(self) -> None:
        """Answer with the row for Esc."""
        if self.question is not None:
            self.give((self.question.choices[self.question.refusal].key, ""))

    def mark(self) -> None:
        """Toggle the mark of the picker's current item."""
        if self.picker is not None:
            self.picker.mark()
            self._changed()

    def give(self, answer: Any) -> None:
        """Answer the question."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)
            if not self.is_looking:
                self._close()

    def drawing(self, theme: Theme, width: int, room: int, typed: int = 1) -> Drawing:
        """What is around the input, in at most `room` rows; what is typed takes some of them."""
        if self.picker is not None:
            return Drawing(self.picker.lines(theme, width))
        if self.wants_secret:
            return Drawing([(Span(fitted(self._title, width), theme.warning),)])
        if self.question is None:
            return Drawing()
        if not self.is_open:
            title = fitted(f"{neutralise(self.question.title)} …", width)
            return Drawing([(Span(title, theme.warning),)])
        has_text = self.question.text_row is not None and bool(self._text)
        shows_text = has_text or self.is_in_text
        return _List(self.question, self.at, theme, width).fitting(room, typed, shows_text)

    async def _wait(self) -> Any:
        self._answer = asyncio.get_running_loop().create_future()
        self._changed()
        try:
            return await self._answer
        finally:
            if not self._answer.done() or self._answer.cancelled():
                self._close()
            self._answer = None

    def _listen_later(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
        self._opening = asyncio.get_running_loop().call_later(QUIET, self._open)

    def _open(self) -> None:
        """Nobody is typing: from now on keys are meant for the question."""
        if self._is_away():
            self._listen_later()
            return
        self._opening = None
        self._borrow("")
        self._changed()

    def _borrow(self, text: str) -> None:
        self._has_line, self._text = True, ""
        self._line(text)

    def _close(self) -> None:
        """Close the question and restore the line."""
        if self._opening is not None:
            self._opening.cancel()
        self._opening = self.question = self.picker = None
        self._text = self._digits = ""
        self.is_looking = False
        if self._has_line:
            self._has_line = False
            self._line(None)
        self.wants_secret = False
        self._changed()


class _List:
    """A question as lines. In a small window it gives up what matters least."""

    def __init__(self, question: Question, at: int, theme: Theme, width: int) -> None:
        self._question = question
        self._at = at
        self._theme = theme
        self._width = width

    def fitting(self, room: int, typed: int, shows_text: bool) -> Drawing:
        """The drawing for a window with this much room."""
        count = range(len(self._question.choices))
        text_row = self._question.text_row if shows_text else None
        head, hint = self._head(), [self._hint(shows_text)]
        for short in (False, True):
            rows = [self._row(at, short) for at in count]
            if text_row is not None:
                rows[text_row] = [BLANK] * typed  # its place
            if len(head) + _size(rows) < room:
                break
        else:
            hint = hint if len(head) + _size(rows) < room else []
        first, last = 0, len(rows)
        while last - first > 1 and _size(rows[first:last]) > max(room - 1, 1):
            first, last = (first, last - 1) if last - 1 > self._at else (first + 1, last)
        shown = rows[first:last]
        left = max(room - _size(shown) - len(hint), 0)
        if len(head) > left:
            head = [*head[: left - 1], (Span(self._cut(head[left - 1]), head[0][0].style),)][:left]
        if text_row is None or not first <= text_row < last:
            return Drawing([*head, *_flat(shown), *hint])
        above, below = rows[first:text_row], rows[text_row + 1 : last]
        return Drawing([*head, *_flat(above)], self._prompt(text_row), [*_flat(below), *hint])

    def _head(self) -> list[Line]:
        """The title, and what it is about."""
        question, theme, width = self._question, self._theme, self._width
        lines = wrapped(neutralise(question.title), theme.warning, width)
        for row in question.about:
            lines += _indented(wrapped(neutralise(row), theme.text, width - 2), "  ")
        for row in question.quoted.split("\n") if question.quoted else ():
            lines += _indented(wrapped(neutralise(row), theme.code, width - 4), "    ")
        return lines

    def _row(self, at: int, short: bool) -> list[Line]:
        mark, style, choice = self._mark(at), self._style(at), self._question.choices[at]
        words = neutralise(choice.word)
        if choice.takes_text and choice.refuses:
            words += " (type the reason)"
        room = max(self._width - cell_width(mark), 1)
        if short:
            return [(Span(mark + fitted(words, room), style),)]
        lines = wrapped(words, style, room) or [BLANK]
        return [(Span(mark, style), *lines[0]), *_indented(lines[1:], " " * cell_width(mark))]

    def _cut(self, line: Line) -> str:
        """A line after which something is missing."""
        return fitted("".join(span.text for span in line), self._width - 2) + " …"

    def _prompt(self, at: int) -> Line:
        mark, words = self._mark(at), self._question.choices[at].word
        label = f"{words}: " if words else ""
        if cell_width(mark + label) + _LEAST_TEXT > self._width:
            label = ""
        return (Span(mark + label, self._style(at)),)

    def _mark(self, at: int) -> str:
        cursor = _HERE if at == self._at else _THERE
        number = f"{at + 1}. " if at < 9 else "   "
        return cursor + number if self._question.numbered else cursor

    def _style(self, at: int) -> Style:
        return self._theme.accent if at == self._at else self._theme.text

    def _hint(self, shows_text: bool) -> Line:
        question = self._question
        choice = question.choices[self._at]
        keys = _KEYS if question.numbered else _ARROWS
        if shows_text and choice.takes_text:
            keys = _ARROWS
        enter = "sends it" if shows_text and choice.takes_text else "confirms"
        hint = f"{keys}Enter {enter} · Esc {question.esc}"
        return (Span(fitted(f"  {hint}", self._width), self._theme.note),)


def _indented(lines: Sequence[Line], indent: str) -> list[Line]:
    return [(Span(indent, line[0].style if line else Style()), *line) for line in lines]


def _flat(rows: Sequence[Sequence[Line]]) -> list[Line]:
    return [line for row in rows for line in row]


def _size(rows: Sequence[Sequence[Line]]) -> int:
    return sum(map(len, rows))
