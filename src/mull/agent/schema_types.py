"""Python types as JSON schemas, and JSON values as those types.

msgspec describes and converts a type. One that involves pydantic (a model, a `Field` or another
constraint, at any depth) is left to pydantic, and so is one that msgspec cannot describe, if
pydantic is installed.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

import msgspec

from mull.agent.function_pydantic import involves_pydantic
from mull.neutral.errors import LocalError
from mull.policy.json_schema import first_misfit

__all__ = ["Described", "described"]


class Described(NamedTuple):
    """A type: its schema, how a JSON value becomes one, and the reverse."""

    schema: dict[str, Any]
    convert: Callable[[Any], Any]
    plain: Callable[[Any], Any]


def described(kind: Any, name: str) -> Described:
    """The type of this name.

    Raises:
        LocalError: no JSON schema can describe it; says why.
    """
    if isinstance(kind, str) or (callable(kind) and inspect.isroutine(kind)):
        raise LocalError(
            f"{name} cannot be a schema: pass a type, or a JSON schema as a dictionary"
        )
    if involves_pydantic(kind, to_describe=True):
        return _by_pydantic(kind, name)
    try:
        return _by_msgspec(kind)
    except (TypeError, RuntimeError, NameError) as error:
        if get_origin(kind) in (Union, UnionType):
            with contextlib.suppress(TypeError, RuntimeError):
                return _any_of(get_args(kind))
        with contextlib.suppress(ImportError, LocalError):
            return _by_pydantic(kind, name)
        why = str(error).rpartition("\n")[2]
        raise LocalError(f"{name} cannot be a schema: {why}") from None


def _by_msgspec(kind: Any) -> Described:
    return Described(msgspec.json.schema(kind), _converter(kind), msgspec.to_builtins)


def _converter(kind: Any) -> Callable[[Any], Any]:
    """What converts a value that matches the schema."""

    def convert(value: Any) -> Any:
        try:
            return msgspec.convert(value, kind, str_keys=True)
        except msgspec.ValidationError:  # in JSON, 1.0 is an integer
            return msgspec.convert(value, kind, str_keys=True, strict=False)

    return convert


def _any_of(kinds: tuple[Any, ...]) -> Described:
    """A union of types that msgspec cannot tell apart: the first that matches is taken."""
    schemas, shared = msgspec.json.schema_components(kinds)
    alone = [{**schema, "$defs": shared} for schema in schemas]
    converters = [_converter(kind) for kind in kinds]

    def convert(value: Any) -> Any:
        errors: list[ValueError] = []
        for schema, one in zip(alone, converters, strict=True):
            if first_misfit(value, schema) is None:
                try:
                    return one(value)
                except ValueError as error:
                    errors.append(error)
        raise errors[0] if errors else ValueError("it matches none of the types")

    schema = {"anyOf": list(schemas), "$defs": shared}
    return Described(schema, convert, msgspec.to_builtins)


def _by_pydantic(kind: Any, name: str) -> Described:
    from pydantic import TypeAdapter  # type: ignore[import-not-found,unused-ignore]
    from pydantic.errors import (  # type: ignore[import-not-found,unused-ignore]
        PydanticUserError,
    )

    try:
        adapter: Any = TypeAdapter(kind)
        schema = adapter.json_schema()
    except (PydanticUserError, NameError) as error:
        why = str(error).partition("\n")[0]
        raise LocalError(f"{name} cannot be a schema: {why}") from None
    return Described(
        schema,
        # strict models accept dates and sets only from JSON
        lambda value: adapter.validate_json(msgspec.json.encode(value)),
        lambda value: adapter.dump_python(value, mode="json", by_alias=True),
    )
