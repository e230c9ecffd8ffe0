"""What sessions are called: ids, names that people give, and titles made from the first words.

An id is the day and the time of day, in letters and digits that sort: `260731-k4x9q`. Ids of one
store differ because the store counts on from one that is taken.
"""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta

from mull.neutral.errors import SessionError
from mull.neutral.patterns import pattern
from mull.settings.words import quote

__all__ = ["DAY_LETTERS", "LONGEST_NAME", "checked_name", "is_id", "new_id", "next_id", "title_of"]

DAY_LETTERS = 7
"""How many letters of an id name its day, the dash included."""

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"  # none that looks like another
_PLACES = 5
_PARTS = 32**_PLACES
_DAY = 86_400
_ID = pattern(rf"\d{{6}}-[{_DIGITS}]{{{_PLACES}}}")
_LIKE_AN_ID = pattern(r"\d{6}-.*")
LONGEST_NAME = 64
_LONGEST_TITLE = 60


def new_id(now: float) -> str:
    """The id of a session that begins at this second since 1970."""
    day, second = divmod(now, _DAY)
    return _id(int(day), int(second / _DAY * _PARTS))


def is_id(text: str) -> bool:
    """Whether a text is an id as `new_id` makes them."""
    return _ID.fullmatch(text) is not None


def next_id(taken: str) -> str:
    """The id after this one."""
    date = datetime.strptime(taken[:6], "%y%m%d").replace(tzinfo=UTC)
    part = 0
    for letter in taken[DAY_LETTERS:]:
        part = part * 32 + _DIGITS.index(letter)
    more, part = divmod(part + 1, _PARTS)
    return _id(int(date.timestamp()) // _DAY + more, part)


def _id(day: int, part: int) -> str:
    date = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)
    letters = ""
    for _ in range(_PLACES):
        part, digit = divmod(part, 32)
        letters = _DIGITS[digit] + letters
    return f"{date:%y%m%d}-{letters}"


def checked_name(name: str) -> str:
    """The name as it is kept.

    Raises:
        SessionError: nothing can be called so; says why.
    """
    tidy = unicodedata.normalize("NFC", " ".join(name.split()))
    if not tidy or len(tidy) > LONGEST_NAME or not tidy.isprintable():
        why = f"use 1 to {LONGEST_NAME} visible characters"
    elif tidy.startswith("-"):
        why = "it would be taken for an option"
    elif _LIKE_AN_ID.fullmatch(tidy):
        why = "it would be taken for an id"
    else:
        return tidy
    raise SessionError(f"a session cannot be called {quote(name)}: {why}")


def title_of(text: str) -> str:
    """The first words of a message on one line."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[:1000]).split())
    if len(line) <= _LONGEST_TITLE:
        return line
    cut = line[: _LONGEST_TITLE - 1]
    words = cut.rpartition(" ")[0]
    return (words if len(words) > _LONGEST_TITLE // 2 else cut) + "…"
