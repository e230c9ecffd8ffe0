"""Types and schemas as the form of an answer, and what is read from one."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Optional

import msgspec
import pytest

from mull.agent.structured import shape_of
from mull.neutral.blocks import TextBlock, ToolCallBlock
from mull.neutral.errors import LocalError, MisfitError
from mull.neutral.messages import assistant


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


def test_what_describes_no_form_is_told():
    with pytest.raises(LocalError, match="cannot be a schema"):
        shape_of(object())


def test_a_title_that_no_endpoint_takes_becomes_a_name():
    assert shape_of({"type": "object", "title": "One of these / " * 9}).format.name.isascii()
    assert shape_of({"type": "object", "title": "価格"}).format.name == "answer"
