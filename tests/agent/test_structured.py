"""Types and schemas as the form of an answer, and what is read from one."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, make_dataclass
from datetime import UTC, date, datetime
from typing import Annotated, Literal, NamedTuple, Optional, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.agent.structured import PartialAnswer, shape_of
from mull.neutral.blocks import TextBlock, ToolCallBlock
from mull.neutral.errors import LocalError, MisfitError
from mull.neutral.messages import assistant
from mull.policy.json_schema import first_misfit


class Colour(enum.Enum):
    red = "r"


class Node(msgspec.Struct):
    at: datetime
    colour: Colour
    below: Optional[Node] = None  # noqa: UP045 - looked up by name


@dataclass
class Point:
    x: int


def said(text):
    return assistant(TextBlock(text))


def test_a_type_is_asked_for_as_an_object_and_comes_back_as_itself():
    shape = shape_of(Node)
    assert shape.format.name == "Node"
    assert shape.format.schema["type"] == "object"  # no reference: endpoints refuse one there
    assert "Node" in shape.format.schema["$defs"]  # for itself
    text = '{"at": "2026-01-02T00:00:00Z", "colour": "r", "below": null}'
    node = shape.read(said(text))
    assert node == Node(datetime(2026, 1, 2, tzinfo=UTC), Colour.red)
    assert shape.plain(node) == msgspec.json.decode(text)


@pytest.mark.parametrize(
    ("kind", "value"),
    [(int, 4), (list[Point], [Point(1)]), (Literal["a", "b"], "a"), (int | None, None)],
)
def test_what_is_no_object_may_come_in_one_or_bare(kind, value):
    shape = shape_of(kind)
    bare = msgspec.json.encode(shape.plain(value)).decode()
    assert shape.format.schema["required"] == ["value"]
    assert shape.read(said(bare)) == shape.read(said(f'{{"value": {bare}}}')) == value


@pytest.mark.parametrize("text", ["", "four", "4.5", "true", '{"value": "4"}', "1e999", "[" * 9999])
def test_what_does_not_fit_is_told(text):
    with pytest.raises(MisfitError, match=r"^the answer does not match the schema: "):
        shape_of(int).read(said(text))


def test_a_checker_of_the_type_has_the_last_word():
    pydantic = pytest.importorskip("pydantic")

    class Even(pydantic.BaseModel):
        n: int

        @pydantic.field_validator("n")
        @classmethod
        def is_even(cls, n):
            assert n % 2 == 0, "is odd"
            return n

    shape = shape_of(Even)
    assert shape.read(said('{"n": 2}')).n == 2
    with pytest.raises(MisfitError, match="n: Assertion failed, is odd"):
        shape.read(said('{"n": 3}'))


def test_a_call_is_answered_by_a_result():
    shape = shape_of(Point)
    called = assistant(ToolCallBlock("c", "Point", {"x": "no"}))
    with pytest.raises(MisfitError) as misfit:
        shape.read(called)
    (result,) = shape.correction(called, misfit.value).blocks
    assert (result.call_id, result.is_error) == ("c", True)
    assert "$.x: must be integer" in result.output
    (receipt,) = shape.receipt(called).blocks
    assert (receipt.call_id, receipt.is_error) == ("c", False)
    assert shape.receipt(said("{}")) is None
    assert shape.correction(said("{}"), misfit.value).role == "user"


@pytest.mark.parametrize("kind", [object(), "int", [Point], lambda x: x, True])
def test_what_describes_no_form_is_told(kind):
    with pytest.raises(LocalError, match="cannot be a schema"):
        shape_of(kind)


class Cat(msgspec.Struct):
    lives: int


class Dog(msgspec.Struct):
    tricks: list[str]


class Sized(TypedDict, total=False):
    size: Annotated[int, msgspec.Meta(ge=1)]


class Pair(NamedTuple):
    left: int
    right: str


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Cat | Dog, '{"lives": 9}', Cat(9)),
        (Cat | Dog, '{"value": {"tricks": ["sit"]}}', Dog(["sit"])),
        (list[Cat | None], '{"value": [null, {"lives": 1}]}', [None, Cat(1)]),
        (Sized, '{"size": 2}', {"size": 2}),
        (Pair, '[1, "b"]', Pair(1, "b")),
        (dict[int, str], '{"1": "a"}', {1: "a"}),
        (int, "1.0", 1),
        (int | str, '{"value": "3"}', "3"),
        (set[str], '["a", "a"]', None),
        (Colour, '{"value": "r"}', Colour.red),
        (Sized, '{"size": 0}', None),
        (Cat | Dog, '{"lives": "nine"}', None),
    ],
)
def test_a_value_becomes_the_type(kind, text, value):
    shape = shape_of(kind)
    if value is None:
        with pytest.raises(MisfitError):
            shape.read(said(text))
    else:
        assert shape.read(said(text)) == value


def test_an_object_that_looks_like_the_one_around_it_is_found():
    schema = {"anyOf": [{"type": "object", "required": ["value"]}, {"type": "string"}]}
    shape = shape_of(schema)
    assert shape.read(said('{"value": 1}')) == {"value": 1}
    assert shape.read(said('{"value": {"value": 1}}')) == {"value": 1}


def test_constraints_of_pydantic_apply_wherever_they_stand():
    pydantic = pytest.importorskip("pydantic")

    class Strict(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(strict=True)
        day: date
        of: int = pydantic.Field(alias="from")

    Limited = make_dataclass("Limited", [("n", Annotated[int, pydantic.Field(ge=1)])])
    assert shape_of(list[Limited]).read(said('[{"n": 1}]')) == [Limited(1)]
    with pytest.raises(MisfitError, match=r"\$\[0\]\.n: must be at least 1"):
        shape_of(list[Limited]).read(said('[{"n": 0}]'))
    Told = make_dataclass("Told", [("n", Annotated[int, pydantic.Field(description="How many.")])])
    assert shape_of(Told).format.schema["properties"]["n"]["description"] == "How many."
    text = '{"day": "2026-01-02", "from": 3}'
    value = shape_of(Strict).read(said(text))
    assert (value.day, value.of) == (date(2026, 1, 2), 3)
    assert shape_of(Strict).plain(value) == msgspec.json.decode(text)


@pytest.mark.parametrize(
    "given",
    [
        {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
        {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True},
        {"name": "n", "schema": {"type": "object"}},
    ],
)
def test_what_openai_takes_as_a_format_is_a_schema_too(given):
    made = shape_of(given).format
    assert (made.schema, made.name) == ({"type": "object"}, "n")


def test_a_schema_that_is_too_deep_is_told():
    schema = {"type": "integer"}
    for _ in range(3000):
        schema = {"type": "object", "properties": {"a": schema}}
    with pytest.raises(LocalError, match="nested too deeply"):
        shape_of(schema)


def test_references_to_the_root_follow_it_into_the_object_around():
    made = shape_of({"type": "array", "items": {"$ref": "#"}}).format.schema
    assert made["properties"]["value"]["items"] == {"$ref": "#/properties/value"}
    assert first_misfit({"value": [[], [[]]]}, made) is None
    assert first_misfit({"value": [[3]]}, made) is not None


def test_only_definitions_that_are_needed_are_sent():
    assert "$defs" not in shape_of(Point).format.schema
    schema = {
        "$ref": "#/$defs/a",
        "$defs": {
            "a": {"type": "object", "properties": {"b": {"$ref": "#/$defs/b"}}},
            "b": {"type": "array", "items": {"$ref": "#/$defs/c~1d"}},
            "c/d": {"type": "integer"},
            "unused": {"type": "object"},
        },
    }
    made = shape_of(schema).format.schema
    assert made["$defs"].keys() == {"b", "c/d"}
    assert first_misfit({"b": ["x"]}, made) is not None


def test_the_correction_quotes_names_as_they_are():
    shape = shape_of({"type": "object", "required": ["userName"]})
    with pytest.raises(MisfitError) as misfit:
        shape.read(said("{}"))
    assert "The answer does not match" in shape.correction(said("{}"), misfit.value).text
    assert "'userName' is missing" in shape.correction(said("{}"), misfit.value).text


def grows(before, after):
    """Whether a partial value may become this one."""
    if isinstance(before, dict) and isinstance(after, dict):
        return all(key in after and grows(one, after[key]) for key, one in before.items())
    if isinstance(before, list) and isinstance(after, list):
        return len(before) <= len(after) and all(map(grows, before, after))
    if isinstance(before, str) and isinstance(after, str):
        return after.startswith(before)
    return before == after


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    value=st.dictionaries(st.text(), json_values, min_size=1, max_size=3) | st.lists(json_values),
    before=st.sampled_from(["", " \n", "```json\n", "```\n", "Here it is: ", "As [1] says:\n"]),
    spaced=st.booleans(),
    escaped=st.booleans(),
    size=st.integers(1, 7),
)
def test_partial_values_only_grow_and_end_as_the_value(value, before, spaced, escaped, size):
    """In a fence, among words, or alone; whatever the pieces are."""
    text = json.dumps(value, indent=1 if spaced else None, ensure_ascii=escaped)
    is_wrapped = isinstance(value, list)
    text = f'{{"value": {text}}}' if is_wrapped else text
    partial = PartialAnswer(shape_of(list if is_wrapped else dict))
    last = None
    whole = before + text
    for cut in [*range(0, len(whole), size), len(whole)]:
        shown = partial.of(assistant(TextBlock(whole[:cut]), status="interrupted"))
        again = PartialAnswer(shape_of(list if is_wrapped else dict))
        assert again.of(assistant(TextBlock(whole[:cut]), status="interrupted")) == shown
        assert last is None or grows(last, shown)
        assert shown is None or grows(shown, value)
        last = shown
    assert last == value


@pytest.mark.parametrize(
    "text", ['{"a": 1}]', '{"a"}', "{]", "[[[", '"text"', "no", "{a}", "12", '{"a": "\\ud800"}']
)
def test_a_partial_value_is_an_object_or_nothing(text):
    partial = PartialAnswer(shape_of({"type": "object"}))
    for cut in range(len(text) + 1):
        shown = partial.of(assistant(TextBlock(text[:cut]), status="interrupted"))
        assert shown is None or isinstance(shown, dict)


def test_a_title_that_no_endpoint_takes_becomes_a_name():
    assert shape_of({"type": "object", "title": "One of these / " * 9}).format.name.isascii()
    assert shape_of({"type": "object", "title": "価格"}).format.name == "answer"
