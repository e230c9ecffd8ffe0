"""JSON schemas for endpoints that enforce them.

Each change yields a schema whose values all match the original, or describes in words what the
endpoint cannot enforce: the answer is validated against the original in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

__all__ = ["FORMAT_NAME", "closed", "has_open_objects", "is_strict", "with_known_words"]

FORMAT_NAME = "answer"
"""The name of a format without one."""
_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = (
    "items",
    "additionalProperties",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "propertyNames",
)
_KNOWN = frozenset(
    "type properties required additionalProperties items anyOf allOf enum const description title"
    " $ref $defs definitions format default".split()
)
_FORMATS = frozenset("date-time time date duration email hostname uri ipv4 ipv6 uuid".split())
_NOT_STRICT = frozenset(
    "allOf oneOf not if then else patternProperties propertyNames dependentRequired"
    " dependentSchemas contains prefixItems uniqueItems minProperties maxProperties default".split()
)


def _each(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """The schema with every nested schema changed, and then itself."""
    if not isinstance(schema, Mapping):
        return schema
    made = dict(schema)
    for name in _MAPS:
        if isinstance(held := made.get(name), Mapping):
            made[name] = {key: _each(one, change) for key, one in held.items()}
    for name in _LISTS:
        if isinstance(held := made.get(name), list):
            made[name] = [_each(one, change) for one in held]
    for name in _SINGLE:
        if isinstance(held := made.get(name), Mapping):
            made[name] = _each(held, change)
    return change(made)


def closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with objects that allow no members but those they name."""

    def close(one: dict[str, Any]) -> dict[str, Any]:
        if isinstance(one.get("properties"), dict) and "additionalProperties" not in one:
            one["additionalProperties"] = False
        return one

    made: dict[str, Any] = _each(schema, close)
    return made


def has_open_objects(schema: Mapping[str, Any]) -> bool:
    """Whether some object may have unnamed members, as a mapping has."""
    found: list[bool] = []

    def look(one: dict[str, Any]) -> dict[str, Any]:
        rest = one.get("additionalProperties", not one.get("properties"))
        is_object = one.get("type") == "object" or "properties" in one
        found.append(bool(one.get("patternProperties")) or (is_object and rest is not False))
        return one

    _each(schema, look)
    return any(found)


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Whether OpenAI's strict mode accepts the schema: every object is closed, every member
    required, and no unsupported keyword is used.
    """
    found: list[bool] = []

    def look(one: dict[str, Any]) -> dict[str, Any]:
        is_object = one.get("type") == "object" or "properties" in one
        members = one.get("properties", {})
        named = set(one.get("required", ())) == set(members)
        is_closed = one.get("additionalProperties") is False
        found.append(not (is_object and not (named and is_closed)) and _NOT_STRICT.isdisjoint(one))
        return one

    _each(schema, look)
    return all(found)


def with_known_words(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema in the keywords that Claude's endpoints accept: the rest goes into
    descriptions.
    """

    def tell(one: dict[str, Any]) -> dict[str, Any]:
        if "oneOf" in one and "anyOf" not in one:
            one["anyOf"] = one.pop("oneOf")
        told = {name: one.pop(name) for name in [*one] if not _is_known(name, one[name])}
        if one.get("type") == "object":
            one["additionalProperties"] = False
        if told:
            said = msgspec.json.encode(told).decode()
            one["description"] = f"{one['description']}\n\n{said}" if "description" in one else said
        return one

    made: dict[str, Any] = _each(closed(schema), tell)
    return made


def _is_known(name: str, value: Any) -> bool:
    if name == "minItems":
        return value in (0, 1)
    return name in _KNOWN and (name != "format" or value in _FORMATS)
