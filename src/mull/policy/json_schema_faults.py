"""Whether a JSON schema is one: a misspelt type would otherwise let every answer pass.

Only the keywords that `mull.policy.json_schema` reads are checked, in the forms of any draft from 4
on; what it ignores may have any form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mull.policy.json_schema import TYPE_NAMES, first_misfit, points_nowhere

__all__ = ["first_fault"]

_DATA = frozenset({"const", "enum", "default", "examples"})
"""Keywords whose values are not schemas, whatever they look like."""
_SCHEMA = {"$ref": "#"}
_SCHEMAS = {"type": "array", "items": _SCHEMA, "minItems": 1}
_NAMED = {"type": "object", "additionalProperties": _SCHEMA}
_NAMES = {"type": "array", "items": {"type": "string"}}
_NUMBER = {"type": "number"}
_COUNT = {"type": "integer", "minimum": 0}
_TYPE = {"enum": list(TYPE_NAMES)}
_META: Mapping[str, Any] = {
    "type": ["object", "boolean"],
    "properties": {
        "type": {
            "if": {"type": "array"},
            "then": {"items": _TYPE, "minItems": 1},
            "else": _TYPE,
        },
        "$ref": {"type": "string"},
        "enum": {"type": "array", "minItems": 1},
        "pattern": {"type": "string"},
        "required": _NAMES,
        "dependentRequired": {"type": "object", "additionalProperties": _NAMES},
        "items": {"if": {"type": "array"}, "else": _SCHEMA},
        **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), _SCHEMAS),
        **dict.fromkeys(("not", "if", "then", "else", "contains", "propertyNames"), _SCHEMA),
        **dict.fromkeys(
            ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions"), _NAMED
        ),
        "additionalProperties": _SCHEMA,
        **dict.fromkeys(("minimum", "maximum", "multipleOf"), _NUMBER),
        **dict.fromkeys(
            (
                f"{end}{what}"
                for end in ("min", "max")
                for what in ("Length", "Items", "Properties", "Contains")
            ),
            _COUNT,
        ),
    },
}


def first_fault(schema: Mapping[str, Any]) -> str | None:
    """The first place where it is not a schema, in words; None if it is one."""
    fault = first_misfit(schema, _META)
    if fault is not None:
        return fault
    lost = next((ref for ref in _references(schema) if points_nowhere(ref, schema)), None)
    return None if lost is None else f"$ref {lost} points to nothing"


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, list):
        for one in part:
            yield from _references(one)
    elif isinstance(part, Mapping):
        if isinstance(ref := part.get("$ref"), str):
            yield ref
        for name, one in part.items():
            if name not in _DATA:
                yield from _references(one)
