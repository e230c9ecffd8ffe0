"""How people write model names: finds the ids that a typed name can mean.

A name is tried as it stands, then in any case, then with the dots and dashes of a version
(4.5, 4-5) taken as equal. In each of the last two it may also be: without the date that the
catalog's ids have; without `-preview`; with a date or `-latest` that the catalog lacks; with
`-thinking` behind it. Behind a provider's name only a date is added: anything else goes out as
typed, with the facts of the id it resembles. Every id that is not spelt like the name has a note.
No rule knows a model by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from mull.neutral.errors import UnknownLevel
from mull.neutral.thinking import LADDER, LEVEL_ALIASES

__all__ = ["Found", "Names", "close", "either", "listed", "no_level", "resembles_level"]

Pair = tuple[str, str]
_DATE = r"(\d{8}|\d{6}|\d{4}-\d{2}-\d{2}|\d{2}-\d{4}|\d{2}-\d{2}|\d{4})"
_DATES = {
    "99999999": ("%Y%m%d",),
    "9999-99-99": ("%Y-%m-%d",),
    "999999": ("%y%m%d",),
    "99-9999": ("%m-%Y",),
    "99-99": ("%m-%d",),
    "9999": ("%m%d", "%y%m"),
}
"""How providers write dates: as days, as months, and without the year."""
_YEARS = range(2020, 2100)
_THINKING = "-thinking"
_PREVIEW = "-preview"
_NUMBER = r"[+-]?\d[\d.,_]{0,15}[km]?"


class Found(Struct, frozen=True):
    """An id that a name can mean; `wire` is what the endpoint is to be told."""

    provider: str
    model: str
    wire: str
    note: str | None = None
    known: bool = True
    thinks: bool = False


class Names:
    """An index of provider and model ids, folded in two ways, each when first needed."""

    def __init__(self, pairs: Iterable[Pair], released: Callable[[str, str], str]) -> None:
        self._pairs = list(pairs)
        self._released = released
        self._folded: dict[Callable[[str], str], dict[str, list[Pair]]] = {}

    def find(self, name: str, *, in_full: bool = False) -> list[Found]:
        """Every id that the name can mean, by the first rule that finds any.

        `in_full` is a name behind its provider's: of another id it gets no more than the facts,
        unless that only adds a date.
        """
        for fold in (str.lower, _undotted):
            found = self._find(name, fold)
            if found:
                return [_as_typed(name, hit) for hit in found] if in_full else found
        return []

    def _find(self, name: str, fold: Callable[[str], str]) -> list[Found]:
        found = self._plain(name, fold) or self._other_date(name, fold)
        if found or not name.lower().endswith(_THINKING):
            return found
        base = name[: -len(_THINKING)]
        note = f"{name!r} asks {{}} to think"
        return [
            replace(hit, note=note.format(hit.wire), thinks=True)
            for hit in self._plain(base, fold) or self._other_date(base, fold)
        ]

    def _plain(self, name: str, fold: Callable[[str], str]) -> list[Found]:
        return (
            self._direct(name, fold)
            or self._newest_dated(name, fold, "")
            or self._newest_dated(name, fold, _PREVIEW)
            or self._direct(name, fold, _PREVIEW)
        )

    def _direct(self, name: str, fold: Callable[[str], str], more: str = "") -> list[Found]:
        ids = self._by(fold).get(fold(name + more), ())
        taken = f"{name!r} is taken as {{}}"
        return [
            Found(p, model, model, None if _same(model, name) else taken.format(model))
            for p, model in ids
        ]

    def _newest_dated(self, name: str, fold: Callable[[str], str], more: str) -> list[Found]:
        """Each provider's newest id that is this name with a date behind it: by these dates if all
        have a year, because the catalog's days of release may be those of another id."""
        stem = fold(name)
        dated: dict[str, list[tuple[str, str]]] = {}
        for key, pairs in self._by(fold).items():
            if key.startswith(stem) and key.endswith(more):
                for provider, model in pairs:
                    day = _date_of(model[len(stem) : len(key) - len(more)])
                    if day is not None:
                        dated.setdefault(provider, []).append((day, model))
        newest = {provider: self._newest(provider, found) for provider, found in dated.items()}
        return [
            Found(provider, model, model, f"{name!r} is taken as {model}, the newest of them")
            for provider, model in newest.items()
        ]

    def _newest(self, provider: str, dated: Sequence[tuple[str, str]]) -> str:
        if all(day for day, _ in dated):
            return max(dated)[1]
        return max((self._released(provider, model), model) for _, model in dated)[1]

    def _other_date(self, name: str, fold: Callable[[str], str]) -> list[Found]:
        """A date or `-latest` that is not listed: the base's facts under the name as typed."""
        tail = _pattern(rf"(?:[-@]{_DATE}|-00\d|-latest)$").search(name)
        if tail is None or not tail.start() or (tail[1] and not _is_dated(tail[0])):
            return []
        base = name[: tail.start()]
        direct = [replace(hit, wire=hit.model + tail[0]) for hit in self._direct(base, fold)]
        others = direct or [replace(hit, wire=name) for hit in self._plain(base, fold)]
        return [replace(hit, note=_facts_of(name, hit)) for hit in others]

    def _by(self, fold: Callable[[str], str]) -> dict[str, list[Pair]]:
        if fold not in self._folded:
            index: dict[str, list[Pair]] = {}
            for pair in self._pairs:
                index.setdefault(fold(pair[1]), []).append(pair)
            self._folded[fold] = index
        return self._folded[fold]


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """Compiled at the first use: most names are found without."""
    return re.compile(text, re.IGNORECASE)


