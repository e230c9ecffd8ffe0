"""What is told of a change: the difference it makes, for people, and for a model whose text is not
in the file, what stands there instead.

Only what lies between the first and the last changed line is compared, so that a small change to
a large file costs little. A change too large to be compared is only counted.
"""

from __future__ import annotations

import re
from heapq import nlargest
from typing import NamedTuple

from mull.agent.tools.shown import plural, visible

__all__ = ["Diff", "diff", "not_found"]

_CONTEXT = 3
_MOST_CHANGED = 2000
_NO_BREAK = "\\ No newline at end of file"
_NUMBER = re.compile(r"( [-+])(\d+)")

_NUMBERED = re.compile(r"^\s*\d+\t", re.MULTILINE)
_WORD = re.compile(r"\w+")
_AROUND = 2
_MOST_COMPARED = 200
_LONGEST_LINE = 300


class Diff(NamedTuple):
    """The diff's text, safe to print, and how many lines come and go."""

    text: str
    added: int
    removed: int

    @property
    def counts(self) -> str:
        """`(+3 −1)`."""
        return f"(+{self.added:,} −{self.removed:,})"


def diff(before: str, after: str, name: str) -> Diff:
    """The difference. Ends of lines are not compared unless nothing else differs."""
    old, new = _lines(before), _lines(after)
    if old == new:
        old, new = before.split("\n"), after.split("\n")
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    changed_old, changed_new = old[start : len(old) - end], new[start : len(new) - end]
    if max(len(changed_old), len(changed_new)) > _MOST_CHANGED:
        added, removed = len(changed_new), len(changed_old)
        said = f"{plural(removed, 'line')} replaced by {plural(added, 'line')}: too many to compare"
        return Diff(f"--- {visible(name)}\n+++ {visible(name)}\n{said}", added, removed)
    first = max(0, start - _CONTEXT)
    last = max(0, end - _CONTEXT)
    return _compare(old[first : len(old) - last], new[first : len(new) - last], first, name)


def _compare(old: list[str], new: list[str], first: int, name: str) -> Diff:
    from difflib import unified_diff  # only who changes files pays for it

    shown = visible(name)
    rows = list(unified_diff(old, new, f"a/{shown}", f"b/{shown}", n=_CONTEXT, lineterm=""))
    text = "\n".join(_moved(row, first) if row.startswith("@@") else row for row in rows)
    lines = [row for row in rows[2:] if not row.endswith(_NO_BREAK)]
    added = sum(row[0] == "+" for row in lines)
    removed = sum(row[0] == "-" for row in lines)
    return Diff(visible(text), added, removed)


def _moved(row: str, by: int) -> str:
    """The head of a hunk, with the line numbers that the whole file has."""
    return _NUMBER.sub(lambda found: f"{found[1]}{int(found[2]) + by}", row)


def _lines(text: str) -> list[str]:
    if not text:
        return []
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        return lines[:-1]
    return [*lines, _NO_BREAK]


def _common(old: list[str], new: list[str]) -> int:
    count = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        count += 1
    return count


def not_found(old: str, text: str, name: str) -> str:
    """Says that it is not there, why that may be, and the lines that come closest."""
    said = f"old is not in {name}"
    if all(_NUMBERED.match(line) for line in old.splitlines()):
        return f"{said}: leave out the line numbers that read shows, and the tab after each"
    lines = [_plain(line) for line in text.replace("\r\n", "\n").split("\n")]
    wanted = old.strip("\n").split("\n")
    at = _same_but_spaces(wanted, lines)
    if at is not None:
        shown = _shown(lines, at, at + len(wanted))
        return f"{said} with just these spaces and tabs. In the file it is:\n{shown}"
    at = _closest(next((line for line in wanted if line.strip()), ""), lines)
    if at is None:
        return f"{said}, and nothing is close to it: read the file first"
    shown = _shown(lines, at - _AROUND, at + len(wanted) + _AROUND)
    return f"{said}. What comes closest:\n{shown}"


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
    """The line most like this one, among those that share most words with it."""
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
    """Without the marks that stand for bytes which are no UTF-8."""
    return line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
