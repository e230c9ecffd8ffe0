"""The arguments of a function: the schema that the model sees, and their validation.

msgspec describes and validates the annotations, except those that involve pydantic. A parameter
annotated with `ToolContext` is filled in by mull, and the model does not see it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from types import SimpleNamespace, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from mull.agent.function_pydantic import PydanticArguments, involves_pydantic, is_field
from mull.agent.tools.tool import ToolContext, read_arguments, schema_of, wrong
from mull.neutral.errors import LocalError

__all__ = ["Arguments", "Call", "context_parameters"]


class Call(NamedTuple):
    """The Python call that a model's call amounts to."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


class Arguments:
    """The parameters of a function that a model fills in. `schema` describes them.

    Raises:
        LocalError: one of them cannot be described; says which and why.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        plain: Callable[..., Any],
        name: str,
        texts: Mapping[str, str],
    ) -> None:
        """`plain` has the annotations, `texts` describe parameters."""
        self._name = name
        try:
            hints = _hints(plain)
            signature = inspect.signature(function)
        except NameError as error:
            hint = "import it at run time, not only for type checkers"
            raise self._refused(f"its signature is unclear: {error}; {hint}") from None
        except (TypeError, ValueError) as error:
            raise self._refused(f"its signature is unclear: {error}") from None
        settled = function.keywords if isinstance(function, functools.partial) else {}
        parameters = [one for one in signature.parameters.values() if one.name not in settled]
        self._context = [one.name for one in parameters if _is_context(hints.get(one.name))]
        self._signature = signature.replace(parameters=parameters)
        self._pydantic = PydanticArguments()
        self._defaults: dict[str, Callable[[], Any]] = {}
        self._texts = dict(texts)
        try:
            fields = [
                self._field(one, hints.get(one.name, Any))
                for one in parameters
                if one.name not in self._context
            ]
            self._struct = msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)
            self.schema = self._described()
        except TypeError as error:
            raise self._refused(str(error).rpartition("\n")[2]) from None

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The values as the annotated types.

        Raises:
            ToolFailure: they do not match.
        """
        values = read_arguments(given, self._struct, self.schema, dec_hook=_from_json)
        read = {name: getattr(values, name) for name in given}
        if not self._pydantic:
            return read
        try:
            return {**read, **self._pydantic.read(read)}
        except ValueError as error:
            raise wrong(str(error), self.schema) from None

    def call(self, values: Mapping[str, Any], context: ToolContext) -> Call:
        """The call with these values; omitted ones get the function's own defaults."""
        given = {**dict.fromkeys(self._context, context), **values}
        for name, default in self._defaults.items():
            if name not in given:
                given[name] = default()
        for parameter in self._signature.parameters.values():
            if parameter.kind is parameter.POSITIONAL_ONLY and parameter.name not in given:
                given[parameter.name] = parameter.default
        bound = self._signature.bind_partial()
        bound.arguments.update(given)
        return Call(bound.args, bound.kwargs)

    def _field(self, parameter: inspect.Parameter, kind: Any) -> tuple[Any, ...]:
        """The field of the struct for a parameter; pydantic's own are validated afterwards."""
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            written = str(parameter).partition(":")[0]
            raise TypeError(f"{written} has no schema; declare each argument")
        name, default = parameter.name, parameter.default
        if is_field(default):  # as in `days: int = Field(3, ge=1)`
            field, kind = default, Annotated[kind, default]
            if field.is_required():
                default = parameter.empty
            else:
                self._defaults[name] = lambda: field.get_default(call_default_factory=True)
        for one in kind.__metadata__ if get_origin(kind) is Annotated else ():
            if isinstance(text := getattr(_metadata(one), "description", None), str):
                self._texts[name] = text
        if default is None:
            kind = _any_of(kind, None)
        if involves_pydantic(kind):
            self._pydantic.add(name, kind)
            kind = Any
        kind = _for_msgspec(kind)
        if default is parameter.empty:
            return (name, kind)
        return (name, _any_of(kind, msgspec.UnsetType), msgspec.UNSET)

    def _described(self) -> dict[str, Any]:
        schema = schema_of(self._struct, self._texts, schema_hook=_json_schema)
        if self._pydantic:
            self._pydantic.describe(schema, self._texts)
        for parameter in self._signature.parameters.values():
            default = parameter.default
            if is_field(default):
                factory = default.default_factory or default.is_required()
                default = parameter.empty if factory else default.default
            with contextlib.suppress(TypeError, ValueError):  # JSON cannot express every default
                if default is not parameter.empty and parameter.name in schema["properties"]:
                    written = msgspec.json.encode(default, enc_hook=_to_json)
                    schema["properties"][parameter.name]["default"] = msgspec.json.decode(written)
        return schema

    def _refused(self, why: str) -> LocalError:
        return LocalError(f"{self._name} cannot be a tool: {why}")


def context_parameters(function: Callable[..., Any]) -> list[str]:
    """The parameters that want the `ToolContext`."""
    with contextlib.suppress(NameError, TypeError, ValueError):
        return [name for name, kind in _hints(function).items() if _is_context(kind)]
    return []


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of the parameters."""
    written = {n: a for n, a in getattr(function, "__annotations__", {}).items() if n != "return"}
    found = SimpleNamespace(__annotations__=written, __wrapped__=function)
    return get_type_hints(found, include_extras=True)


def _is_context(kind: Any) -> bool:
    """Whether it is `ToolContext`, alone or in a union."""
    origin = get_origin(kind)
    if origin in (Union, UnionType, Annotated):
        return any(map(_is_context, get_args(kind)))
    return kind is ToolContext or origin is ToolContext


def _for_msgspec(kind: Any) -> Any:
    """The type as msgspec understands it: descriptions as its own metadata, and nothing in a union
    that it could not tell apart.
    """
    origin, given = get_origin(kind), get_args(kind)
    if kind is object:
        return Any
    if origin is Annotated:
        return Annotated[(_for_msgspec(given[0]), *map(_metadata, given[1:]))]
    if origin in (Union, UnionType):
        kinds = [_for_msgspec(one) for one in given if not (str in given and _is_path(one))]
        return _any_of(*kinds)
    if origin is None or origin is Literal or not given:
        return kind
    return origin[tuple(one if one is ... else _for_msgspec(one) for one in given)]


def _any_of(*kinds: Any) -> Any:
    return Union[*kinds]


def _metadata(one: Any) -> Any:
    """A text, a `Doc` or a descriptive pydantic `Field` as a description."""
    text = one if isinstance(one, str) else None
    text = text or getattr(one, "documentation", None) or getattr(one, "description", None)
    if isinstance(one, msgspec.Meta) or not isinstance(text, str):
        return one
    return msgspec.Meta(description=text)


def _is_path(kind: Any) -> bool:
    found = get_origin(kind) or kind
    return isinstance(found, type) and (found is os.PathLike or issubclass(found, PurePath))


def _from_json(kind: Any, value: Any) -> Any:
    """A value of a type that JSON does not have."""
    if _is_path(kind):
        if not isinstance(value, str):
            raise TypeError(f"Expected `str`, got `{type(value).__name__}`")
        return Path(value) if kind is os.PathLike else kind(value)
    raise NotImplementedError


def _json_schema(kind: Any) -> dict[str, Any]:
    if _is_path(kind):
        return {"type": "string", "format": "path"}
    raise NotImplementedError


def _to_json(value: Any) -> Any:
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    raise TypeError
