"""What a server of a dialect offers besides answers: paths, a list of models, token counts.

Each dialect that clients use with a server has a module `surface` with one `Surface`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Literal, NamedTuple, TypeAlias

from mull.dialects.registry import DIALECTS, codec
from mull.neutral.blocks import Value
from mull.neutral.messages import Dialect

__all__ = [
    "Listed",
    "Operation",
    "Path",
    "Place",
    "Surface",
    "TooLong",
    "find_place",
    "spoken",
    "surface_of",
]

Operation: TypeAlias = Literal[
    "answer",
    "count",
    "models",
    "model",
    "respond",
    "respond_count",
    "response",
    "items",
    "compact",
    "cancel",
]
"""The purpose of a path. Those from `respond` on belong to the Responses API, which is stateful."""


class Listed(Value, frozen=True):
    """A model in a list of models."""

    name: str
    owner: str = ""
    label: str = ""
    window: int | None = None
    output: int | None = None
    created: int = 0


class Path(NamedTuple):
    """A row of a surface; the pattern may have a group `name`."""

    method: str
    pattern: str
    operation: Operation


class TooLong(NamedTuple):
    """The messages by which clients recognise that a request is too long: on their own provider's
    message they compress the conversation or request a shorter response. `beside` is for a request
    that would fit without its response; `vague` precedes another provider's message if that
    contains no numbers."""

    code: str | None
    sentence: str
    beside: str | None = None
    vague: str = ""


class Surface(NamedTuple):
    """The paths of a dialect and their responses."""

    paths: tuple[Path, ...]
    """The requests that a server of the dialect answers."""
    header: str | None
    """A header that only clients of the dialect send; None if there is no such header."""
    write_count: Callable[[int], bytes]
    """Writes the body of a response to a request that counts tokens."""
    write_models: Callable[[Sequence[Listed]], bytes]
    """Writes the body that lists models."""
    write_model: Callable[[Listed], bytes]
    """Writes the body about one model."""
    too_long: TooLong
    """How the dialect's own provider says that a request is too long."""
    as_list: Callable[[Mapping[str, Sequence[str]]], bool] = lambda _: False
    """Tells from the query whether a stream is written as one JSON list."""
    budget_status: int = 429
    """The HTTP status for a request rejected because a budget is used up."""


class Place(NamedTuple):
    """What a request is for; `name` is the part of its path that names a model or response."""

    dialect: Dialect
    operation: Operation
    name: str | None = None


def surface_of(dialect: Dialect) -> Surface | None:
    """The surface of a dialect; None if no client uses it with a server."""
    part = codec(dialect).surface
    return None if part is None else part.SURFACE


@cache
def _rows() -> tuple[tuple[re.Pattern[str], Dialect, Path], ...]:
    return tuple(
        (re.compile(path.pattern), dialect, path)
        for dialect in DIALECTS
        if (surface := surface_of(dialect)) is not None
        for path in surface.paths
    )


def find_place(
    method: str, path: str, headers: Mapping[str, str]
) -> Place | Literal["path", "method"]:
    """What a request is for; otherwise whether its path is unknown, or only its method.

    If several dialects share a path, a header that only clients of one dialect send decides, then
    the order of the dialects.
    """
    # A client chooses the path: what is kept is bounded.
    found = _places(path) if len(path) <= _USUAL_LENGTH else _places.__wrapped__(path)
    places = [place for place, verb in found if verb == method]
    if not places:
        return "method" if found else "path"
    sent = (place for place in places if _header(place.dialect) in headers)
    return next(sent, places[0])


_USUAL_LENGTH = 200


@lru_cache(maxsize=256)
def _places(path: str) -> Sequence[tuple[Place, str]]:
    """What requests to a path may be for, each with its method."""
    path = path.rstrip("/") or "/"
    return [
        (Place(dialect, row.operation, match.groupdict().get("name")), row.method)
        for pattern, dialect, row in _rows()
        if (match := pattern.fullmatch(path)) is not None
    ]


def spoken(headers: Mapping[str, str]) -> Dialect:
    """The dialect of a client with these headers; the most common one if they do not tell."""
    return next((one for one in DIALECTS if _header(one) in headers), DIALECTS[0])


def _header(dialect: Dialect) -> str | None:
    surface = surface_of(dialect)
    return surface.header if surface is not None else None