def _undotted(name: str) -> str:
    return name.lower().replace(".", "-")


def _same(one: str, other: str) -> bool:
    return one.lower() == other.lower()


def _is_dated(tail: str) -> bool:
    return _date_of(tail) is not None


def _date_of(tail: str) -> str | None:
    """The date in a tail that is a separator and a day or month of the calendar, in a provider's
    spelling; empty if it has no year, None if it is no date."""
    found = _pattern(rf"[-@]{_DATE}").fullmatch(tail)
    if found is None:
        return None
    from datetime import datetime

    for form in _DATES[_pattern(r"\d").sub("9", found[1])]:
        has_year = "y" in form.lower()
        text = found[1] if has_year else f"2024 {found[1]}"  # a leap year
        try:
            day = datetime.strptime(text, form if has_year else f"%Y {form}")
        except ValueError:
            continue
        if day.year in _YEARS:
            return day.date().isoformat() if has_year else ""
    return None


def _facts_of(name: str, hit: Found) -> str:
    sent = "" if _same(hit.wire, name) else f"; {hit.wire} is sent"
    return f"{name!r} is not in the catalog{sent}; the facts are those of {hit.model}"


def _as_typed(name: str, hit: Found) -> Found:
    """The hit for a name in full: sent as typed, unless it is that id in another spelling or only
    adds a date."""
    base = name[: -len(_THINKING)] if hit.thinks else name
    if _undotted(hit.wire) == _undotted(base) or _is_dated(hit.wire[len(base) :]):
        return hit
    typed = replace(hit, wire=base)
    thinks = f"{name!r} asks {base} to think; the facts are those of {hit.model}"
    return replace(typed, note=thinks if hit.thinks else _facts_of(name, typed))


def close(name: str, names: Iterable[str], count: int = 3, *, cutoff: float = 0.5) -> list[str]:
    """The few names most like the one typed, best first.

    difflib is slow on thousands of names, so it only sees those that share most letter pairs.
    """
    from difflib import get_close_matches

    folded = name.lower()[:80]
    wanted = _letter_pairs(folded)
    if not wanted:
        return []
    by_folded = {other.lower(): other for other in names}
    ranked = sorted(by_folded, key=lambda other: -_likeness(wanted, other))[:40]
    return [by_folded[match] for match in get_close_matches(folded, ranked, count, cutoff)]


def resembles_level(word: str) -> bool:
    """Whether a word is nearly a level, or a number of tokens in another spelling."""
    from difflib import get_close_matches

    if _pattern(_NUMBER).fullmatch(word):
        return True
    levels = (*LADDER, *LEVEL_ALIASES)
    return bool(get_close_matches(word.strip().lower()[:80], levels, 1, 0.6))


def no_level(model: str, word: str, levels: Sequence[str], *, budget: bool = True) -> UnknownLevel:
    """What to say of a word that is none of the model's levels."""
    word = word if len(word) <= 40 else word[:39] + "…"
    told = f"{word!r} is not a level, and {model} has none to choose from"
    if levels:
        tokens = ", or a number of tokens" if budget else ""
        told = f"{model} has no level {word!r}: use {either(levels)}{tokens}"
    if word.isdecimal() or word.lower() in (*LADDER, *LEVEL_ALIASES):  # another was behind it
        told = f"only one level can follow a model's name: {model}/{word}, or the one after it"
    return UnknownLevel(told, model, word, levels)


def _letter_pairs(text: str) -> set[str]:
    return {text[i : i + 2] for i in range(len(text) - 1)}


def _likeness(wanted: set[str], other: str) -> float:
    pairs = _letter_pairs(other)
    return 2 * len(wanted & pairs) / (len(wanted) + len(pairs))


def either(names: Sequence[str]) -> str:
    """`a, b or c`."""
    return " or ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def listed(names: Sequence[str], most: int = 5) -> str:
    """`a, b, c and 7 more`."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
