"""A schema that is none is told: it would let every answer pass."""

from __future__ import annotations

import pytest

from mull.policy.json_schema_faults import first_fault


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ({"type": "objekt"}, "$.type: must be one of"),
        ({"type": ["string", "nul"]}, "$.type[1]: must be one of"),
        ({"type": []}, "$.type: needs at least 1"),
        ({"properties": ["name"]}, "$.properties: must be object"),
        ({"properties": {"a": {"items": {"type": "int"}}}}, "$.properties.a.items.type: must be"),
        ({"type": "object", "required": "name"}, "$.required: must be array"),
        ({"anyOf": 3}, "$.anyOf: must be array"),
        ({"minLength": -1}, "$.minLength: must be at least 0"),
        ({"items": {"$ref": "#/$defs/Gone"}}, "$ref #/$defs/Gone points to nothing"),
    ],
)
def test_a_fault_is_named_with_its_place(schema, fault):
    assert first_fault(schema).startswith(fault)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": ["string", "null"], "description": 3, "x-own": {"type": "any"}},
        {"type": "object", "properties": {"type": {"type": "string"}, "$ref": {"enum": [1]}}},
        {"$defs": {"N": {"properties": {"n": {"$ref": "#/$defs/N"}}}}, "$ref": "#/$defs/N"},
        {"minimum": 1, "exclusiveMinimum": True, "items": [{"type": "string"}]},
        {"$ref": "https://example.org/schema", "additionalProperties": False},
        {"const": {"$ref": "#/nothing", "type": "any"}},
    ],
)
def test_what_any_draft_allows_passes(schema):
    assert first_fault(schema) is None
