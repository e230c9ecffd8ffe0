"""Values against schemas: the same verdict as jsonschema's, in words that say where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import tried
from mull.policy.json_schema import first_misfit

NAMES = st.sampled_from("abc")
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 1.0, 2.0])
    | st.sampled_from(["", "a", "ab", "abc"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(["object", "array", "string", "number", "integer", "boolean", "null"])
SMALL = st.integers(0, 2)
SIMPLE = st.fixed_dictionaries(
    {},
    optional={
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=2, unique=True),
        "enum": st.lists(VALUES, min_size=1, max_size=2),
        "const": VALUES,
        "minimum": st.integers(-2, 2),
        "exclusiveMaximum": st.integers(-2, 2),
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        "minLength": SMALL,
        "maxLength": SMALL,
        "pattern": st.sampled_from(["a", "^b"]),
        "minItems": SMALL,
        "maxItems": SMALL,
        "uniqueItems": st.booleans(),
        "required": st.lists(NAMES, max_size=2, unique=True),
        "maxProperties": SMALL,
        "dependentRequired": st.just({"a": ["b"]}),
    },
)


def combined(inner):
    some = st.lists(inner | st.booleans(), min_size=1, max_size=2)
    one = inner | st.booleans()
    members = st.dictionaries(NAMES, one, max_size=2)
    more = {
        "properties": members,
        "patternProperties": st.fixed_dictionaries({}, optional={"^a": one}),
        **dict.fromkeys(("additionalProperties", "items", "contains", "propertyNames"), one),
        **dict.fromkeys(("not", "if", "then", "else"), one),
        **dict.fromkeys(("anyOf", "oneOf", "allOf", "prefixItems"), some),
    }
    return st.builds(
        lambda simple, rest: simple | rest, SIMPLE, st.fixed_dictionaries({}, optional=more)
    )


@tried(1)
@given(st.recursive(SIMPLE, combined, max_leaves=4), VALUES)
def test_the_verdict_is_that_of_jsonschema(schema, value):
    judge = pytest.importorskip("jsonschema").Draft202012Validator(schema)
    assert (first_misfit(value, schema) is None) == judge.is_valid(value)


TREE = {
    "$ref": "#/$defs/Node",
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}},
            "required": ["next"],
        }
    },
}


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ({"type": "integer"}, "x", '$: must be integer, not "x"'),
        ({"required": ["a"]}, {}, "$: 'a' is missing"),
        ({"properties": {"a": {"type": "string"}}}, {"a": 1}, "$.a: must be string, not 1"),
        ({"items": {"minimum": 2}}, [2, 1], "$[1]: must be at least 2, not 1"),
        ({"additionalProperties": False}, {"z": 1}, "$: 'z' is not allowed"),
        (TREE, {"next": {"next": {}}}, "$.next.next: 'next' is missing"),
        (TREE, {"next": {"next": None}}, None),
        ({"$ref": "https://elsewhere/x"}, 1, None),
        ({"$ref": "#/nowhere"}, 1, None),
        ({"pattern": "(?<broken"}, "x", None),
    ],
)
def test_it_says_where_and_what(schema, value, said):
    assert first_misfit(value, schema) == said


def test_a_schema_that_refers_to_itself_ends():
    assert first_misfit(1, {"$ref": "#"}) is None
