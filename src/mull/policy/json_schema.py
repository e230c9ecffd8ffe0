"""Whether a JSON value matches a schema, and where it does not.

Supports the keywords of draft 2020-12 that constrain a value; `format` and descriptive keywords are
ignored, and so are references to other documents. Mismatches are described in words that a model
can act on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

__all__ = ["TYPE_NAMES", "first_misfit", "points_nowhere", "resolve"]

Schema: TypeAlias = "Mapping[str, Any] | bool"
_DEEPEST = 200
_LONGEST = 80
_MISSING = object()


def first_misfit(value: Any, schema: Schema) -> str | None:
    """The first place where the value does not match, in words; None if it matches."""
    return next(_Check(schema).misfits(value, schema, "$", 0), None)


def resolve(schema: Mapping[str, Any], root: Schema) -> Mapping[str, Any]:
    """The referenced schema, if it is nothing but a reference within its document."""
    seen: set[str] = set()
    while isinstance(ref := schema.get("$ref"), str) and ref not in seen:
        seen.add(ref)
        found = _pointed(ref, root)
        if not isinstance(found, Mapping):
            break
        schema = found
    return schema


def points_nowhere(ref: str, root: Schema) -> bool:
    """Whether a reference within its document has no target."""
    return ref.startswith("#") and _target(ref, root) is _MISSING


def _pointed(ref: str, root: Any) -> Any:
    """The target of a reference; True, which everything matches, for an external one."""
    found = _target(ref, root) if ref.startswith("#") else _MISSING
    return True if found is _MISSING else found


def _target(ref: str, root: Any) -> Any:
    found: Any = root
    for part in ref[1:].split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping) and name in found:
            found = found[name]
        elif isinstance(found, Sequence) and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        else:
            return _MISSING
    return found


class _Check:
    """The validation of one value against one document."""

    def __init__(self, root: Schema) -> None:
        self._root = root

    def misfits(self, value: Any, schema: Any, at: str, depth: int) -> Iterator[str]:
        """Every place where the value does not match."""
        if schema is False:
            yield f"{at}: nothing is allowed here"
        if not isinstance(schema, Mapping) or depth > _DEEPEST:
            return
        if isinstance(ref := schema.get("$ref"), str):
            yield from self.misfits(value, _pointed(ref, self._root), at, depth + 1)
        yield from _simple(value, schema, at)
        yield from self._combined(value, schema, at, depth)
        if isinstance(value, dict):
            yield from self._object(value, schema, at, depth)
        elif isinstance(value, list):
            yield from self._array(value, schema, at, depth)

    def _fits(self, value: Any, schema: Any, depth: int) -> bool:
        return next(self.misfits(value, schema, "$", depth + 1), None) is None

    def _combined(
        self, value: Any, schema: Mapping[str, Any], at: str, depth: int
    ) -> Iterator[str]:
        for one in schema.get("allOf", ()):
            yield from self.misfits(value, one, at, depth + 1)
        choices = schema.get("anyOf")
        if choices and not any(self._fits(value, one, depth) for one in choices):
            nearest = min(
                (list(self.misfits(value, one, at, depth + 1)) for one in choices), key=len
            )
            yield from nearest
        one_of = schema.get("oneOf")
        if one_of:
            fitting = sum(self._fits(value, one, depth) for one in one_of)
            if fitting != 1:
                how = "none" if not fitting else f"{fitting}"
                yield f"{at}: must match exactly one of {len(one_of)} forms, but matches {how}"
        if "not" in schema and self._fits(value, schema["not"], depth):
            yield f"{at}: matches a form that is excluded"
        if "if" in schema:
            branch = "then" if self._fits(value, schema["if"], depth) else "else"
            yield from self.misfits(value, schema.get(branch, True), at, depth + 1)

    def _object(
        self, value: dict[str, Any], schema: Mapping[str, Any], at: str, depth: int
    ) -> Iterator[str]:
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{at}: {name!r} is missing"
        for given, wanted in schema.get("dependentRequired", {}).items():
            for name in wanted:
                if given in value and name not in value:
                    yield f"{at}: {name!r} is missing, but {given!r} requires it"
        for given, more in schema.get("dependentSchemas", {}).items():
            if given in value:
                yield from self.misfits(value, more, at, depth + 1)
        known = schema.get("properties", {})
        patterns = schema.get("patternProperties", {})
        rest = schema.get("additionalProperties", True)
        for name, held in value.items():
            place = f"{at}.{name}"
            found = [known[name]] if name in known else []
            found += [one for pattern, one in patterns.items() if _matches(pattern, name)]
            if not found and rest is False:
                yield f"{at}: {name!r} is not allowed"
            for one in found or ([] if rest is False else [rest]):
                yield from self.misfits(held, one, place, depth + 1)
            if "propertyNames" in schema:
                yield from self.misfits(name, schema["propertyNames"], place, depth + 1)
        yield from _within(len(value), schema, "Properties", "members", at)

    def _array(
        self, value: list[Any], schema: Mapping[str, Any], at: str, depth: int
    ) -> Iterator[str]:
        first = schema.get("prefixItems", ())
        for index, held in enumerate(value):
            one = first[index] if index < len(first) else schema.get("items", True)
            yield from self.misfits(held, one, f"{at}[{index}]", depth + 1)
        yield from _within(len(value), schema, "Items", "items", at)
        if schema.get("uniqueItems") is True:
            written = [msgspec.json.encode(_plain(held), order="sorted") for held in value]
            if len(set(written)) < len(written):
                yield f"{at}: contains the same item twice"
        if "contains" in schema:
            count = sum(self._fits(held, schema["contains"], depth) for held in value)
            if not schema.get("minContains", 1) <= count <= schema.get("maxContains", math.inf):
                yield f"{at}: {count} items match the form that it must contain"


def _simple(value: Any, schema: Mapping[str, Any], at: str) -> Iterator[str]:
    """What can be decided from the value alone."""
    kinds = schema.get("type")
    if kinds is not None:
        allowed = [kinds] if isinstance(kinds, str) else kinds
        if not any(_TYPES.get(kind, _anything)(value) for kind in allowed):
            yield f"{at}: must be {' or '.join(map(str, allowed))}, not {_shown(value)}"
    if "const" in schema and not _equal(value, schema["const"]):
        yield f"{at}: must be {_shown(schema['const'])}, not {_shown(value)}"
    if "enum" in schema and not any(_equal(value, one) for one in schema["enum"]):
        yield f"{at}: must be one of {_shown(schema['enum'])}, not {_shown(value)}"
    if isinstance(value, str):
        yield from _within(len(value), schema, "Length", "characters", at)
        if isinstance(pattern := schema.get("pattern"), str) and not _matches(pattern, value):
            yield f"{at}: must match {pattern}, not {_shown(value)}"
    if _is_number(value):
        yield from _number(value, schema, at)


def _number(value: Any, schema: Mapping[str, Any], at: str) -> Iterator[str]:
    for name, holds, word in _BOUNDS:
        bound = schema.get(name)
        if _is_number(bound) and not holds(value, bound):
            yield f"{at}: must be {word} {bound}, not {value}"
    step = schema.get("multipleOf")
    if step is not None and _is_number(step) and step > 0:
        times = value / step
        if not math.isfinite(times) or abs(times - round(times)) > 1e-9 * max(1, abs(times)):
            yield f"{at}: must be a multiple of {step}, not {value}"


def _within(count: int, schema: Mapping[str, Any], what: str, noun: str, at: str) -> Iterator[str]:
    least, most = schema.get(f"min{what}"), schema.get(f"max{what}")
    if least is not None and count < least:
        yield f"{at}: needs at least {least} {noun}, but has {count}"
    if most is not None and count > most:
        yield f"{at}: allows at most {most} {noun}, but has {count}"


_BOUNDS: tuple[tuple[str, Callable[[Any, Any], bool], str], ...] = (
    ("minimum", lambda value, bound: value >= bound, "at least"),
    ("maximum", lambda value, bound: value <= bound, "at most"),
    ("exclusiveMinimum", lambda value, bound: value > bound, "more than"),
    ("exclusiveMaximum", lambda value, bound: value < bound, "less than"),
)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _anything(value: Any) -> bool:
    return True


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "number": _is_number,
    "integer": lambda value: _is_number(value) and value == math.floor(value),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}
TYPE_NAMES = tuple(_TYPES)
"""What `type` can be."""


def _matches(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:  # an expression that Python does not support is ignored
        return True


def _plain(value: Any) -> Any:
    """The value with integral floats as integers: 1 and 1.0 are the same in JSON."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return {k: _plain(v) for k, v in value.items()} if isinstance(value, dict) else value


def _equal(one: Any, other: Any) -> bool:
    return msgspec.json.encode(_plain(one), order="sorted") == msgspec.json.encode(
        _plain(other), order="sorted"
    )


def _shown(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
