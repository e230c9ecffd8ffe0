"""What is reported about a change: the diff, for the user, and for a model whose text is not in the
file, the closest match. A diff is complete, however long it is.
"""

from __future__ import annotations

import re
from heapq import nlargest
from typing import NamedTuple

from mull.agent.tools.differ import hunks
from mull.agent.tools.shown import visible
from mull.neutral.patterns import pattern

__all__ = ["Diff", "diff", "not_found"]

_CONTEXT = 3
_NO_BREAK = "\\ No newline at end of file"

_NUMBERED = pattern(r"^\s*\d+\t", re.MULTILINE)
_WORD = pattern(r"\w+")
_AROUND = 2
_MOST_COMPARED = 200
_LONGEST_LINE = 300


class Diff(NamedTuple):
    """The diff's text, safe to print, and how many lines are added and removed."""

    text: str
    added: int
    removed: int

    @property
    def counts(self) -> str:
        """`(+3 −1)`."""
        return f"(+{self.added:,} −{self.removed:,})"


def diff(before: str, after: str, name: str) -> Diff:
    """The diff, hunk by hunk. Line endings are compared as well; they are shown unless both texts
    use the same throughout.
    """
    alike = before != "" and _is_dos(before) and _is_dos(after)
    old, new = _lines(before, alike), _lines(after, alike)
    rows: list[str] = []
    for hunk in hunks(old, new, _CONTEXT):
        rows.append(f"@@ -{_place(hunk.old)} +{_place(hunk.new)} @@")
        for run in hunk.runs:
            if run.same:
                rows += (f" {old[at]}" for at in run.old)
            else:
                rows += (f"-{old[at]}" for at in run.old)
                rows += (f"+{new[at]}" for at in run.new)
    if not rows:
        return Diff("", 0, 0)
    counted = [row[0] for row in rows if row[1:] != _NO_BREAK]
    shown = visible(name)
    text = visible("\n".join((f"--- a/{shown}", f"+++ b/{shown}", *rows)))
    return Diff(text, counted.count("+"), counted.count("-"))


def _place(lines: range) -> str:
    """The lines as a hunk header names them."""
    if len(lines) == 1:
        return str(lines.start + 1)
    return f"{lines.start + bool(lines)},{len(lines)}"


def _is_dos(text: str) -> bool:
    return "\n" in text and text.count("\n") == text.count("\r\n")


def _lines(text: str, alike: bool) -> list[str]:
    if not text:
        return []
    lines = (text.replace("\r\n", "\n") if alike else text).split("\n")
    if lines[-1] == "":
        return lines[:-1]
    return [*lines, _NO_BREAK]


def not_found(old: str, text: str, name: str) -> str:
    """The message that the text is not there, why that may be, and the closest lines."""
    said = f"old is not in {name}"
    if all(_NUMBERED.match(line) for line in old.splitlines()):
        return f"{said}: leave out the line numbers that read shows, and the tab after each"
    lines = [_plain(line) for line in text.replace("\r\n", "\n").split("\n")]
    wanted = old.strip("\n").split("\n")
    at = _same_but_spaces(wanted, lines)
    if at is not None:
        shown = _shown(lines, at, at + len(wanted))
        return f"{said} with exactly these spaces and tabs. In the file it is:\n{shown}"
    at = _closest(next((line for line in wanted if line.strip()), ""), lines)
    if at is None:
        return f"{said}, and neither is anything similar: read the file first"
    shown = _shown(lines, at - _AROUND, at + len(wanted) + _AROUND)
    return f"{said}. The closest match:\n{shown}"


def _same_but_spaces(wanted: list[str], lines: list[str]) -> int | None:
    words = [line.split() for line in wanted]
    if not any(words):
        return None
    first = words[0]
    for at in range(len(lines) - len(wanted) + 1):
        if (
            lines[at].split() == first
            and [line.split() for line in lines[at : at + len(wanted)]] == words
        ):
            return at
    return None


def _closest(wanted: str, lines: list[str]) -> int | None:
    """The most similar line, among those that share most words with it."""
    from difflib import get_close_matches

    words = set(_WORD.findall(wanted))
    short = [line.strip()[:_LONGEST_LINE] for line in lines]
    ranked = nlargest(_MOST_COMPARED, short, key=lambda line: len(words & set(_WORD.findall(line))))
    found = get_close_matches(wanted.strip()[:_LONGEST_LINE], ranked, n=1, cutoff=0.5)
    return short.index(found[0]) if found and found[0] else None


def _shown(lines: list[str], start: int, end: int) -> str:
    start = max(0, start)
    rows = enumerate(lines[start:end], start + 1)
    return "\n".join(f"{number:>6}\t{line[:_LONGEST_LINE]}" for number, line in rows)


def _plain(line: str) -> str:
    """Without the marks that stand for bytes that are not UTF-8."""
    return line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
