"""The arguments of a function that only pydantic can describe and validate.

That is an argument whose type involves pydantic at any depth: a model, a `Field` or another
constraint, also inside a dataclass. pydantic is imported only if there is one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

__all__ = ["PydanticArguments", "involves_pydantic", "is_field"]

_PACKAGES = ("pydantic", "annotated_types", "pydantic_extra_types")
_MOST_MISTAKES = 5
_REFERENCE = "#/$defs/{model}"


class PydanticArguments:
    """Those arguments, by name."""

    def __init__(self) -> None:
        self._adapters: dict[str, Any] = {}

    def __bool__(self) -> bool:
        return bool(self._adapters)

    def add(self, name: str, kind: Any) -> None:
        """Add an argument.

        Raises:
            TypeError: pydantic does not understand its type, or is not installed.
        """
        try:
            from pydantic import TypeAdapter  # type: ignore[import-not-found,unused-ignore]
            from pydantic.errors import (  # type: ignore[import-not-found,unused-ignore]
                PydanticUserError,
            )
        except ImportError:
            raise TypeError("its annotations need pydantic: pip install pydantic") from None
        try:
            self._adapters[name] = TypeAdapter(kind)
        except (PydanticUserError, NameError) as error:
            raise TypeError(str(error).partition("\n")[0]) from None

    def read(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values of these arguments as their types.

        Raises:
            ValueError: they do not match; says where.
        """
        from pydantic import ValidationError  # type: ignore[import-not-found,unused-ignore]

        read: dict[str, Any] = {}
        for name in self._adapters.keys() & values.keys():
            try:
                read[name] = self._adapters[name].validate_json(json.dumps(values[name]))
            except ValidationError as error:
                raise ValueError("; ".join(_mistakes(name, error.errors()))) from None
        return read

    def describe(self, schema: dict[str, Any], texts: Mapping[str, str]) -> None:
        """Put their descriptions into the schema of all arguments; `texts` are used for those that
        have none.

        Raises:
            TypeError: one cannot be described in JSON, or two types have the same name.
        """
        from pydantic import TypeAdapter  # type: ignore[import-not-found,unused-ignore]
        from pydantic.errors import (  # type: ignore[import-not-found,unused-ignore]
            PydanticUserError,
        )

        inputs: Any = [(name, "validation", one) for name, one in self._adapters.items()]
        try:
            found, shared = TypeAdapter.json_schemas(inputs, ref_template=_REFERENCE)
        except PydanticUserError as error:
            raise TypeError(str(error).partition("\n")[0]) from None
        for (name, _), own in found.items():
            described = {"description": texts[name]} if name in texts else {}
            schema["properties"][name] = {**described, **own}
        parts = schema.get("$defs", {})
        for name, part in shared.get("$defs", {}).items():
            if parts.setdefault(name, part) != part:
                raise TypeError(f"two of its types are called {name}: rename one of them")
        if parts:
            schema["$defs"] = parts


def is_field(value: Any) -> bool:
    """Whether it is pydantic's `Field(…)`."""
    kind = type(value)
    return kind.__name__ == "FieldInfo" and kind.__module__.partition(".")[0] == "pydantic"


def involves_pydantic(
    kind: Any, *, to_describe: bool = False, _seen: frozenset[int] = frozenset()
) -> bool:
    """Whether only pydantic can validate this type, or can describe it as well. Without
    `to_describe`, a `Field` that only describes is not enough.
    """
    if id(kind) in _seen:  # a type that contains itself
        return False
    if hasattr(kind, "__pydantic_core_schema__") or hasattr(kind, "__get_pydantic_core_schema__"):
        return True
    origin, given = get_origin(kind), get_args(kind)
    if origin is Literal:
        return False
    if origin is Annotated and any(_matters(one, to_describe) for one in kind.__metadata__):
        return True
    inner = given[:1] if origin is Annotated else (*given, *_members(origin or kind))
    seen = _seen | {id(kind)}
    return any(involves_pydantic(one, to_describe=to_describe, _seen=seen) for one in inner)


def _matters(one: Any, to_describe: bool) -> bool:
    if type(one).__module__.partition(".")[0] not in _PACKAGES:
        return False
    return to_describe or bool(one.metadata) if is_field(one) else True


def _members(kind: Any) -> Iterator[Any]:
    """The types of the fields of a dataclass, TypedDict or named tuple."""
    fielded = dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")
    if isinstance(kind, type) and (fielded or hasattr(kind, "__total__")):
        with contextlib.suppress(NameError, TypeError):
            yield from get_type_hints(kind, include_extras=True).values()


def _mistakes(name: str, errors: list[Any]) -> Iterator[str]:
    """What pydantic found, each with its place as msgspec writes it."""
    for error in errors[:_MOST_MISTAKES]:
        place = "".join(
            f"[{part}]" if isinstance(part, int) else f".{part}" for part in (name, *error["loc"])
        )
        yield f"{error['msg']} - at `${place}`"
