"""The words and counts of a wire as rows that are read in both directions."""

from __future__ import annotations

from typing import Any

__all__ = ["Counts", "Statuses", "Words"]


class Words:
    """Pairs of a wire's word and the neutral one; the first row of a word is its translation.

    So several wire words may mean one neutral word, and a wire that lacks a neutral word may use
    another instead. Other words stay unchanged: a provider's own word is kept.
    """

    def __init__(self, *rows: tuple[str, str]) -> None:
        self._neutral: dict[str, str] = {}
        self._wire: dict[str, str] = {}
        for wire, neutral in rows:
            self._neutral.setdefault(wire, neutral)
            self._wire.setdefault(neutral, wire)

    def read(self, word: str, said: str | None = None) -> str:
        """The neutral word; an unknown word is returned as it was sent."""
        return self._neutral.get(word, said or word)

    def write(self, word: str) -> str:
        """The wire's word."""
        return self._wire.get(word, word)


class Statuses:
    """Pairs of an HTTP status and the wire's word for that kind of failure."""

    def __init__(self, *rows: tuple[int, str], other: str) -> None:
        self._words: dict[int, str] = {}
        self._statuses: dict[str, int] = {}
        self._other = other
        for status, word in rows:
            self._words.setdefault(status, word)
            self._statuses.setdefault(word, status)

    def word(self, status: int, said: str | None = None) -> str:
        """The wire's word; `said` if that is already one. A status below 500 without a row is a bad
        request.
        """
        if said is not None and said in self._statuses:
            return said
        if status in self._words:
            return self._words[status]
        return self._words[400] if 400 <= status < 500 else self._other

    def status(self, code: str | None) -> int | None:
        """The status of a failure with this word, if the word is known."""
        if code is not None and code.isdecimal() and 400 <= int(code) < 600:
            return int(code)
        return self._statuses.get(code or "")


class Counts:
    """Rows of a count's name and its places on the wire; the first place is the one written.

    A place is a key, or the key of an object and a key in it, separated by a dot.
    """

    def __init__(self, *rows: tuple[str, ...]) -> None:
        self._rows = [
            (name, [tuple(place.split(".")) for place in places]) for name, *places in rows
        ]

    def read(self, raw: dict[str, Any]) -> dict[str, int | None]:
        """The existing counts, by name; what is not a count is unknown."""
        return {
            name: next((n for place in places if (n := _at(raw, place)) is not None), None)
            for name, places in self._rows
        }

    def write(self, counts: dict[str, int | None]) -> dict[str, Any]:
        """The known counts, in their places."""
        raw: dict[str, Any] = {}
        for name, places in self._rows:
            count = counts.get(name)
            if count is not None:
                *outer, last = places[0]
                holder = raw.setdefault(outer[0], {}) if outer else raw
                holder[last] = count
        return raw


def _at(raw: dict[str, Any], place: tuple[str, ...]) -> int | None:
    value: Any = raw
    for key in place:
        value = value.get(key) if type(value) is dict else None
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and value >= 0 else None
