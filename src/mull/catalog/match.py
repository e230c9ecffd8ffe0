"""Which rows of data speak of a model: glob patterns on provider, model, dialect and endpoint.

A pattern is compared without regard to case. A model pattern may fit the whole id or its last
path segment, because gateways put a maker's name in front of the maker's own id. All keys that
a row gives must fit; the more particular the keys, the more the row weighs.
"""

import re
from fnmatch import fnmatchcase
from functools import cache, cached_property

from msgspec import Struct

__all__ = ["Match", "Subject", "glob"]

Patterns = str | tuple[str, ...]
_SPECIAL = r"[*?]|\[[^\]]*\]?"


class Subject(Struct, frozen=True):
    """What rows are matched against: one model at one endpoint."""

    provider: str
    model: str
    dialect: str
    endpoint: str | None = None


class Match(Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """Which places a row is for; a key that is not given fits everything."""

    provider: Patterns | None = None
    model: Patterns | None = None
    dialect: Patterns | None = None
    endpoint: Patterns | None = None

    @property
    def weight(self) -> int:
        """How particular the row is: an endpoint outweighs all the rest together."""
        return (
            (self.dialect is not None)
            + 2 * (self.model is not None)
            + 4 * (self.provider is not None)
            + 8 * (self.endpoint is not None)
        )

    def fits(self, place: Subject) -> bool:
        """Whether every key that is given fits."""
        return (
            (self.provider is None or _any(self.provider, place.provider))
            and (self.dialect is None or _any(self.dialect, place.dialect))
            and (self.model is None or self.fits_model(place.model))
            and (self.endpoint is None or _any(self.endpoint, place.endpoint or ""))
        )

    def fits_model(self, model: str) -> bool:
        """Whether the model pattern fits the id or its last segment."""
        if self.model is None:
            return False
        whole = model.lower()
        last = whole.rpartition("/")[2]
        for part, pattern in self._models:
            if part in whole and (glob(pattern, whole) or (last != whole and glob(pattern, last))):
                return True
        return False

    @cached_property
    def _models(self) -> tuple[tuple[str, str], ...]:
        return _prepared(self.model or ())


def _any(patterns: Patterns, text: str) -> bool:
    text = text.lower()
    return any(part in text and glob(pattern, text) for part, pattern in _prepared(patterns))


@cache
def _prepared(patterns: Patterns) -> tuple[tuple[str, str], ...]:
    """Each pattern in lower case, behind its longest literal part: few texts hold even that."""
    several = (patterns,) if isinstance(patterns, str) else patterns
    return tuple((max(_literals(p), key=len), p) for p in map(str.lower, several))


def _literals(text: str) -> list[str]:
    return re.split(_SPECIAL, text) if _has_more_than_stars(text) else text.split("*")


def _has_more_than_stars(text: str) -> bool:
    return "?" in text or "[" in text


def glob(pattern: str, text: str) -> bool:
    """Whether a shell-style pattern fits the whole text.

    Stars alone are matched by hand: compiling a regex for each of some hundred rows would cost
    more than everything else a lookup does.
    """
    if _has_more_than_stars(pattern):
        return fnmatchcase(text, pattern)
    head, *rest = pattern.split("*")
    if not rest:
        return text == head
    if not text.startswith(head):
        return False
    at = len(head)
    *middle, tail = rest
    for piece in middle:
        at = text.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return len(text) - at >= len(tail) and text.endswith(tail)
