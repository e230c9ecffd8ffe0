"""Reads the parameters of a request from a body, and writes them into one, by the rows of a
dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mull.dialects.fields import Fields
from mull.dialects.foreign import as_object
from mull.dialects.traits import TRAITS
from mull.neutral.messages import Dialect
from mull.neutral.parameters import ParameterName, Parameters, is_said

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
    for name, paths in TRAITS[dialect].parameters.items():
        value = _READ[name](fields, *(path.removeprefix(_OPPOSITE) for path in paths))
        if paths[0].startswith(_OPPOSITE) and value is not None:
            value = not value
        if is_said(value):
            found[name] = value
    return found


def write_parameters(request: Parameters, dialect: Dialect) -> dict[str, Any]:
    """The part of a body that contains the parameters."""
    body: dict[str, Any] = {}
    for name, (path, *_) in TRAITS[dialect].parameters.items():
        value = getattr(request, name)
        if is_said(value):
            value = not value if path.startswith(_OPPOSITE) else value
            nest(body, path.removeprefix(_OPPOSITE), value)
    return body


def nest(body: dict[str, Any], path: str, value: Any) -> None:
    """Put a value at its path; create missing objects on the way."""
    *outer, last = path.split(".")
    for name in outer:
        body = body.setdefault(name, {})
    body[last] = value
