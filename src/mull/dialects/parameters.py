"""Reads the parameters of a request from a body, and writes them into one, by the rows of a
dialect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from msgspec import Struct

from mull.dialects.fields import Fields, first_keys
from mull.dialects.foreign import as_object
from mull.dialects.traits import TRAITS
from mull.neutral.messages import Dialect
from mull.neutral.parameters import ParameterName, Parameters, is_said, said_in

__all__ = ["nest", "read_parameters", "write_parameters"]

_OPPOSITE = "!"


def _object(fields: Fields, *paths: str) -> dict[str, Any]:
    return as_object(fields.take(*paths) or {}, paths[0])


_READ: dict[ParameterName, Callable[..., Any]] = {
    "temperature": Fields.number,
    "top_p": Fields.number,
    "top_k": Fields.whole,
    "presence_penalty": Fields.number,
    "frequency_penalty": Fields.number,
    "seed": Fields.whole,
    "stop": Fields.texts,
    "parallel_calls": Fields.flag,
    "verbosity": Fields.text,
    "user": Fields.text,
    "metadata": _object,
    "cache_key": Fields.text,
}


def read_parameters(fields: Fields, dialect: Dialect) -> dict[str, Any]:
    """The parameters that the body has, by their neutral names.

    Raises:
        ConfigError: a parameter has an invalid value; the message says which and why.
    """
    found: dict[str, Any] = {}
    rows, keys = _rows(dialect)
    if not fields.has_any(keys):
        return found
    for row in rows:
        if not fields.has_any(row.keys):
            continue
        value = _READ[row.name](fields, *row.paths)
        if row.is_opposite and value is not None:
            value = not value
        if is_said(value):
            found[row.name] = value
    return found


class _Row(Struct, frozen=True):
    """A parameter: its places in a body, their first keys, and whether it says the opposite."""

    name: ParameterName
    paths: Sequence[str]
    keys: frozenset[str]
    is_opposite: bool


@cache
def _rows(dialect: Dialect) -> tuple[Sequence[_Row], frozenset[str]]:
    """The parameters of a dialect, and the first keys of all their places."""
    rows = []
    for name, places in TRAITS[dialect].parameters.items():
        paths = [place.removeprefix(_OPPOSITE) for place in places]
        rows.append(_Row(name, paths, first_keys(*paths), places[0].startswith(_OPPOSITE)))
    return rows, frozenset[str]().union(*(row.keys for row in rows))


def write_parameters(request: Parameters, dialect: Dialect) -> dict[str, Any]:
    """The part of a body that contains the parameters."""
    body: dict[str, Any] = {}
    said = said_in(request)
    for name, (path, *_) in TRAITS[dialect].parameters.items() if said else ():
        if name in said:
            value = not said[name] if path.startswith(_OPPOSITE) else said[name]
            nest(body, path.removeprefix(_OPPOSITE), value)
    return body


def nest(body: dict[str, Any], path: str, value: Any) -> None:
    """Put a value at its path; create missing objects on the way."""
    *outer, last = path.split(".")
    for name in outer:
        body = body.setdefault(name, {})
    body[last] = value
