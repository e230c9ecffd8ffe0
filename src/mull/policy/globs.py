"""Glob patterns, matched in time that grows only with the text.

There are two kinds: over any text (`*` is anything), and over paths (`*` stays within one name,
`**` is any number of folders). `?`, `[abc]` and `[!abc]` work as usual, and a backslash escapes the
next character. Patterns may come from a model or a stranger's repository, so none of them may be
slow: each part between two stars is searched for only once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from mull.neutral.patterns import pattern

__all__ = [
    "escape",
    "expand_braces",
    "fixed_start",
    "has_wildcard",
    "path_matches",
    "text_matches",
    "text_matches_any",
]

_WILD = pattern(r"\\.|[*?\[]", re.DOTALL)
_SPECIAL = pattern(r"([*?\[\\])")
_MOST_BRACES = 64


def escape(text: str) -> str:
    """A pattern that matches only this text."""
    return _SPECIAL.sub(r"\\\1", text)


def has_wildcard(pattern: str) -> bool:
    """Whether the pattern matches more than one text."""
    return any(not found.startswith("\\") for found in _WILD.findall(pattern))


def fixed_start(pattern: str) -> str:
    """The fixed prefix of everything the pattern matches."""
    out, at = "", 0
    for found in _WILD.finditer(pattern):
        out += pattern[at : found.start()]
        if not found.group().startswith("\\"):
            return out
        out += found.group()[1:]
        at = found.end()
    return out + pattern[at:]


def text_matches(pattern: str, text: str, *, ignore_case: bool = False) -> bool:
    """Whether the pattern matches the whole text; stars match anything, including line breaks."""
    return _compiled(pattern, ignore_case).fullmatch(text) is not None


def text_matches_any(patterns: tuple[str, ...], text: str) -> bool:
    """Whether one of the patterns matches the whole text; as fast as a single one."""
    return _joined(patterns).fullmatch(text) is not None


def path_matches(pattern: str, path: str, *, ignore_case: bool = False) -> bool:
    """Whether the pattern matches the whole path, name by name; both use `/` between names."""
    wanted = _names(pattern)
    reached = set(_skipping(wanted, 0))
    for name in path.split("/"):
        after: set[int] = set()
        for place in reached:
            if place == len(wanted):
                continue
            if wanted[place] == "**":
                after.update(_skipping(wanted, place))
                if place == len(wanted) - 1:  # `a/**` is what is in `a`, not `a` itself
                    after.add(len(wanted))
            elif _compiled(wanted[place], ignore_case).fullmatch(name):
                after.update(_skipping(wanted, place + 1))
        reached = after
    return len(wanted) in reached


@lru_cache(maxsize=1024)
def _names(pattern: str) -> tuple[str, ...]:
    """The names of a path pattern; consecutive `**` are one."""
    names = pattern.split("/")
    pairs = zip(names, (*names[1:], ""), strict=True)
    return tuple(name for name, after in pairs if not name == after == "**")


def expand_braces(pattern: str) -> list[str]:
    """`*.{ts,tsx}` as `*.ts` and `*.tsx`. Raises ValueError if that gives too many."""
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        if len(done) + len(waiting) > _MOST_BRACES:
            raise ValueError(f"the braces give more than {_MOST_BRACES} patterns")
        first = waiting.pop(0)
        found = re.search(r"(?<!\\)\{([^{}]*,[^{}]*)\}", first)
        if found is None:
            done.append(first)
            continue
        before, after = first[: found.start()], first[found.end() :]
        waiting += [f"{before}{choice}{after}" for choice in found.group(1).split(",")]
    return list(dict.fromkeys(done))


def _skipping(wanted: Sequence[str], place: int) -> Iterator[int]:
    """This place, and those after it that are reached without consuming a name."""
    yield place
    while place < len(wanted) - 1 and wanted[place] == "**":
        place += 1
        yield place


@lru_cache(maxsize=1024)
def _compiled(pattern: str, ignore_case: bool) -> re.Pattern[str]:
    first, *others = _fixed_parts(pattern)
    if not others:
        source = first
    else:
        *middle, last = others
        source = first + "".join(f"(?>.*?{part})" for part in middle) + f".*{last}"
    return re.compile(source, re.DOTALL | (re.IGNORECASE if ignore_case else 0))


@lru_cache(maxsize=8)
def _joined(patterns: tuple[str, ...]) -> re.Pattern[str]:
    sources = (f"(?:{_compiled(one, False).pattern})" for one in patterns)
    return re.compile("|".join(sources), re.DOTALL)


def _fixed_parts(pattern: str) -> list[str]:
    """The regular expressions of the parts between the stars."""
    parts = [""]
    at = 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "*":
            parts.append("")
        elif char == "?":
            parts[-1] += "."
        elif char == "[" and (end := _class_end(pattern, at)) is not None:
            parts[-1] += _class(pattern[at:end])
            at = end + 1
        else:
            if char == "\\" and at < len(pattern):
                char = pattern[at]
                at += 1
            parts[-1] += re.escape(char)
    return parts


def _class_end(pattern: str, start: int) -> int | None:
    first = start + (pattern[start : start + 1] in ("!", "^"))
    end = pattern.find("]", first + 1)  # a bracket that comes first is literal
    return None if end < 0 else end


def _class(inside: str) -> str:
    negated = inside[0] in "!^"
    letters = re.sub(r"([\\\]\[^&~|])", r"\\\1", inside[negated:])
    source = f"[{'^' if negated else ''}{letters}]"
    try:
        re.compile(source)
    except re.error:  # a reversed range is empty
        return "(?!)"
    return source
