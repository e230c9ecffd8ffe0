"""JSON schemas for endpoints that enforce them.

Each change yields a schema whose values all match the original, or describes in words what the
endpoint cannot enforce: the answer is validated against the original in any case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

__all__ = [
    "FORMAT_NAME",
    "closed",
    "has_open_objects",
    "is_strict",
    "json_schema",
    "moved",
    "pruned",
    "strict_form",
    "with_known_words",
]

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
_DEFINITIONS = ("$defs", "definitions")
_COUNTS = frozenset("minItems maxItems minLength maxLength minProperties maxProperties".split())
_JSON_WORDS = {
    "additional_properties": "additionalProperties",
    "any_of": "anyOf",
    "defs": "$defs",
    "max_items": "maxItems",
    "max_length": "maxLength",
    "max_properties": "maxProperties",
    "min_items": "minItems",
    "min_length": "minLength",
    "min_properties": "minProperties",
    "prefix_items": "prefixItems",
    "property_ordering": "propertyOrdering",
    "ref": "$ref",
}
"""Google's other spellings of keywords. Counts may be texts there."""
_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
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


def _members(one: Mapping[str, Any]) -> Mapping[str, Any]:
    """The members of an object; none if its client wrote something else there."""
    held = one.get("properties")
    return held if isinstance(held, Mapping) else {}


def _listed(one: Mapping[str, Any], key: str) -> list[Any]:
    """A list in a schema; empty if its client wrote something else there."""
    held = one.get(key)
    return held if isinstance(held, list) else []


def _required(one: Mapping[str, Any]) -> set[str]:
    """The names of the members that an object must have."""
    return set(map(str, _listed(one, "required")))


def json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema in the form of Google's API, which is a variant of OpenAPI's, as JSON schema. One
    that is JSON schema already stays as it is."""
    made: dict[str, Any] = {}
    for given, value in schema.items():
        name = _JSON_WORDS.get(given, given)
        if name in _MAPS and isinstance(value, Mapping):
            made[name] = {key: _json_schema(one) for key, one in value.items()}
        elif name in _LISTS and isinstance(value, list):
            made[name] = [_json_schema(one) for one in value]
        elif name in _SINGLE:
            made[name] = _json_schema(value)
        elif name in _COUNTS and isinstance(value, str) and value.isdigit():
            made[name] = int(value)
        elif name != "propertyOrdering":
            made[name] = value
    kind = made.get("type")
    if isinstance(kind, str) and kind.isupper():
        made["type"] = kind.lower()
    return _nullable(made) if made.pop("nullable", None) is True else made


def _json_schema(one: Any) -> Any:
    return json_schema(one) if isinstance(one, Mapping) else one


def _nullable(one: dict[str, Any]) -> dict[str, Any]:
    """A schema that null matches too."""
    if isinstance(one.get("type"), str):
        one["type"] = [one["type"], "null"]
        if isinstance(one.get("enum"), list) and None not in one["enum"]:
            one["enum"] = [*one["enum"], None]
    elif isinstance(one.get("anyOf"), list):
        one["anyOf"] = [*one["anyOf"], {"type": "null"}]
    return one


def moved(schema: Mapping[str, Any], to: str) -> dict[str, Any]:
    """The schema whose root has moved to this place: what refers to the root, or to a part of it
    that is not among the definitions, refers to that place.
    """

    def point(one: dict[str, Any]) -> dict[str, Any]:
        ref = one.get("$ref")
        if isinstance(ref, str) and re.match(r"#(?!/(?:\$defs|definitions)/)", ref):
            one["$ref"] = to + ref[1:]
        return one

    made: dict[str, Any] = _each(schema, point)
    return made


def pruned(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with only the definitions that it refers to."""
    body = {key: value for key, value in schema.items() if key not in _DEFINITIONS}
    needed: set[tuple[str, str]] = set()
    waiting: list[Any] = [body]

    def look(one: dict[str, Any]) -> dict[str, Any]:
        parts = str(one.get("$ref", "")).split("/")
        if parts[0] == "#" and len(parts) > 2 and parts[1] in _DEFINITIONS:
            place = parts[1], parts[2].replace("~1", "/").replace("~0", "~")
            if place not in needed:
                needed.add(place)
                waiting.append(schema.get(place[0], {}).get(place[1]))
        return one

    while waiting:
        _each(waiting.pop(), look)
    for key in _DEFINITIONS:
        held = {name: one for name, one in schema.get(key, {}).items() if (key, name) in needed}
        body |= {key: held} if held else {}
    return body


def closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with objects that allow no members but those they name."""

    def close(one: dict[str, Any]) -> dict[str, Any]:
        if isinstance(one.get("properties"), dict) and "additionalProperties" not in one:
            one["additionalProperties"] = False
        return one

    made: dict[str, Any] = _each(schema, close)
    return made


def strict_form(schema: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """The schema for OpenAI's endpoints, and whether their strict mode accepts it.

    Strict mode requires every member. One that may be omitted is therefore requested too if it has
    a default or may be null, so that the model has something to say.
    """
    shut = closed(schema)
    strict: dict[str, Any] = _each(shut, _demand)
    return (strict, True) if is_strict(strict) else (shut, False)


def _demand(one: dict[str, Any]) -> dict[str, Any]:
    """One schema as strict mode wants it, as far as that only narrows it."""
    members, required = _members(one), _required(one)
    one = _typed(one)
    if members:
        wanted = [name for name in members if name in required or _can_be_demanded(members[name])]
        one["required"] = wanted
        one["properties"] = {name: _without_default(held) for name, held in members.items()}
    if "oneOf" in one and "anyOf" not in one:
        one["anyOf"] = one.pop("oneOf")
        one.pop("discriminator", None)
    if "$ref" in one and len(one) > 1:  # nothing may stand beside a reference
        one["anyOf"] = [{"$ref": one.pop("$ref")}]
    return one


def _typed(one: dict[str, Any]) -> dict[str, Any]:
    """With the type of its listed values, which strict mode wants to be named."""
    values = [one["const"]] if "const" in one else one.get("enum")
    if "type" in one or not isinstance(values, list) or not values:
        return one
    found = {_TYPES.get(type(value), "") for value in values}
    return {"type": sorted(found) if len(found) > 1 else found.pop(), **one} if all(found) else one


def _can_be_demanded(member: Any) -> bool:
    if not isinstance(member, Mapping):
        return False
    kinds = [member, *_listed(member, "anyOf")]
    return "default" in member or any(_may_be_null(one) for one in kinds)


def _may_be_null(one: Any) -> bool:
    kind = one.get("type") if isinstance(one, Mapping) else None
    return kind == "null" or (isinstance(kind, list) and "null" in kind)


def _without_default(member: Any) -> Any:
    """A member whose default is described in words, except null, which explains itself."""
    if not isinstance(member, Mapping) or "default" not in member:
        return member
    rest = {key: value for key, value in member.items() if key != "default"}
    default = member["default"]
    if default is None:
        return rest
    said = f"Default: {msgspec.json.encode(default).decode()}"
    rest["description"] = f"{rest['description']}\n\n{said}" if "description" in rest else said
    return rest


def has_open_objects(schema: Mapping[str, Any]) -> bool:
    """Whether some object may have unnamed members, as a mapping has."""
    found: list[bool] = []

    def look(one: dict[str, Any]) -> dict[str, Any]:
        rest = one.get("additionalProperties", not one.get("properties"))
        found.append(bool(one.get("patternProperties")) or (_is_object(one) and rest is not False))
        return one

    _each(schema, look)
    return any(found)


def _is_object(one: Mapping[str, Any]) -> bool:
    kind = one.get("type")
    return kind == "object" or "properties" in one or (isinstance(kind, list) and "object" in kind)


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Whether OpenAI's strict mode accepts the schema: every object is closed, every member
    required, and no unsupported keyword is used.
    """
    found: list[bool] = []

    def look(one: dict[str, Any]) -> dict[str, Any]:
        members = _members(one)
        is_closed = one.get("additionalProperties") is False
        is_whole = is_closed and members.keys() == _required(one)
        found.append(
            not one.keys().isdisjoint(("type", "anyOf", "$ref"))
            and ("$ref" not in one or len(one) == 1)
            and (is_whole or not _is_object(one))
            and all(isinstance(held, Mapping) for held in (*members.values(), one.get("items", {})))
            and _NOT_STRICT.isdisjoint(one)
        )
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
    return name in _KNOWN and (name != "format" or str(value) in _FORMATS)
