"""Marks inside a paragraph: strong, emphasis, strike, code, links, as they stream in.

Text is read once, from left to right. What is settled is given out; an opening mark keeps what
follows it back until it is closed, or for `REACH` characters at most: a mark that is not closed by
then is plain text. So a paragraph of any length costs what its text costs, and what is given out
does not depend on how the text was cut. The rules are CommonMark's, with strike from GitHub;
references (`[a][b]`) stay as written, since their definitions may come at the very end.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mull.tui.text.markdown_marks import (
    CODE,
    ESCAPABLE,
    LINK,
    URL,
    Mark,
    Node,
    flag_of,
    flanks,
    pair,
)
from mull.tui.text.safe import neutralise

__all__ = ["REACH", "InlineParser", "Piece"]

REACH = 2000
_LOOKAHEAD = 10
_LONGEST_RUN = 64

_SPECIAL = re.compile(r"[\\`*_~\[\]<&]|!\[|https?://")
_RUN = re.compile(r"\*+|_+|~+|`+")
_TARGET = re.compile(
    r"\(\s*(?:<([^<>\n]*)>|((?:[^\s()<>\\]|\\.|\((?:[^\s()\\]|\\.)*\))*))"
    r"(?:\s+(?:\"[^\"]*\"|'[^']*'|\([^()]*\)))?\s*\)"
)
_BRACED = re.compile(
    r"<(https?://[^\s<>]*|[\w.+-]+@[\w-]+(?:\.[\w-]+)+)>|<(br) ?/?>", re.IGNORECASE
)
_BRACED_YET = re.compile(r"<[^\s<>]*$")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_ENTITY_YET = re.compile(r"&[#A-Za-z0-9]{0,32}$")
_BARE = re.compile(r"https?://[^\s<>\[\]`|]*", re.IGNORECASE)


class Piece(NamedTuple):
    """Text with the marks that hold for it."""

    text: str
    flags: int


class InlineParser:
    """Reads text in pieces; `take` gives out what is settled."""

    def __init__(self) -> None:
        self._buffer = ""
        self._read = 0  # how much of the whole text lies before the buffer
        self._before = "\n"  # the character before the buffer
        self._nodes: list[Node] = []
        self._openers: list[Mark] = []
        self._guesses = False  # whether code that is not closed counts as closed

    def feed(self, text: str) -> None:
        """More of the paragraph."""
        self._buffer += text

    def take(self) -> list[Piece]:
        """What can no longer change."""
        self._scan(final=False)
        self._forget(self._read - REACH)
        if not self._openers:
            return self._give(len(self._nodes))
        return self._give(self._nodes.index(self._openers[0].node))

    def finish(self, *, guess: bool = False) -> list[Piece]:
        """The rest; the paragraph is over. A guess takes marks that are open for closed."""
        self._guesses = guess
        if guess:
            self._buffer = self._buffer.rstrip("*_~`[!<&\\")
        self._scan(final=True)
        if guess:
            self._close_all()
        self._openers.clear()
        return self._give(len(self._nodes))

    def fork(self) -> InlineParser:
        """A copy that can go on without this one."""
        twin = InlineParser()
        twin._buffer, twin._read, twin._before = self._buffer, self._read, self._before
        copies = {node: Node(node.text, node.flags) for node in self._nodes}
        twin._nodes = list(copies.values())
        twin._openers = [opener.fork(copies[opener.node]) for opener in self._openers]
        return twin

    def _close_all(self) -> None:
        opened = {o.node: flag_of(o.kind, o.count) for o in self._openers if o.kind != "["}
        holding = 0
        for node in self._nodes:
            node.flags |= holding
            if node in opened:
                holding |= opened[node]
                node.text = ""

    def _give(self, count: int) -> list[Piece]:
        pieces = [Piece(node.text, node.flags) for node in self._nodes[:count] if node.text]
        del self._nodes[:count]
        return pieces

    def _forget(self, before: int) -> None:
        """Openers out of reach are plain text."""
        while self._openers and self._openers[0].at < before:
            del self._openers[0]

    def _scan(self, *, final: bool) -> None:
        """Read the buffer as far as it can be understood."""
        text, at = self._buffer, 0
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
        if at > 0:
            self._before = text[at - 1]
            self._buffer = text[at:]
            self._read += at

    def _add(self, text: str, flags: int = 0) -> Node:
        node = Node(text, flags)
        self._nodes.append(node)
        return node

    def _special(self, text: str, at: int, final: bool) -> int:
        """Read what begins at a special character; the length read, 0 if more must come first."""
        character = text[at]
        rest = len(text) - at
        if rest > REACH + _LONGEST_RUN:
            final = True  # no construct reaches further
        match character:
            case "\\":
                return self._escape(text, at)
            case "`":
                return self._code(text, at, final)
            case "*" | "_" | "~":
                return self._delimiter(text, at, final)
            case "[" | "!":
                node = self._add("![" if character == "!" else "[")
                self._openers.append(Mark("[", node, self._read + at, False))
                return len(node.text)
            case "]":
                return self._bracket(text, at, final)
            case "<":
                return self._braced(text, at, final)
            case "&":
                return self._entity(text, at, final)
        return self._bare(text, at, final)

    def _escape(self, text: str, at: int) -> int:
        after = text[at + 1 : at + 2]
        if after in ESCAPABLE and after:
            self._add(after)
            return 2
        if after != "\n":  # at a line's end it is a break, which the newline makes anyway
            self._add("\\")
        return 1

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
                inside = text[at + size : end].replace("\n", " ")
                if inside.strip() and inside[0] == inside[-1] == " ":
                    inside = inside[1:-1]
                self._add(inside, CODE)
                return end + size - at
            end += run
        if not final:
            return 0
        if self._guesses:
            self._add(text[at + size :].lstrip(), CODE)
            return len(text) - at
        self._add(ticks)
        return size

    def _delimiter(self, text: str, at: int, final: bool) -> int:
        run = _run(text, at)[:_LONGEST_RUN]
        end = at + len(run)
        if end == len(text) and not final:
            return 0
        before = text[at - 1] if at else self._before
        opens, closes = flanks(run[0], before, text[end : end + 1] or "\n")
        where = self._read + at
        self._forget(where - REACH)
        node = self._add(run)
        if len(run) == _LONGEST_RUN or (run[0] == "~" and len(run) != 2):
            return len(run)
        mark = Mark(run[0], node, where, opens and closes)
        if closes:
            self._close(mark)
        if opens and mark.count:
            self._openers.append(mark)
        return len(run)

    def _close(self, closer: Mark) -> None:
        """Pair a closing run with the openers it fits, the nearest first."""
        while closer.count:
            opener = next((o for o in reversed(self._openers) if pair(o, closer)), None)
            if opener is None:
                return
            used = 2 if min(opener.count, closer.count) >= 2 else 1
            after = self._nodes.index(opener.node) + 1
            self._mark(after, len(self._nodes) - 1, flag_of(opener.kind, used))
            del self._openers[self._openers.index(opener) + 1 :]
            for mark in (opener, closer):
                mark.count -= used
                mark.node.text = mark.node.text[used:]
            if not opener.count:
                self._openers.pop()

    def _mark(self, start: int, end: int, flag: int) -> None:
        for node in self._nodes[start:end]:
            node.flags |= flag

    def _bracket(self, text: str, at: int, final: bool) -> int:
        self._forget(self._read + at - REACH)
        opener = next((o for o in reversed(self._openers) if o.kind == "["), None)
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
        place = self._nodes.index(opener.node)
        del self._openers[self._openers.index(opener) :]
        said = "".join(node.text for node in self._nodes[place + 1 :])
        opener.node.text = ""
        self._mark(place, len(self._nodes), LINK)
        if not said:
            self._add(url, LINK)
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
            self._add(found[1], LINK)
        return len(found[0])

    def _entity(self, text: str, at: int, final: bool) -> int:
        found = _ENTITY.match(text, at)
        if found is None:
            if not final and _ENTITY_YET.match(text, at):
                return 0
            self._add("&")
            return 1
        from html import unescape  # a table of 2,000 names, for those who need it

        self._add(neutralise(unescape(found[0])).replace("\n", " ").replace("\t", " "))
        return len(found[0])

    def _bare(self, text: str, at: int, final: bool) -> int:
        found = _BARE.match(text, at, at + REACH)
        assert found is not None
        if found.end() == len(text) and not final:
            return 0
        url = found[0].rstrip(".,;:!?'\"*_~")
        while url.endswith(")") and url.count(")") > url.count("("):
            url = url[:-1].rstrip(".,;:!?'\"*_~")
        self._add(url, LINK)
        return len(url)


def _run(text: str, at: int) -> str:
    found = _RUN.match(text, at)
    assert found is not None
    return found[0]


def _unescaped(url: str) -> str:
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", url)
