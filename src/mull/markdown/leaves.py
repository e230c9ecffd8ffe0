"""What a block holds open while it is read: a paragraph or heading, code, a table."""

from __future__ import annotations

from copy import copy
from typing import NamedTuple, TypeAlias

from mull.markdown.containers import indent_of
from mull.markdown.events import Event, Piece, Pieces, Row, Sign, Table, Text
from mull.markdown.inline import InlineParser
from mull.neutral.patterns import pattern

__all__ = ["CodeLeaf", "Leaf", "Paragraph", "TableLeaf", "table_head"]

_DELIMITER = pattern(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_BAR = pattern(r"(?<!\\)\|")


class Paragraph:
    """Text. A line that the next one may turn into something else is held back."""

    def __init__(self, level: int = 0) -> None:
        self.level = level
        self.held: str | None = None
        self.lines = 0
        self._in_long = False
        self._began = self._told = False
        self._inline = InlineParser()

    def line(self, text: str) -> None:
        """A whole line; the first, and any with a bar in it, waits for the line after it."""
        self.release()
        text = text.rstrip() + ("  " if text.endswith("  ") else "")  # which make a break
        if self.lines == 0 or "|" in text:
            self.held = text
        else:
            self._push(text)
        self.lines += 1

    def more(self, text: str) -> None:
        """A piece of a very long line."""
        if self._in_long:
            self._inline.feed(text)
            return
        self.release()
        self._in_long = True
        self._push(text)
        self.lines += 1

    def end_line(self) -> None:
        """The very long line is over."""
        self._in_long = False

    def release(self) -> None:
        """The line that was held back is text, for what follows did not change it."""
        if self.held is not None:
            held, self.held = self.held, None
            self._push(held)

    def take(self) -> list[Event]:
        """What can no longer change."""
        return self._tell(self._inline.take())

    def finish(self, *, guess: bool = False) -> list[Event]:
        """The rest; nothing at all where the held line became something else."""
        self.release()
        events = self._tell(self._inline.finish(guess=guess))
        return [*events, Sign.DONE] if self._told else []

    def fork(self) -> Paragraph:
        """A copy that can go on without this one."""
        twin = copy(self)
        twin._inline = self._inline.fork()
        return twin

    def _tell(self, pieces: list[Piece]) -> list[Event]:
        events: list[Event] = []
        if self._began and not self._told:
            self._told = True
            events.append(Text(self.level))
        if pieces:
            events.append(Pieces(pieces))
        return events

    def _push(self, text: str) -> None:
        """Read a line, of which the indent is kept from the second one on."""
        indent = ""
        if self._began:
            indent = "\n" + " " * indent_of(text)
        self._inline.feed(indent + text.lstrip())
        self._began = True


class CodeLeaf:
    """Code; `fence` is what opened it, "" where indentation makes it code. Blank lines belong to
    indented code only if more of it follows."""

    def __init__(self, fence: str = "", indent: int = 0) -> None:
        self.fence = fence
        self.indent = indent
        self.blanks = 0


class TableLeaf(NamedTuple):
    """A table of so many columns."""

    columns: int

    def row(self, text: str) -> Row:
        """A row. Cells that the header has no column for stay in the last one."""
        cells, last = _cells(text), self.columns - 1
        cells[last:] = [" | ".join(cells[last:])]
        cells += [""] * (self.columns - len(cells))
        return Row([_marked(cell) for cell in cells])


Leaf: TypeAlias = Paragraph | CodeLeaf | TableLeaf


def table_head(header: str, line: str) -> Table | None:
    """The table that begins if `line` makes `header` its head."""
    if "|" not in header or not _DELIMITER.fullmatch(line):
        return None
    names, marks = _cells(header), _cells(line)
    if len(names) != len(marks):
        return None
    return Table([_marked(name) for name in names], [_alignment(mark) for mark in marks])


def _cells(row: str) -> list[str]:
    inside = row.strip().removeprefix("|")
    if inside.endswith("|") and not inside.endswith("\\|"):
        inside = inside[:-1]
    return [cell.strip().replace("\\|", "|") for cell in _BAR.split(inside)]


def _alignment(mark: str) -> str:
    if mark.endswith(":"):
        return "^" if mark.startswith(":") else ">"
    return "<"


def _marked(cell: str) -> list[Piece]:
    parser = InlineParser()
    parser.feed(cell)
    return parser.finish()
