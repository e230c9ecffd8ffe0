"""Which block each line of Markdown belongs to: the open quotes and list items, and one leaf.

A leaf is a paragraph, a block of code or a table. The rules are CommonMark's, and where they differ
it is for people who read answers: a list item that stands further in than its parent's mark is its
child; a table ends at the first line without a bar; only a paragraph of one line becomes a heading
by its underline; HTML is text. Blank lines are kept, as one each, and put around headings, tables,
rules and code.
"""

from __future__ import annotations

import re
from copy import copy
from typing import TypeAlias

from mull.tui.screen.theme import Theme
from mull.tui.text.lines import BLANK, Line, Span, Style
from mull.tui.text.markdown_code import CodeBlock
from mull.tui.text.markdown_containers import (
    ITEM,
    QUOTE,
    Container,
    Item,
    Quote,
    indent_of,
    marks,
    matched,
    room,
)
from mull.tui.text.markdown_table import Table, alignments
from mull.tui.text.markdown_text import Paragraph
from mull.tui.text.wrap import TAB, expanded

__all__ = ["Blocks"]

_FENCE = re.compile(r"( {0,3})(`{3,}(?=[^`]*$)|~{3,})(.*)")
_HEADING = re.compile(r" {0,3}(#{1,6})(?: +|$)")
_CLOSING_MARKS = re.compile(r"(?:^| +)#+ *$")
_RULE = re.compile(r" {0,3}(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})")
_UNDERLINE = re.compile(r" {0,3}(=+|-+) *")
_UNDECIDED = re.compile(r"[ >]*(?:[-*+_=#`~:]*|\d{1,9}[.)]?|[-*+] \[.?\]?|\|.*) *")
_DEEPEST = 50
_TAB = " " * TAB  # inside a very long line, whose columns nobody counts

_Leaf: TypeAlias = Paragraph | CodeBlock | Table


