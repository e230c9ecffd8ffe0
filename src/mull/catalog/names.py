"""How people write model names: finds the ids that a typed name can mean.

A name is tried as it stands, then in any case, then with the dots and dashes of a version
(4.5, 4-5) taken as equal. In each of the last two it may also be: without the date that the
catalog's ids have; without `-preview`; with a date or `-latest` that the catalog lacks; with
`-thinking` behind it. No rule knows a model by name.
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
_DATE = r"(?:\d{8}|\d{6}|\d{4}-\d{2}-\d{2}|\d{2}-\d{4}|\d{2}-\d{2}|\d{4}|00\d)"
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

    def find(self, name: str) -> list[Found]:
        """Every id that the name can mean, by the first rule that finds any."""
        for fold in (str.lower, _undotted):
            found = self._find(name, fold)
            if found:
                return found
        return []

    def _find(self, name: str, fold: Callable[[str], str]) -> list[Found]:
        found = self._plain(name, fold) or self._other_date(name, fold)
        if found or not name.lower().endswith(_THINKING):
            return found
        base = name[: -len(_THINKING)]
        note = f"{name!r} is {{}} with its thinking on"
        return [
            replace(hit, note=note.format(hit.wire), thinks=True)
            for hit in self._plain(base, fold) or self._other_date(base, fold)
        ]

    def _plain(self, name: str, fold: Callable[[str], str]) -> list[Found]:
        return (
            self._direct(name, fold)
            or self._newest_dated(name, fold)
            or [
                replace(hit, note=f"{name!r} is taken as {hit.model}")
                for hit in self._direct(name + _PREVIEW, fold)
            ]
        )

    def _direct(self, name: str, fold: Callable[[str], str]) -> list[Found]:
        return [Found(p, model, model) for p, model in self._by(fold).get(fold(name), ())]

    def _newest_dated(self, name: str, fold: Callable[[str], str]) -> list[Found]:
        """Each provider's newest id that is this name with a date behind it."""
        stem = fold(name)
        dated = _pattern(rf"[-@]{_DATE}(?:-preview)?")
        newest: dict[str, tuple[str, str]] = {}
        for key, pairs in self._by(fold).items():
            if key.startswith(stem) and dated.fullmatch(key, len(stem)):
                for provider, model in pairs:
                    this = (self._released(provider, model), model)
                    newest[provider] = max(newest.get(provider, this), this)
        return [
            Found(provider, model, model, f"{name!r} is taken as {model}, the newest of them")
            for provider, (_, model) in newest.items()
        ]

    def _other_date(self, name: str, fold: Callable[[str], str]) -> list[Found]:
        """A date or `-latest` that is not listed: the base's facts under the name as typed."""
        tail = _pattern(rf"(?:[-@]{_DATE}|-latest)$").search(name)
        if tail is None or not tail.start():
            return []
        base = name[: tail.start()]
        note = f"{name!r} is not in the catalog; the facts are those of {{}}"
        direct = [replace(hit, wire=hit.model + tail[0]) for hit in self._direct(base, fold)]
        others = direct or [replace(hit, wire=name) for hit in self._plain(base, fold)]
        return [replace(hit, note=note.format(hit.model)) for hit in others]

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
