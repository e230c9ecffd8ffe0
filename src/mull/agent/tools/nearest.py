"""What to tell a model whose text is not in the file: what stands there instead."""

from __future__ import annotations

import re
from heapq import nlargest

__all__ = ["not_found"]

_NUMBERED = re.compile(r"^\s*\d+\t", re.MULTILINE)
_WORD = re.compile(r"\w+")
_AROUND = 2
_MOST_COMPARED = 200
_LONGEST_LINE = 300


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
