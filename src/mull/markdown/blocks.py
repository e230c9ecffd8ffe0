"""Which block each line of Markdown belongs to: the open quotes and list items, and one leaf.

A leaf is a paragraph, a block of code or a table. The rules are CommonMark's, and where they differ
it is for people who read answers: a list item that stands further in than its parent's mark is its
child; a table ends at the first line without a bar; only a paragraph of one line becomes a heading
by its underline; HTML is text.
"""

from __future__ import annotations

import re
from copy import copy

from mull.markdown.containers import ITEM, QUOTE, Container, indent_of, matched
from mull.markdown.events import Code, CodeLine, CodePart, Event, Item, Sign
from mull.markdown.leaves import CodeLeaf, Leaf, Paragraph, TableLeaf, table_head

__all__ = ["Blocks"]

_FENCE = re.compile(r"( {0,3})(`{3,}(?=[^`]*$)|~{3,})(.*)")
_HEADING = re.compile(r" {0,3}(#{1,6})(?: +|$)")
_CLOSING_MARKS = re.compile(r"(?:^| +)#+ *$")
_RULE = re.compile(r" {0,3}(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})")
_UNDERLINE = re.compile(r" {0,3}(=+|-+) *")
_UNDECIDED = re.compile(r"[ >]*(?:[-*+_=#`~:]*|\d{1,9}[.)]?|[-*+] \[.?\]?|\|.*) *")
_DEEPEST = 50
_TAB = 4


