"""Reading what is too long for the conversation: documents one below the other, over the screen.

A document is a thinking block, the output of a tool, or a diff. Each can be opened and closed
separately; the reader can jump between them, scroll, and search. This module is independent of
keyboard and terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from mull.tui.conversation.sections import Look
from mull.tui.screen.theme import Theme
from mull.tui.text.lines import BLANK, Line, Span, Style
from mull.tui.text.width import cell_width, fitted

__all__ = ["Document", "Viewer"]

_OPEN, _CLOSED = "▾ ", "▸ "
_MOST_DRAWN = 64


class Document(NamedTuple):
    """Something to read. `version` changes when it has grown."""

    title: str
    lines: Callable[[Look], list[Line]]
    version: int
    text: str


class Viewer:
    """A reader's position in some documents; `opened` are those open at first.

    A single document has no title line, and is always open.
    """

    def __init__(self, title: str, documents: Sequence[Document], opened: Sequence[int]) -> None:
        self.title = title
        self.at = max(len(documents) - 1, 0)
        self.found = ""
        self._documents = documents
        self._open = set(opened)
        self._top: int | None = None  # None: where the selected document starts
        self._hit: int | None = None  # the last row found
        self._drawn: dict[int, tuple[object, list[Line]]] = {}
        self._room = 24
        self._look: Look | None = None

    @property
    def is_alone(self) -> bool:
        """Whether there is only one document."""
        return len(self._documents) == 1

    def update(self, documents: Sequence[Document]) -> None:
        """The current documents: those there were, and perhaps more."""
        self._documents = documents

    def lines(self, look: Look, rows: int) -> list[Line]:
        """The screen: the rows of the documents, and a line with the position."""
        self._look = look
        room = self._room = max(rows - 1, 1)
        whole, heads = self._whole()
        last = max(len(whole) - room, 0)
        if self._top is None:
            self._top = heads[self.at] if heads else 0
        self._top = top = max(0, min(self._top, last))
        shown = [self._marked(line) for line in whole[top : top + room]]
        shown += [BLANK] * (room - len(shown))
        return [*shown, self._footer(look.theme, look.width, top, len(whole), room)]

    # What keys do

    def scroll(self, rows: int) -> None:
        """Scroll by this many rows, and select a visible document."""
        self._hit = None
        self._top = max(0, (self._top or 0) + rows)
        _, heads = self._whole()
        end = self._top + self._room
        if heads and not self._top <= heads[self.at] < end:
            before = [at for at, head in enumerate(heads) if head < end]
            self.at = before[-1] if before else 0

    def page(self, pages: float) -> None:
        """Scroll by this many screens."""
        self.scroll(int(pages * max(self._room - 1, 1)))

    def go(self, *, to_end: bool) -> None:
        """Go to the start or the end."""
        whole, _ = self._whole()
        self.at = len(self._documents) - 1 if to_end else 0
        self._top = len(whole) if to_end else 0

    def jump(self, steps: int) -> None:
        """Go to the next document, or the previous one."""
        self.at = max(0, min(len(self._documents) - 1, self.at + steps))
        self._top = self._hit = None

    def toggle(self) -> None:
        """Open or close the chosen document."""
        self._open ^= {self.at}
        self._top = self._hit = None

    def toggle_all(self) -> None:
        """Close all of them; or open all, if one is closed."""
        every = set(range(len(self._documents)))
        self._open = set() if self._open >= every else every
        self._top = self._hit = None

    def search(self, text: str, *, backwards: bool = False) -> bool:
        """Go to the next row that contains this text, opening its document; returns whether there
        is one.
        """
        self.found = text
        if not text:
            return False
        wanted = text.lower()
        known = len(self._open)
        for at, document in enumerate(self._documents):
            if wanted in document.text.lower():
                self._open.add(at)
        if len(self._open) > known:  # rows have moved
            self._hit = None
        whole, heads = self._whole()
        hits = [row for row, line in enumerate(whole) if wanted in _text(line).lower()]
        if not hits:
            return False
        here = self._hit if self._hit is not None else (self._top or 0) - 1
        after = [row for row in hits if (row < here if backwards else row > here)]
        row = (after[-1] if backwards else after[0]) if after else hits[-1 if backwards else 0]
        self._top = self._hit = row
        self.at = max((at for at, head in enumerate(heads) if head <= row), default=0)
        return True

    def _whole(self) -> tuple[list[Line], list[int]]:
        """All rows, and the row at which each document starts."""
        look = self._look
        assert look is not None
        out: list[Line] = []
        heads: list[int] = []
        for at, document in enumerate(self._documents):
            heads.append(len(out))
            if not self.is_alone:
                out.append(self._head(document, at, look))
            if at in self._open or self.is_alone:
                out += self._body(at, document, look)
                out += [] if self.is_alone else [BLANK]
        return out, heads

    def _head(self, document: Document, at: int, look: Look) -> Line:
        theme = look.theme
        mark = _OPEN if at in self._open else _CLOSED
        style = theme.heading if at == self.at else theme.note
        number = f"{at + 1}. "
        title = fitted(document.title, look.width - cell_width(mark + number))
        return (Span(mark, theme.accent), Span(number, theme.faint), Span(title, style))

    def _body(self, at: int, document: Document, look: Look) -> list[Line]:
        version = (document.version, look.width, look.theme)
        known = self._drawn.get(at)
        if known is None or known[0] != version:
            if len(self._drawn) >= _MOST_DRAWN:
                self._drawn.clear()
            known = self._drawn[at] = (version, document.lines(look))
        return known[1]

    def _marked(self, line: Line) -> Line:
        """The line with the search text in reverse."""
        wanted = self.found.lower()
        text = _text(line)
        if not wanted or wanted not in text.lower() or len(text) != len(text.lower()):
            return line
        start = text.lower().index(wanted)
        return _reversed(line, start, start + len(wanted))

    def _footer(self, theme: Theme, width: int, top: int, count: int, room: int) -> Line:
        seen = "all" if count <= room else f"{min(100, (top + room) * 100 // count)} %"
        many = "" if self.is_alone else f" {self.at + 1} of {len(self._documents)}"
        left = f"{self.title}{many} · {seen}"
        of_parts = "" if self.is_alone else "Tab next · Enter folds · a all · "
        keys = f"q closes · {of_parts}/ search · ↑↓ PgUp PgDn scroll"
        room_left = width - cell_width(left) - 3
        shown = fitted(keys, room_left) if room_left >= 12 else ""
        bold = Span(fitted(left, width), theme.status._replace(bold=True))
        return (bold, Span("   " + shown, theme.faint)) if shown else (bold,)


def _text(line: Line) -> str:
    return "".join(span.text for span in line)


def _reversed(line: Line, start: int, end: int) -> Line:
    out: list[Span] = []
    at = 0
    for text, style in line:
        cuts = sorted({0, len(text), *(max(0, min(len(text), one - at)) for one in (start, end))})
        for first, last in pairwise(cuts):
            inside = start <= at + first and at + last <= end
            out.append(Span(text[first:last], _reverse(style) if inside else style))
        at += len(text)
    return tuple(out)


def _reverse(style: Style) -> Style:
    return style._replace(reverse=not style.reverse)