class Blocks:
    """Takes lines of Markdown, gives lines of styled text."""

    def __init__(self, theme: Theme, width: int) -> None:
        self._theme = theme
        self._width = width
        self._out: list[Line] = []
        self._open: list[Container] = []
        self._leaf: _Leaf | None = None
        self._is_heading = False
        self._fence_indent = 0
        self._blank = False  # whether a blank line came since the last block
        self._gap = False  # whether a blank line is owed before the next line
        self._began = False  # whether anything was drawn
        self._stands_apart = False  # whether the last block wants a blank line after it
        self._left: tuple[int, Item] | None = None  # the item that ended last, and its depth

    def line(self, text: str) -> None:
        """A whole line."""
        self._line(expanded(text), whole=True)

    def more(self, text: str) -> None:
        """A piece of a very long line, which is text or code whatever it holds further on."""
        self._line(text.replace("\t", _TAB), whole=False)

    def go_on(self, text: str) -> None:
        """The next piece of the very long line."""
        if isinstance(self._leaf, Paragraph | CodeBlock):
            self._leaf.more(text.replace("\t", _TAB))

    def end_line(self) -> None:
        """The very long line is over."""
        if isinstance(self._leaf, Paragraph | CodeBlock):
            self._leaf.end_line()
        if self._is_heading:
            self._close_leaf()

    def take(self) -> list[Line]:
        """The lines that are done."""
        if self._leaf is not None:
            self._emit(self._leaf.take())
        out, self._out = self._out, []
        return out

    def close(self) -> list[Line]:
        """The rest of the lines."""
        self._close_to(0)
        return self.take()

    def sketch(self, partial: str) -> list[Line]:
        """What is still open, with a line that has no end yet, as it would look now."""
        twin = copy(self)
        twin._out = self._out[:]
        twin._open = [copy(container) for container in self._open]
        twin._leaf = self._leaf.fork() if self._leaf else None
        if isinstance(twin._leaf, CodeBlock) and twin._leaf.fence:
            if partial.strip(" `~"):
                twin._line(expanded(partial), whole=True)
        elif not _UNDECIDED.fullmatch(partial) and not isinstance(twin._leaf, Table):
            twin._line(expanded(partial), whole=False)
        twin._close_to(0, sketch=True)
        return twin._out

    def resize(self, width: int) -> None:
        """Another width for what is not given out yet."""
        self._width = width
        if self._leaf is not None:
            self._leaf.resize(self._room)

    # Lines

    def _line(self, text: str, *, whole: bool) -> None:
        depth, rest = matched(self._open, text)
        inside = depth == len(self._open)
        leaf = self._leaf
        if isinstance(leaf, CodeBlock) and leaf.fence and inside:
            self._code(leaf, rest, whole)
        elif not rest.strip():
            self._end_paragraph(depth)
        elif isinstance(leaf, Paragraph) and not inside and not _begins_block(rest, whole):
            self._say(leaf, _stripped(rest, whole), whole)  # a lazy line of the paragraph
        else:
            if not inside:
                self._close_to(depth)
            self._put(self._open_containers(rest, whole), whole)

    def _code(self, leaf: CodeBlock, rest: str, whole: bool) -> None:
        closing = rest.strip()
        if (
            whole
            and closing.startswith(leaf.fence)
            and not closing.strip(leaf.fence[0])
            and indent_of(rest) < 4
        ):
            self._close_leaf()
            return
        rest = rest[min(indent_of(rest), self._fence_indent) :]
        self._say(leaf, rest, whole)

    def _end_paragraph(self, depth: int) -> None:
        if depth < len(self._open):
            self._close_to(depth)
        self._close_leaf()
        self._blank = True

    def _open_containers(self, rest: str, whole: bool) -> str:
        """Open the quotes and items that begin here; what is left of the line."""
        while len(self._open) < _DEEPEST and not (whole and _RULE.fullmatch(rest)):
            if found := QUOTE.match(rest):
                self._close_leaf()
                self._left = None
                self._open.append(Quote())
            elif (found := ITEM.match(rest)) and self._may_begin(found, rest):
                self._close_leaf()
                self._open.append(Item(found, self._number(found)))
            else:
                break
            rest = rest[found.end() :]
        return rest

    def _may_begin(self, found: re.Match[str], rest: str) -> bool:
        """Only 1 begins a list inside a paragraph: other numbers are years and amounts."""
        if not isinstance(self._leaf, Paragraph):
            return True
        return found[3] in (None, "1") and bool(rest[found.end() :].strip())

    def _number(self, found: re.Match[str]) -> int:
        depth = len(self._open)
        if self._left and self._left[0] == depth and self._left[1].kind == found[2][-1]:
            return self._left[1].number + 1
        return int(found[3] or 0)

    # Leaves

    def _put(self, rest: str, whole: bool) -> None:
        """Give a line, without the marks of its containers, to the leaf that it belongs to."""
        leaf, text = self._leaf, _stripped(rest, whole)
        if isinstance(leaf, Paragraph):
            if not whole or not self._becomes(leaf, rest, text):
                self._go_on_or_begin(rest, text, whole)
        elif not text:
            self._blank = False  # an item that has nothing beside its mark yet
        elif indent_of(rest) >= 4:
            if not isinstance(leaf, CodeBlock):
                leaf = CodeBlock("", self._theme, self._room)
                self._begin(leaf, apart=True)
            self._say(leaf, rest[4:], whole)
        elif isinstance(leaf, Table) and whole and "|" in text and not _begins_block(rest, whole):
            leaf.line(text)
        else:
            self._go_on_or_begin(rest, text, whole)

    def _becomes(self, leaf: Paragraph, rest: str, text: str) -> bool:
        """Whether the line makes the one before it a heading or the head of a table."""
        if leaf.held is None:
            return False
        if leaf.lines == 1 and (found := _UNDERLINE.fullmatch(rest)):
            self._leaf = None
            self._heading(1 if found[1][0] == "=" else 2, leaf.held, whole=True)
            return True
        aligned = alignments(leaf.held, text)
        if aligned is None:
            return False
        header, leaf.held = leaf.held, None
        self._close_leaf()
        self._begin(Table(header, aligned, self._theme, self._room), apart=True)
        return True

    def _go_on_or_begin(self, rest: str, text: str, whole: bool) -> None:
        if found := _HEADING.match(rest):
            title = rest[found.end() :]
            self._heading(len(found[1]), _CLOSING_MARKS.sub("", title) if whole else title, whole)
        elif whole and _RULE.fullmatch(rest):
            self._close_leaf()
            self._space(apart=True)
            self._emit([(Span("─" * min(self._room, 40), self._theme.faint),)])
            self._stands_apart = True
        elif whole and (found := _FENCE.match(rest)):
            self._fence_indent = len(found[1])
            self._begin(CodeBlock(found[3].strip(), self._theme, self._room, found[2]), apart=True)
        else:
            leaf = self._leaf
            if not isinstance(leaf, Paragraph):
                leaf = Paragraph(self._theme, self._room, self._text)
                self._begin(leaf)
            self._say(leaf, text, whole)

    def _heading(self, level: int, title: str, whole: bool) -> None:
        style = self._theme.heading if level < 3 else self._text._replace(bold=True)
        leaf = Paragraph(self._theme, self._room, style)
        self._begin(leaf, apart=True, apart_after=False)
        mark = "#" * level + " " if self._theme.marks else ""
        self._is_heading = True
        self._say(leaf, mark + _stripped(title, whole), whole)
        if whole:
            self._close_leaf()

    def _say(self, leaf: Paragraph | CodeBlock, text: str, whole: bool) -> None:
        if whole:
            leaf.line(text)
        else:
            leaf.more(text)

    def _begin(self, leaf: _Leaf, *, apart: bool = False, apart_after: bool = True) -> None:
        self._close_leaf()
        self._space(apart)
        self._stands_apart = apart and apart_after
        self._leaf = leaf

    def _close_leaf(self, *, sketch: bool = False) -> None:
        leaf, self._leaf = self._leaf, None
        self._is_heading = False
        if leaf is not None:
            self._emit(leaf.finish(sketch=sketch))

    def _close_to(self, depth: int, *, sketch: bool = False) -> None:
        """Close the leaf and all containers but the first `depth`."""
        self._close_leaf(sketch=sketch)
        while len(self._open) > depth:
            last = self._open[-1]
            if isinstance(last, Item):
                if not last.drawn:
                    self._space(apart=False)
                    self._emit([BLANK])
                self._left = (len(self._open) - 1, last)
            self._open.pop()

    # Drawing

    @property
    def _text(self) -> Style:
        quoted = any(isinstance(container, Quote) for container in self._open)
        return self._theme.quote if quoted else self._theme.text

    @property
    def _room(self) -> int:
        return room(self._open, self._width)

    def _space(self, apart: bool) -> None:
        """Owe a blank line between blocks if the source has one or their kind asks for it."""
        apart = not self._open and (apart or self._stands_apart)
        self._gap = self._gap or self._blank or apart
        self._blank = self._stands_apart = False
        if self._left and len(self._open) <= self._left[0]:
            self._left = None

    def _emit(self, lines: list[Line]) -> None:
        for line in lines:
            if self._gap and self._began:
                drawn = [container for container in self._open if container.drawn]
                self._out.append(_without_end(marks(drawn, self._theme, self._width)))
            self._gap, self._began = False, True
            before = marks(self._open, self._theme, self._width)
            for container in self._open:
                container.drawn = True
            self._out.append((*before, *line) if line else _without_end(before))


def _begins_block(rest: str, whole: bool) -> bool:
    """Whether a line begins a block of its own, so that it cannot go on with a paragraph."""
    if indent_of(rest) >= 4:
        return False
    if any(pattern.match(rest) for pattern in (_HEADING, QUOTE, ITEM)):
        return True
    return whole and bool(_FENCE.match(rest) or _RULE.fullmatch(rest))


def _stripped(text: str, whole: bool) -> str:
    """Without blanks around it; those at the end of a piece may stand between words."""
    return text.strip() if whole else text.lstrip()


def _without_end(line: Line) -> Line:
    """The line without spaces at its end."""
    while line and not line[-1].text.strip():
        line = line[:-1]
    return (*line[:-1], Span(line[-1].text.rstrip(), line[-1].style)) if line else line