class Blocks:
    """Takes lines of Markdown, gives events."""

    def __init__(self) -> None:
        self._out: list[Event] = []
        self._open: list[Container] = []
        self._leaf: Leaf | None = None
        self._left: tuple[int, Container] | None = None  # the item that ended last, and its depth
        self._blank = True  # whether a blank line was told since the last block

    def line(self, text: str) -> None:
        """A whole line."""
        self._line(text.expandtabs(_TAB) if "\t" in text else text, whole=True)

    def more(self, text: str) -> None:
        """A piece of a very long line, which is text or code whatever it holds further on."""
        self._line(_without_tabs(text), whole=False)

    def go_on(self, text: str) -> None:
        """The next piece of the very long line."""
        if isinstance(self._leaf, Paragraph | CodeLeaf):
            self._say(self._leaf, _without_tabs(text), whole=False)

    def end_line(self) -> None:
        """The very long line is over."""
        if isinstance(self._leaf, CodeLeaf):
            self._out.append(CodePart("", is_last=True))
        elif isinstance(self._leaf, Paragraph):
            self._leaf.end_line()
            if self._leaf.level:
                self._close_leaf()

    def take(self) -> list[Event]:
        """What can no longer change."""
        if isinstance(self._leaf, Paragraph):
            self._out += self._leaf.take()
        out, self._out = self._out, []
        return out

    def close(self) -> list[Event]:
        """All that is left."""
        self._close_to(0)
        return self.take()

    def rest(self, partial: str) -> list[Event]:
        """What is still open, with a line that has no end yet, as it would look now."""
        twin = copy(self)
        twin._out = self._out[:]
        twin._open = self._open[:]
        twin._leaf = leaf.fork() if isinstance(leaf := self._leaf, Paragraph) else copy(leaf)
        if isinstance(twin._leaf, CodeLeaf) and twin._leaf.fence:
            if partial.strip(" `~"):
                twin.line(partial)
        elif not _UNDECIDED.fullmatch(partial) and not isinstance(twin._leaf, TableLeaf):
            twin._line(partial.expandtabs(_TAB), whole=False)
        twin._close_to(0, guess=True)
        return twin._out

    # Lines

    def _line(self, text: str, *, whole: bool) -> None:
        depth, rest = matched(self._open, text)
        inside = depth == len(self._open)
        leaf = self._leaf
        if isinstance(leaf, CodeLeaf) and leaf.fence and inside:
            self._code(leaf, rest, whole)
        elif not rest.strip():
            if isinstance(leaf, CodeLeaf) and inside:
                leaf.blanks += 1
            else:
                self._close_to(depth)
                self._tell_blank()
        elif isinstance(leaf, Paragraph) and not inside and not _begins_block(rest, whole):
            self._say(leaf, rest, whole)  # a lazy line of the paragraph
        else:
            if not inside:
                self._close_to(depth)
            self._put(self._open_containers(rest, whole), whole)

    def _code(self, leaf: CodeLeaf, rest: str, whole: bool) -> None:
        closing = rest.strip()
        if (
            whole
            and closing.startswith(leaf.fence)
            and not closing.strip(leaf.fence[0])
            and indent_of(rest) < 4
        ):
            self._close_leaf()
        else:
            self._say(leaf, rest[min(indent_of(rest), leaf.indent) :], whole)

    def _tell_blank(self) -> None:
        if not self._blank:
            self._out.append(Sign.BLANK)
        self._blank = True

    def _open_containers(self, rest: str, whole: bool) -> str:
        """Open the quotes and items that begin here; what is left of the line."""
        while len(self._open) < _DEEPEST and not (whole and _RULE.fullmatch(rest)):
            if found := QUOTE.match(rest):
                self._close_leaf()
                self._left = None
                self._open.append(Container())
                self._out.append(Sign.QUOTE)
            elif (found := ITEM.match(rest)) and self._may_begin(found, rest):
                self._close_leaf()
                self._begin_item(found)
            else:
                break
            self._blank = False
            rest = rest[found.end() :]
        return rest

    def _may_begin(self, found: re.Match[str], rest: str) -> bool:
        """Only 1 begins a list inside a paragraph: other numbers are years and amounts."""
        if not isinstance(self._leaf, Paragraph):
            return True
        return found[3] in (None, "1") and bool(rest[found.end() :].strip())

    def _begin_item(self, found: re.Match[str]) -> None:
        indent, mark, number, space, task = found.groups()
        kind, depth, left = mark[-1], len(self._open), self._left
        is_first = not (left and left[0] == depth and left[1].kind == kind)
        count = int(number or 0) if is_first or left is None else left[1].number + 1
        column = len(indent)
        offset = column + len(mark) + len(space or " ")
        self._open.append(Container(kind, column, offset, count))
        done = None if task is None else task != " "
        self._out.append(Item(None if number is None else count, kind, is_first, done))

    # Leaves

    def _put(self, rest: str, whole: bool) -> None:
        """Give a line, without the marks of its containers, to the leaf that it belongs to."""
        leaf = self._leaf
        if isinstance(leaf, Paragraph):
            if not whole or not self._becomes(leaf, rest):
                self._go_on_or_begin(rest, whole)
        elif not rest.strip():
            return  # an item that has nothing beside its mark yet
        elif indent_of(rest) >= 4:
            if not isinstance(leaf, CodeLeaf):
                leaf = CodeLeaf()
                self._begin(leaf, Code(""))
            self._out += [CodeLine("")] * leaf.blanks
            leaf.blanks = 0
            self._say(leaf, rest[4:], whole)
        elif (
            isinstance(leaf, TableLeaf) and whole and "|" in rest and not _begins_block(rest, whole)
        ):
            self._out.append(leaf.row(rest))
        else:
            self._go_on_or_begin(rest, whole)

    def _becomes(self, leaf: Paragraph, rest: str) -> bool:
        """Whether the line makes the one before it a heading or the head of a table."""
        if leaf.held is None:
            return False
        held = leaf.held
        if leaf.lines == 1 and (found := _UNDERLINE.fullmatch(rest)):
            leaf.held = None
            self._heading(1 if found[1][0] == "=" else 2, held, whole=True)
        elif table := table_head(held, rest.strip()):
            leaf.held = None
            self._begin(TableLeaf(len(table.header)), table)
        return leaf.held is None

    def _go_on_or_begin(self, rest: str, whole: bool) -> None:
        if found := _HEADING.match(rest):
            title = rest[found.end() :]
            self._heading(len(found[1]), _CLOSING_MARKS.sub("", title) if whole else title, whole)
        elif whole and _RULE.fullmatch(rest):
            self._begin(None, Sign.RULE)
        elif whole and (found := _FENCE.match(rest)):
            self._begin(CodeLeaf(found[2], len(found[1])), Code(found[3].strip()))
        else:
            leaf = self._leaf
            if not isinstance(leaf, Paragraph):
                leaf = Paragraph()
                self._begin(leaf)
            self._say(leaf, rest, whole)

    def _heading(self, level: int, title: str, whole: bool) -> None:
        leaf = Paragraph(level)
        self._begin(leaf)
        self._say(leaf, title, whole)
        if whole:
            self._close_leaf()

    def _say(self, leaf: Paragraph | CodeLeaf, text: str, whole: bool) -> None:
        if isinstance(leaf, CodeLeaf):
            self._out.append(CodeLine(text) if whole else CodePart(text))
        elif whole:
            leaf.line(text)
        else:
            leaf.more(text)

    def _begin(self, leaf: Leaf | None, event: Event | None = None) -> None:
        """Begin a leaf; a paragraph tells itself, when it is sure to be one."""
        self._close_leaf()
        self._leaf = leaf
        self._blank = False
        if event is not None:
            self._out.append(event)
        if self._left and len(self._open) <= self._left[0]:
            self._left = None

    def _close_leaf(self, *, guess: bool = False) -> None:
        leaf, self._leaf = self._leaf, None
        if isinstance(leaf, Paragraph):
            self._out += leaf.finish(guess=guess)
        elif leaf is not None:
            self._out.append(Sign.DONE)
            if isinstance(leaf, CodeLeaf) and leaf.blanks:
                self._tell_blank()

    def _close_to(self, depth: int, *, guess: bool = False) -> None:
        """Close the leaf and all containers but the first `depth`."""
        self._close_leaf(guess=guess)
        while len(self._open) > depth:
            last = self._open.pop()
            self._out.append(Sign.END)
            if last.kind != ">":
                self._left = (len(self._open), last)


def _begins_block(rest: str, whole: bool) -> bool:
    """Whether a line begins a block of its own, so that it cannot go on with a paragraph."""
    if indent_of(rest) >= 4:
        return False
    if any(pattern.match(rest) for pattern in (_HEADING, QUOTE, ITEM)):
        return True
    return whole and bool(_FENCE.match(rest) or _RULE.fullmatch(rest))


def _without_tabs(text: str) -> str:
    """Tabs inside a very long line, whose columns nobody counts."""
    return text.replace("\t", " " * _TAB)
