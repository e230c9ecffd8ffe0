"""How refused input is spoken of: quoted safely on one line, with the closest thing that exists.

Input may hold anything, so it is escaped and shortened before it enters a message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from mull.neutral.patterns import pattern

__all__ = ["NO_PROFILE", "closest", "join_or", "looks_secret", "quote", "quote_value"]

NO_PROFILE = "none"
"""Stands for "no profile" wherever one is named, so no profile can be called so."""
_LONGEST = 60
_SHORTEST_SECRET = 15

# model ids may begin like keys do (xai-…, hf-…), so most kinds ask for a long run of key letters
_SECRET = pattern(
    r"""(?<![A-Za-z0-9])(?:
        sk-(?:[a-z0-9]+-){0,3}[A-Za-z0-9_]{16,}                         # model providers
      | (?:rk|gsk|csk|fw|r8|hf)_[A-Za-z0-9_]{16,} | (?:xai|nvapi|pplx|tgp)-[A-Za-z0-9_]{16,}
      | AIza[A-Za-z0-9_-]{20,} | ya29\.[A-Za-z0-9_-]{16,}               # Google
      | (?:gh[pousr]|github_pat)_[A-Za-z0-9_]{16,} | glpat-[A-Za-z0-9_-]{16,}
      | AKIA[A-Z0-9]{12,} | xox[abprs]-[A-Za-z0-9-]{10,}                # AWS, Slack
      | eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.                       # signed web tokens
      | [Bb]earer[ ]\S{8,}
    )""",
    re.VERBOSE,
)


def looks_secret(text: str) -> bool:
    """Whether the text has the shape of an API key or another credential."""
    return len(text) >= _SHORTEST_SECRET and _SECRET.search(text) is not None


def quote(text: str) -> str:
    """The text in double quotes, on one line, shortened, and without what may be a key."""
    if looks_secret(text):
        return '"…" (not shown: it looks like a key)'
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    if not short.isprintable() or '"' in short or "\\" in short:
        short = "".join(map(_escape, short))
    return f'"{short}"'


def _escape(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    return char if char.isprintable() else char.encode("unicode_escape").decode()


def quote_value(value: object) -> str:
    """Any value that came in from outside, as a person would write or name it."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value) if not isinstance(value, int) or abs(value) < 10**15 else "that number"
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple | set | frozenset):
        return "a list"
    return "nothing" if value is None else f"a {type(value).__name__}"


def join_or(words: Iterable[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    *head, last = words
    return f"{', '.join(head)} or {last}" if head else last


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word most like this one, compared without regard to case, if any is close."""
    from difflib import get_close_matches  # only those who mistype pay for it

    by_lower = {name.lower(): name for name in known}
    found = get_close_matches(word.lower()[:200], by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None
