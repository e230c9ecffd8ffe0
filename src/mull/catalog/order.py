"""In which order models are offered: a maker's own before resellers', the newest first.

Many entries have no date. Where the id holds one, that is taken; else the date of the newest model
of the same name that is not of a later version, so that Opus 5.5 stands where its version belongs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from mull.catalog.load import Catalog, makers
from mull.neutral.patterns import pattern

__all__ = ["Ranked", "ranked"]

_DATE = pattern(r"(?<!\d)(20\d\d)-?(\d\d)-?(\d\d)(?!\d)")
_VERSION = pattern(r"(?<!\d)(\d{1,2})(?:\.(\d{1,2})|-(\d{1,2})(?![\da-z]))?(?!\d)")
_WORD = pattern(r"[a-z]+")


class Ranked(NamedTuple):
    """A model and what its place depends on; the largest is offered first."""

    own: bool
    """The provider made it."""
    calls_tools: bool
    is_usual: bool
    """It is no snapshot of a model that is there as well."""
    date: str
    version: tuple[int, int]
    provider: str
    model: str

    @property
    def name(self) -> str:
        """The model as `-m` takes it."""
        return f"{self.provider}/{self.model}"


def ranked(catalog: Catalog, providers: Iterable[str]) -> list[Ranked]:
    """The models of these providers, as they are to be offered."""
    found = [one for provider in providers for one in _of(catalog, provider)]
    found.sort(key=lambda one: one[:5], reverse=True)
    return found


def _of(catalog: Catalog, provider: str) -> Iterable[Ranked]:
    row = catalog.provider(provider)
    if row is None:
        return
    prefixes = tuple(makers().get(provider, ()))
    entries = {model: catalog.entry(row.id, model) for model in row.models}
    known: dict[str, list[_Dated]] = {}
    named = {model: _Name.of(model) for model in entries}
    for model, entry in entries.items():
        name, date = named[model], entry.get("release_date") or named[model].date
        if date and entry.get("tool_call") is not False:  # what draws counts its versions anew
            known.setdefault(name.line, []).append((name.version, str(date)))
    for model, entry in entries.items():
        name = named[model]
        told = str(entry.get("release_date") or "") or name.date
        yield Ranked(
            own=bool(prefixes) and name.bare.startswith(prefixes),
            calls_tools=entry.get("tool_call") is not False,
            is_usual=not name.date or name.undated not in entries,
            date=told or _supposed(known.get(name.line, ()), name.version),
            version=name.version,
            provider=row.id,
            model=model,
        )


_Dated: TypeAlias = tuple[tuple[int, int], str]


class _Name(NamedTuple):
    """What a model's id says of it; `line` is the word that a maker's models begin with."""

    bare: str
    line: str
    version: tuple[int, int]
    date: str
    undated: str

    @classmethod
    def of(cls, model: str) -> _Name:
        bare = model.lower().rpartition("/")[2]
        dated, word = _DATE.search(bare), _WORD.search(bare)
        version = _VERSION.search(_DATE.sub("", bare) if dated else bare)
        return cls(
            bare,
            word[0] if word else "",
            _numbers(version) if version else (0, 0),
            "-".join(dated.groups()) if dated else "",
            _DATE.sub("", model).rstrip("-@") if dated else model,
        )


def _numbers(version: re.Match[str]) -> tuple[int, int]:
    decimals = (version[2] or "").rstrip("0")  # 4.20 is no later than 4.3
    return int(version[1]), int(decimals or version[3] or 0)


def _supposed(known: Iterable[_Dated], version: tuple[int, int]) -> str:
    """When a version came out, by those before it and after it; nothing if nobody can say."""
    if version == (0, 0):
        return ""
    before = max((date for one, date in known if one <= version), default="")
    after = min((date for one, date in known if one > version), default="~")
    return min(before, after)
