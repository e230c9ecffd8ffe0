"""What a change does to a file, as a unified diff for people.

Only what lies between the first and the last changed line is compared, so that a small change to
a large file costs little. A change too large to be compared is only counted.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mull.agent.tools.shown import plural, visible

__all__ = ["Diff", "diff"]

_CONTEXT = 3
_MOST_COMPARED = 2000
_NO_BREAK = "\\ No newline at end of file"
_NUMBER = re.compile(r"( [-+])(\d+)")


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
    if max(len(changed_old), len(changed_new)) > _MOST_COMPARED:
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
