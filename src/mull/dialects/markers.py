"""What the readers of inline marks share: pieces, the search for marks, and code spans.

A reader takes text as it arrives and returns pieces. It holds text only while that text may still
turn into a mark, so what it holds depends only on the marks it looks for.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from mull.neutral.patterns import pattern

__all__ = [
    "CodeSpans",
    "Kind",
    "Marks",
    "Piece",
    "Reader",
    "new_piece",
    "say",
    "skip_blank",
    "without_blanks",
]

Kind = Literal["text", "thinking", "rest", "tool_call", "orphan_close"]

_TICKS = pattern(r"`+|\n")
_BLANKS = pattern(r"\s*")
_LONG = 1_024
"""Characters from which on a piece is not added to."""


class Piece(NamedTuple):
    """A part of the answer, of one kind.

    Pieces of the same `block` are parts of one block; a new number is a new block. A call's name,
    and its id if the model wrote one, are in its first piece; `text` is the next part of its
    arguments. The name of the first piece of thinking is its opening tag, unless that is the first
    of the configured ones. A piece with empty text is a block that exists but is still empty.
    `orphan_close` has no text: the text so far, all of one block, was thinking. `rest` is the end
    of the thinking that a separate field began.
    """

    kind: Kind
    text: str
    name: str | None = None
    id: str | None = None
    block: int = 0


new_piece = tuple.__new__
"""Creates a piece from all its fields at half the cost, for the path of every delta."""


if TYPE_CHECKING:

    class Reader(Protocol):
        """Reads one section from the character after its opening mark."""

        block: int
        """The block of text that comes next."""
        rest: str | None
        """The text after the section, once its end was read."""

        def feed(self, text: str) -> list[Piece]:
            """The pieces that this text completes."""

        def close(self) -> list[Piece]:
            """What was held back, at the end."""


class Marks:
    """A set of marks to look for, the longest first if one is a prefix of another."""

    def __init__(self, marks: Iterable[str]) -> None:
        self.all = tuple(sorted({m for m in marks if m}, key=lambda m: (-len(m), m)))
        firsts = "".join(sorted({m[0] for m in self.all}))
        self._first = re.compile(f"[{re.escape(firsts)}]" if firsts else r"(?!)").search
        self.angular = firsts in ("", "<")

    @staticmethod
    @lru_cache(maxsize=64)
    def of(*marks: str) -> "Marks":
        """The same set, built once."""
        return Marks(marks)

    def match(self, text: str, at: int, final: bool) -> str | None:
        """The mark at this place, or "" if the text ends before that is certain."""
        for mark in self.all:
            if text.startswith(mark, at):
                return mark
            if not final and len(text) - at < len(mark) and mark.startswith(text[at:]):
                return ""
        return None

    def find(self, text: str, at: int, final: bool) -> tuple[int, str | None]:
        """The position of the next mark and the mark; "" if the text ends inside what may be one.
        Without a mark, the end of the text.
        """
        while hit := self._first(text, at):
            at = hit.start()
            mark = self.match(text, at, final)
            if mark is not None:
                return at, mark
            at += 1
        return len(text), None


class CodeSpans:
    """Whether text is in Markdown code: what is quoted there is text about marks, not marks.

    A span of one or two backticks ends with its line at the latest, because a lone backtick is more
    likely than a span over several lines; a longer one lasts until it is closed.
    """

    def __init__(self) -> None:
        self._open = 0
        self._run = 0

    @property
    def calm(self) -> bool:
        """Whether text without backticks cannot change the state."""
        return not self._run and self._open not in (1, 2)

    @property
    def inside(self) -> bool:
        """Whether what follows is code; it must not start with a backtick."""
        self._settle()
        return self._open > 0

    def read(self, text: str) -> None:
        """Process the next text."""
        if self._run and text:
            after = text.lstrip("`")
            self._run += len(text) - len(after)
            if not after:
                return
            self._settle()
            text = after
        if not self._open and "`" not in text:
            return
        for hit in _TICKS.finditer(text):
            if text[hit.start()] == "\n":
                if self._open < 3:
                    self._open = 0
            else:
                self._run = hit.end() - hit.start()
                if hit.end() < len(text):
                    self._settle()

    def _settle(self) -> None:
        run, self._run = self._run, 0
        if run and not self._open:
            self._open = run
        elif run == self._open or run > self._open >= 3:
            self._open = 0


def say(pieces: list[Piece], kind: Kind, text: str, block: int) -> None:
    """Add text to the pieces, to the last one if it belongs to the same block and is still short:
    each addition copies it."""
    last = pieces[-1] if pieces else None
    if last and last.block == block and last.kind == kind and len(last.text) < _LONG:
        pieces[-1] = last._replace(text=last.text + text)
    else:
        pieces.append(Piece(kind, text, None, None, block))


def skip_blank(text: str, at: int) -> int:
    """The position of the next character that is not blank."""
    found = _BLANKS.match(text, at)
    assert found is not None
    return found.end()


def without_blanks(text: str) -> bytes:
    """The text without whitespace, for comparison."""
    return "".join(text.split()).encode("utf-8", "surrogatepass")
