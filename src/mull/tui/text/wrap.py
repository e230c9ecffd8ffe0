"""Wraps styled text into lines of a given width.

`Wrapper` breaks between words, accepts text as it arrives and gives out a line as soon as later
text cannot change it; how the text was split into chunks makes no difference. A word longer than a
line is broken, a cluster never. Between wide characters (Chinese, Japanese) a line may break as
between words, but not before their closing punctuation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from typing import Self

from mull.neutral.patterns import pattern
from mull.tui.text.lines import Line, Span, Style
from mull.tui.text.width import cell_width, clusters, is_wide

__all__ = ["TAB", "Wrapper", "chopped", "expanded", "wrapped"]

TAB = 4
_TOKEN = pattern(r" +|[^ ]+")
_CLOSING = frozenset("、。，．・：；！？）〕］｝〉》」』】”’,.;:!?)]}")


def expanded(text: str) -> str:
    """The text with tabs expanded to spaces."""
    return text.expandtabs(TAB) if "\t" in text else text


class Wrapper:
    """Words laid out in lines of `width` cells."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._done: list[Line] = []
        self._row: list[Span] = []
        self._used = 0
        self._gap: list[Span] = []
        self._gap_width = 0
        self._word: list[Span] = []
        self._word_width = 0

    def add(self, text: str, style: Style) -> None:
        """Text without newlines and tabs, in one style."""
        for token in _TOKEN.findall(text):
            if token[0] == " ":
                self._end_word()
                self._gap.append(Span(token, style))
                self._gap_width += len(token)
            else:
                self._grow(token, style)

    def newline(self) -> None:
        """The line ends here, whatever it contains."""
        self._end_word()
        self._end_row()

    def take(self) -> list[Line]:
        """The finished lines."""
        done, self._done = self._done, []
        return done

    @property
    def row(self) -> Line:
        """The words of the open row that no later word can move."""
        return tuple(self._row)

    def turn_over(self, width: int) -> None:
        """Leave the open row as it is; what is not in it yet starts another, of another width."""
        word = self._word
        self._width = width
        self._row, self._gap, self._word = [], [], []
        self._used = self._gap_width = self._word_width = 0
        for text, style in word:
            self._put(text, style)

    def finish(self) -> list[Line]:
        """Everything; a row without text gives no line."""
        self._end_word()
        if self._row:
            self._end_row()
        return self.take()

    def resize(self, width: int) -> None:
        """Lay out what is not given out yet, and everything that follows, at another width."""
        rest = (*self._row, *self._gap, *self._word)
        self._width = width
        self._row, self._gap, self._word = [], [], []
        self._used = self._gap_width = self._word_width = 0
        for span in rest:
            self.add(*span)

    def fork(self) -> Self:
        """An independent copy."""
        twin = copy(self)
        twin._done, twin._row = self._done[:], self._row[:]
        twin._gap, twin._word = self._gap[:], self._word[:]
        return twin

    def _grow(self, token: str, style: Style) -> None:
        """Extend the word; what certainly no longer fits its row moves on."""
        word = self._word
        if word and word[-1].style == style:
            self._word_width -= cell_width(word[-1].text)
            token = word.pop().text + token
        elif word and (is_wide(token[0]) or is_wide(word[-1].text[-1])):
            self._end_word()
        if not token.isascii():
            *pieces, token = _unbreakable(token)
            for piece in pieces:
                self._put(piece, style)
                self._end_word()
        self._put(token, style)

    def _put(self, text: str, style: Style) -> None:
        self._word.append(Span(text, style))
        self._word_width += cell_width(text)
        if self._used + self._gap_width + self._word_width > self._width:
            if self._row:
                self._end_row()
            self._gap.clear()  # an indent that leaves no room for the word is dropped
            self._gap_width = 0
            if self._word_width > self._width:
                self._break_word()

    def _break_word(self) -> None:
        """Give out the rows that the word fills; the rest keeps growing."""
        *rows, rest = chopped(self._word, self._width)
        self._done += rows
        self._word = list(rest)
        self._word_width = sum(cell_width(span.text) for span in rest)

    def _end_word(self) -> None:
        if not self._word:
            return
        for span in (*self._gap, *self._word):
            if self._row and self._row[-1].style == span.style:
                self._row[-1] = Span(self._row[-1].text + span.text, span.style)
            else:
                self._row.append(span)
        self._used += self._gap_width + self._word_width
        self._gap.clear()
        self._word.clear()
        self._gap_width = self._word_width = 0

    def _end_row(self) -> None:
        self._done.append(tuple(self._row))
        self._row.clear()
        self._gap.clear()
        self._used = self._gap_width = 0


def _unbreakable(text: str) -> list[str]:
    """A run without spaces, split where a line may break: beside wide characters."""
    pieces: list[str] = []
    fits = False
    for cluster, _ in clusters(text):
        wide = is_wide(cluster[0])
        if pieces and (cluster in _CLOSING or not (fits or wide)):
            pieces[-1] += cluster
        else:
            pieces.append(cluster)
        fits = wide
    return pieces


def chopped(spans: Iterable[Span], width: int) -> Iterator[Line]:
    """Spans cut into rows of at most `width` cells, between any two clusters."""
    row: list[Span] = []
    room = width
    for text, style in spans:
        start = 0
        if text.isascii():
            while len(text) - start > room:
                if room:
                    row.append(Span(text[start : start + room], style))
                start += room
                yield tuple(row)
                row, room = [], width
            room -= len(text) - start
        else:
            at = 0
            for cluster, cells in clusters(text):
                if cells > room and room < width:
                    if at > start:
                        row.append(Span(text[start:at], style))
                    yield tuple(row)
                    row, room, start = [], width, at
                room -= cells
                at += len(cluster)
        if start < len(text):
            row.append(Span(text[start:], style))
    yield tuple(row)


def wrapped(text: str, style: Style, width: int) -> list[Line]:
    """A complete text of one style: its own line breaks kept, long lines wrapped."""
    wrapper = Wrapper(width)
    for number, line in enumerate(text.split("\n")):
        if number:
            wrapper.newline()
        wrapper.add(expanded(line), style)
    return wrapper.finish()
