"""Marks inside a paragraph: strong, emphasis, strike, code, links, as they stream in.

Text is read once, from left to right. What is settled is given out; an opening mark keeps what
follows it back until it is closed, or for `REACH` characters at most: a mark that is not closed by
then is plain text. So a paragraph of any length costs what its text costs, and what is given out
does not depend on how the text was cut. The rules are CommonMark's, with strike from GitHub, and
where they differ it is for what models mean: `2*3*4` is a product, `__init__` a name of Python's,
and the backslashes of mathematics, `\\(` and `\\[`, stay. References (`[a][b]`) stay as written,
since their definitions may come at the very end.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from copy import copy

from mull.markdown.events import CODE, IMAGE, LINK, SOFT, URL, Piece
from mull.markdown.marks import ESCAPABLE, Mark, Node, flag_of, flanks, pair
from mull.neutral.patterns import pattern

__all__ = ["REACH", "InlineParser"]

REACH = 2000
_LOOKAHEAD = 10
_LONGEST_RUN = 64

_SPECIAL = pattern(r"[\\`*_~\[\]<&\n]|!\[|https?://")
_RUN = pattern(r"\*+|_+|~+|`+")
_BREAK = pattern(r"\n *")
_NAME = pattern(r"__[a-z][a-z0-9_]{0,30}[a-z0-9]__(?![a-z0-9_])")
_NAME_YET = pattern(r"__[a-z0-9_]{0,34}$")
_TARGET = pattern(
    r"\(\s*(?:<([^<>\n]*)>|((?:[^\s()<>\\]|\\.|\((?:[^\s()\\]|\\.)*\))*))"
    r"(?:\s+(?:\"[^\"]*\"|'[^']*'|\([^()]*\)))?\s*\)"
)
_BRACED = pattern(r"<(https?://[^\s<>]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+)>|<(br) ?/?>", re.IGNORECASE)
_BRACED_YET = pattern(r"<[^\s<>]*$")
_ENTITY = pattern(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_ENTITY_YET = pattern(r"&[#A-Za-z0-9]{0,32}$")
_BARE = pattern(r"https?://[^\s<>\[\]`|]*", re.IGNORECASE)
_MATHEMATICS = frozenset("()[]")
_MARGINS = range(60, 121)
_SENTENCE_ENDS = frozenset(" .!?:;…。！？\\")


class InlineParser:
    """Reads text in pieces; `take` gives out what is settled."""

    def __init__(self) -> None:
        self._fed: list[str] = []
        self._buffer = ""
        self._read = 0  # how much of the whole text lies before the buffer
        self._before = "\n"  # the character before the buffer
        self._nodes: list[Node] = []
        self._given = 0  # how many nodes are out already
        self._line_at = 0  # where the line that is read began in the whole text
        self._openers: list[Mark] = []
        self._barren: dict[object, int] = {}  # up to where no opener fits a closer of a kind
        self._guesses = False  # whether code that is not closed counts as closed

    def feed(self, text: str) -> None:
        """More of the paragraph."""
        self._fed.append(text)

    def take(self) -> list[Piece]:
        """What can no longer change."""
        self._scan(final=False)
        self._forget(self._read - REACH)
        if not self._openers:
            return self._give(len(self._nodes))
        return self._give(self._place(self._openers[0]))

    def finish(self, *, guess: bool = False) -> list[Piece]:
        """The rest; the paragraph is over. A guess takes marks that are open for closed."""
        self._guesses = guess
        if guess:
            self._buffer = self._unread().rstrip("*_~`[!<&\\")
        self._scan(final=True)
        if guess:
            self._close_all()
        self._openers.clear()
        return self._give(len(self._nodes))

    def fork(self) -> InlineParser:
        """A copy that can go on without this one."""
        twin = InlineParser()
        twin._buffer, twin._read, twin._before = self._unread(), self._read, self._before
        twin._given, twin._line_at, twin._barren = self._given, self._line_at, self._barren.copy()
        twin._nodes = [Node(node.text, node.flags, node.address) for node in self._nodes]
        twin._openers = [copy(opener) for opener in self._openers]
        return twin

    def _place(self, opener: Mark) -> int:
        return opener.number - self._given

    def _close_all(self) -> None:
        opened = {self._place(o): o for o in self._openers if o.kind != "["}
        holding = 0
        for place, node in enumerate(self._nodes):
            node.flags |= holding
            if opener := opened.get(place):
                holding |= flag_of(opener.kind, opener.count)
                node.text = ""

    def _give(self, count: int) -> list[Piece]:
        nodes = self._nodes[:count]
        pieces = [Piece(node.text, node.flags, node.address) for node in nodes if node.text]
        del self._nodes[:count]
        self._given += count
        return pieces

    def _forget(self, before: int) -> None:
        """Openers out of reach are plain text."""
        gone = 0
        while gone < len(self._openers) and self._openers[gone].at < before:
            gone += 1
        del self._openers[:gone]

    def _scan(self, *, final: bool) -> None:
        """Read the buffer as far as it can be understood."""
        text, at = self._unread(), 0
        end = len(text) if final else len(text) - _LOOKAHEAD
        while at < end:
            found = _SPECIAL.search(text, at)
            start = min(found.start(), end) if found else end
            if start > at:
                self._add(text[at:start])
                at = start
            if found is None or found.start() >= end:
                break
            step = self._special(text, at, final)
            if step == 0:
                break
            at += step
        self._buffer = text[at:]
        if at > 0:
            self._before = text[at - 1]
            self._read += at

    def _unread(self) -> str:
        """What is not understood yet."""
        if self._fed:
            self._buffer += "".join(self._fed)
            self._fed.clear()
        return self._buffer

    def _add(self, text: str, flags: int = 0, address: str = "") -> None:
        self._nodes.append(Node(text, flags, address))

    def _mark(self, kind: str, text: str, at: int, both: bool = False) -> Mark:
        """A mark that is text until it pairs."""
        self._add(text)
        number = self._given + len(self._nodes) - 1
        return Mark(kind, len(text), number, self._read + at, both)

    def _special(self, text: str, at: int, final: bool) -> int:
        """Read what begins at a special character; the length read, 0 if more must come first."""
        if len(text) - at > REACH + _LONGEST_RUN:
            final = True  # no construct reaches further
        return _READERS.get(text[at], InlineParser._bare)(self, text, at, final)

    def _open_bracket(self, text: str, at: int, final: bool) -> int:
        opener = self._mark("[", "![" if text[at] == "!" else "[", at)
        self._openers.append(opener)
        return opener.length

    def _escape(self, text: str, at: int, final: bool) -> int:
        after = text[at + 1 : at + 2]
        if after in _MATHEMATICS:
            self._add("\\" + after)
            return 2
        if after in ESCAPABLE:
            self._add(after)
            return 2
        if after != "\n":  # at a line's end it is a break, which the newline makes anyway
            self._add("\\")
        return 1

    def _break(self, text: str, at: int, final: bool) -> int:
        found = _BREAK.match(text, at)
        assert found is not None
        if found.end() == len(text) and not final:
            return 0
        before = text[at - 1] if at else self._before
        at_margin = self._read + at - self._line_at in _MARGINS and before not in _SENTENCE_ENDS
        self._add(found[0], SOFT if at_margin and len(found[0]) == 1 else 0)
        self._line_at = self._read + at + 1
        return len(found[0])

    def _code(self, text: str, at: int, final: bool) -> int:
        ticks = _run(text, at)
        size = len(ticks)
        end = at + size
        while True:
            end = text.find(ticks, end, at + REACH)
            if end < 0:
                break
            run = len(_run(text, end))
            if end + run == len(text) and not final:
                return 0
            if run == size:
                inside = text[at + size : end]
                if "\n" in inside:
                    self._line_at = self._read + text.rindex("\n", at, end) + 1
                    inside = _BREAK.sub(" ", inside)
                if inside.strip() and inside[0] == inside[-1] == " ":
                    inside = inside[1:-1]
                self._add(inside, CODE)
                return end + size - at
            end += run
        if not final:
            return 0
        if self._guesses:
            self._add(_BREAK.sub(" ", text[at + size :]).lstrip(), CODE)
            return len(text) - at
        self._add(ticks)
        return size

    def _delimiter(self, text: str, at: int, final: bool) -> int:
        run = _run(text, at, at + _LONGEST_RUN)
        end = at + len(run)
        if end == len(text) and not final:
            return 0
        if run == "__":
            if found := _NAME.match(text, at):
                self._add(found[0])
                return len(found[0])
            if not final and _NAME_YET.match(text, at):
                return 0
        before = text[at - 1] if at else self._before
        opens, closes = flanks(run, before, text[end : end + 1] or "\n")
        self._forget(self._read + at - REACH)
        mark = self._mark(run[0], run, at, opens and closes)
        if len(run) == _LONGEST_RUN or (run[0] == "~" and len(run) != 2):
            return len(run)
        if closes:
            self._close(mark)
        if opens and mark.count:
            self._openers.append(mark)
        return len(run)

    def _opener(self, kind: object, fits: Callable[[Mark], bool]) -> Mark | None:
        """The nearest opener that fits a closer of this kind; none is asked twice in vain."""
        barren = self._barren.get(kind, -1)
        for opener in reversed(self._openers):
            if opener.at <= barren:
                break
            if fits(opener):
                return opener
        if self._openers:
            self._barren[kind] = self._openers[-1].at
        return None

    def _close(self, closer: Mark) -> None:
        """Pair a closing run with the openers it fits, the nearest first."""
        while closer.count:
            kind = (closer.kind, closer.both, closer.length % 3)  # all that `pair` asks of it
            opener = self._opener(kind, lambda o: pair(o, closer))
            if opener is None:
                return
            used = 2 if min(opener.count, closer.count) >= 2 else 1
            for node in self._nodes[self._place(opener) + 1 : -1]:
                node.flags |= flag_of(opener.kind, used)
            del self._openers[self._openers.index(opener) + 1 :]
            for mark in (opener, closer):
                mark.count -= used
                node = self._nodes[self._place(mark)]
                node.text = node.text[used:]
            if not opener.count:
                self._openers.pop()

    def _bracket(self, text: str, at: int, final: bool) -> int:
        self._forget(self._read + at - REACH)
        opener = self._opener("[", lambda o: o.kind == "[")
        if opener is None:
            self._add("]")
            return 1
        target = None
        if text[at + 1 : at + 2] == "(":
            target = _TARGET.match(text, at + 1, at + REACH)
            if target is None and not final:
                return 0
        if target is None:
            self._openers.remove(opener)
            self._add("]")
            return 1
        self._link(opener, _unescaped(target[1] if target[1] is not None else target[2]))
        return target.end() - at

    def _link(self, opener: Mark, url: str) -> None:
        """The text since the bracket is a link's; its address follows unless it says the same."""
        del self._openers[self._openers.index(opener) :]
        mark, *inside = self._nodes[self._place(opener) :]
        said = "".join(node.text for node in inside)
        flags = LINK | IMAGE if opener.length == 2 else LINK
        mark.text = ""
        for node in inside:
            node.flags |= flags
            node.address = url
        if not said:
            self._add(url, flags, url)
        elif url and url not in (said, f"mailto:{said}", f"{said}/"):
            self._add(f" ({url})", URL)

    def _braced(self, text: str, at: int, final: bool) -> int:
        found = _BRACED.match(text, at)
        if found is None:
            if not final and _BRACED_YET.match(text, at):
                return 0
            self._add("<")
            return 1
        if found[2]:
            self._add("\n")
        else:
            self._add(found[1], LINK, f"mailto:{found[1]}" if "://" not in found[1] else found[1])
        return len(found[0])

    def _entity(self, text: str, at: int, final: bool) -> int:
        found = _ENTITY.match(text, at)
        if found is None:
            if not final and _ENTITY_YET.match(text, at):
                return 0
            self._add("&")
            return 1
        from html import unescape  # a table of 2,000 names, for those who need it

        self._add("".join(map(_seen, unescape(found[0]))))
        return len(found[0])

    def _bare(self, text: str, at: int, final: bool) -> int:
        found = _BARE.match(text, at, at + REACH)
        assert found is not None
        if found.end() == len(text) and not final:
            return 0
        url = found[0].rstrip(".,;:!?'\"*_~")
        while url.endswith(")") and url.count(")") > url.count("("):
            url = url[:-1].rstrip(".,;:!?'\"*_~")
        self._add(url, 0 if url.endswith("://") else LINK, url)
        return len(url)


_READERS = {
    "\\": InlineParser._escape,
    "`": InlineParser._code,
    **dict.fromkeys("*_~", InlineParser._delimiter),
    **dict.fromkeys("[!", InlineParser._open_bracket),
    "]": InlineParser._bracket,
    "<": InlineParser._braced,
    "&": InlineParser._entity,
    "\n": InlineParser._break,
}


def _run(text: str, at: int, end: int = sys.maxsize) -> str:
    found = _RUN.match(text, at, end)
    assert found is not None
    return found[0]


def _unescaped(url: str) -> str:
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", url)


def _seen(character: str) -> str:
    """A character that was written as an entity, unless it is one that nobody sees."""
    if character.isprintable() or character == "\xa0":
        return character
    return " " if character.isspace() else ""
