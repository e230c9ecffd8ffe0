"""Markdown events as lines: the prefix of each line, and the blank lines between blocks.

Blank lines are kept, collapsed to one, and added around headings, tables, rules and code.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import NamedTuple, TypeAlias, assert_never

from mull.markdown import events as md
from mull.tui.screen.theme import Theme
from mull.tui.text.lines import BLANK, Line, Span, Style, line_width
from mull.tui.text.markdown_code import CodeLines
from mull.tui.text.markdown_table import TableLines
from mull.tui.text.markdown_text import Looks, TextLines
from mull.tui.text.wrap import chopped

__all__ = ["Drawing"]

_QUOTED, _PLAIN_QUOTED = "▎ ", "> "
_NARROWEST = 8


_Leaf: TypeAlias = TextLines | CodeLines | TableLines


class _Container(NamedTuple):
    """An open quote or item; `drawn` once a line of it is written."""

    mark: str
    drawn: bool = False


class Drawing:
    """Takes events, gives lines of styled text."""

    def __init__(self, theme: Theme, width: int) -> None:
        self._theme = theme
        self._width = width
        self._looks = Looks(theme)
        self._out: list[Line] = []
        self._open: list[_Container] = []
        self._leaf: _Leaf | None = None
        self._blank = False  # whether there was a blank line since the last block
        self._gap = False  # whether a blank line is due before the next line
        self._began = False  # whether anything was drawn
        self._stands_apart = False  # whether the last block needs a blank line after it

    def draw(self, events: Iterable[md.Event]) -> list[Line]:
        """The lines completed by these events."""
        for event in events:
            self._event(event)
        if self._leaf is not None:
            self._emit(self._leaf.take())
        out, self._out = self._out, []
        return out

    def resize(self, width: int) -> None:
        """Another width for what is not given out yet."""
        self._width = width
        if self._leaf is not None:
            self._leaf.resize(_room(self._open, width))

    def fork(self) -> Drawing:
        """An independent copy."""
        twin = copy(self)
        twin._out = self._out[:]
        twin._open = self._open[:]
        twin._leaf = self._leaf.fork() if self._leaf else None
        return twin

    def _event(self, event: md.Event) -> None:
        match event:
            case md.Pieces() | md.CodeLine() | md.CodePart() | md.Row():
                assert self._leaf is not None
                self._leaf.put(event)
            case md.Text() | md.Code() | md.Table():
                self._begin(event)
            case md.Sign.DONE:
                assert self._leaf is not None
                self._emit(self._leaf.finish())
                self._leaf = None
            case md.Sign.RULE:
                self._space(apart=True)
                width = min(_room(self._open, self._width), 40)
                rule = "" if self._theme.words else "─" * width
                self._emit([(Span(rule, self._theme.faint),) if rule else BLANK])
                self._stands_apart = True
            case md.Sign.BLANK:
                self._blank = True
            case md.Sign.QUOTE | md.Item():
                self._open.append(_Container(_mark(event, words=self._theme.words)))
            case md.Sign.END:
                if not self._open[-1].drawn and self._open[-1].mark != _QUOTED:
                    self._space()
                    self._emit([BLANK])
                self._open.pop()
            case _:
                assert_never(event)

    def _begin(self, event: md.Text | md.Code | md.Table) -> None:
        theme, room = self._theme, _room(self._open, self._width)
        self._space(apart=not isinstance(event, md.Text) or event.level > 0)
        self._stands_apart = not isinstance(event, md.Text)
        match event:
            case md.Text(level):
                self._leaf = TextLines(self._looks, room, self._style(level))
                if level and theme.marks:
                    self._leaf.put(md.Pieces([md.Piece("#" * level + " ", 0)]))
            case md.Code(info):
                self._leaf = CodeLines(info, theme, room)
            case md.Table():
                self._leaf = TableLines(event, theme, self._looks, room)

    def _style(self, level: int) -> Style:
        quoted = any(container.mark == _QUOTED for container in self._open)
        base = self._theme.quote if quoted else self._theme.text
        if level:
            return self._theme.heading if level < 3 else base._replace(bold=True)
        return base

    def _space(self, apart: bool = False) -> None:
        """Request a blank line between blocks if the source has one or their kind needs it."""
        apart = not self._open and (apart or self._stands_apart)
        self._gap = self._gap or self._blank or apart
        self._blank = self._stands_apart = False

    def _emit(self, lines: list[Line]) -> None:
        for line in lines:
            if self._gap and self._began:
                drawn = [container for container in self._open if container.drawn]
                self._out.append(_without_end(self._marks(drawn)))
            self._gap, self._began = False, True
            before = self._marks(self._open)
            if self._open and not self._open[-1].drawn:
                self._open = [_Container(mark, drawn=True) for mark, _ in self._open]
            self._out.append((*before, *line) if line else _without_end(before))

    def _marks(self, containers: Sequence[_Container]) -> Line:
        """The prefix of a line; it is dropped if it leaves no room for text."""
        spans = []
        for container in containers:
            if container.mark == _QUOTED:
                mark = _PLAIN_QUOTED if self._theme.words else _QUOTED
                spans.append(Span(mark, self._theme.faint))
            else:
                mark = " " * len(container.mark) if container.drawn else container.mark
                spans.append(Span(mark, self._theme.note))
        room = self._width - _room(containers, self._width)
        if line_width(spans) <= room:
            return tuple(spans)
        return next(chopped(spans, room)) if room > 0 else ()


def _mark(event: md.Sign | md.Item, *, words: bool) -> str:
    if isinstance(event, md.Sign):
        return _QUOTED
    if event.done is not None:
        done, open_ = ("done: ", "to do: ") if words else ("☑ ", "☐ ")
        return done if event.done else open_
    bullet = "- " if words else "• "
    return bullet if event.number is None else f"{event.number}{event.delimiter} "


def _room(containers: Sequence[_Container], width: int) -> int:
    """The cells for text beside the prefix."""
    taken = sum(len(container.mark) for container in containers)
    return max(width - taken, min(_NARROWEST, width))


def _without_end(line: Line) -> Line:
    """The line without trailing spaces."""
    while line and not line[-1].text.strip():
        line = line[:-1]
    return (*line[:-1], Span(line[-1].text.rstrip(), line[-1].style)) if line else line
