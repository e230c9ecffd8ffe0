"""The form of an answer in each dialect's own field, as its SDK spells it."""

from __future__ import annotations

import json

import pytest

from conversations import target
from mull.dialects.registry import encode_request
from mull.dialects.schemas import closed, has_open_objects, is_strict, strict_form, with_known_words
from mull.dialects.serving import decode_request
from mull.neutral.messages import user
from mull.neutral.request import AnswerFormat, Request
from mull.neutral.thinking import ThinkingPlan

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
CLOSED = {**SCHEMA, "additionalProperties": False}
FORM = AnswerFormat(SCHEMA, "form")
PLAN = ThinkingPlan("off", "none")
DIALECTS = ("openai-chat", "openai-responses", "anthropic", "gemini", "bedrock-converse")


def body(dialect, form=FORM, plan=PLAN):
    request = Request(messages=(user("q"),), thinking=plan, format=form, max_tokens=100)
    return json.loads(encode_request(request, target(dialect=dialect)).body)


def test_chat_completions():
    held = {"name": "form", "schema": CLOSED, "strict": True}
    assert body("openai-chat")["response_format"] == {"type": "json_schema", "json_schema": held}


def test_responses():
    held = {"type": "json_schema", "name": "form", "schema": CLOSED, "strict": True}
    assert body("openai-responses")["text"] == {"format": held}


def test_messages_beside_an_effort():
    plan = ThinkingPlan("on", "anthropic-adaptive", effort="high")
    assert body("anthropic", plan=plan)["output_config"] == {
        "format": {"type": "json_schema", "schema": CLOSED},
        "effort": "high",
    }


def test_generate_content():
    config = body("gemini")["generationConfig"]
    assert config["responseMimeType"] == "application/json"
    assert config["responseJsonSchema"] == SCHEMA


def test_converse():
    form = body("bedrock-converse")["outputConfig"]["textFormat"]
    assert form["type"] == "json_schema"
    assert json.loads(form["structure"]["jsonSchema"]["schema"]) == CLOSED
    assert form["structure"]["jsonSchema"]["name"] == "form"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_written_is_read_back(dialect):
    request = Request(messages=(user("q"),), thinking=PLAN, format=FORM, max_tokens=100)
    wire = encode_request(request, target(dialect=dialect))
    read = decode_request(dialect, wire.body, wire.path, wire.headers)
    assert closed(read.format.schema) == CLOSED


@pytest.mark.parametrize("dialect", DIALECTS)
def test_without_one_nothing_is_said(dialect):
    said = json.dumps(body(dialect, None))
    assert "schema" not in said.lower()
    assert "json" not in said


NESTED = {
    "type": "object",
    "properties": {
        "rows": {"type": "array", "items": {"$ref": "#/$defs/Row"}, "minItems": 3},
        "when": {"type": "string", "format": "date-time"},
        "code": {"type": "string", "pattern": "^x", "description": "A code."},
        "any": {"oneOf": [{"type": "string"}, {"type": "integer", "minimum": 1}]},
    },
    "required": ["rows"],
    "$defs": {"Row": {"type": "object", "properties": {"n": {"type": "number"}}}},
}


def test_objects_are_closed_wherever_they_stand():
    made = closed(NESTED)
    assert made["additionalProperties"] is False
    assert made["$defs"]["Row"]["additionalProperties"] is False
    assert "additionalProperties" not in NESTED
    assert closed({"type": "object", "additionalProperties": True})["additionalProperties"] is True


@pytest.mark.parametrize(
    ("schema", "is_open"),
    [
        (SCHEMA, False),
        (NESTED, False),
        ({"type": "array", "items": {"type": "object"}}, True),
        ({**SCHEMA, "additionalProperties": True}, True),
        ({**SCHEMA, "additionalProperties": {"type": "string"}}, True),
        ({"patternProperties": {"^a": {}}}, True),
        ({"type": "object", "additionalProperties": False}, False),
    ],
)
def test_objects_that_may_have_any_members_are_found(schema, is_open):
    assert has_open_objects(schema) is is_open


def test_strict_is_what_says_nothing_that_strict_mode_refuses():
    assert is_strict(CLOSED)
    assert not is_strict(SCHEMA)  # open
    assert not is_strict(closed(NESTED))  # members that may be left out
    assert not is_strict({**CLOSED, "properties": {"a": {"oneOf": []}}})
    assert not is_strict({**CLOSED, "properties": {"a": {"default": 1}}})
    assert not is_strict({**CLOSED, "properties": {"a": True}})
    assert not is_strict({**CLOSED, "properties": [None]})
    assert not is_strict({**CLOSED, "required": [["a"]]})
    assert not is_strict({**CLOSED, "required": ["b", *CLOSED["properties"]]})
    assert not is_strict({**CLOSED, "properties": {"a": {"type": ["object", "null"]}}})
    assert not is_strict({**CLOSED, "properties": {"a": {"type": "array", "items": False}}})
    assert not is_strict({**CLOSED, "properties": {"a": {"description": "Anything."}}})


def test_what_claude_does_not_take_is_said_in_words():
    made = with_known_words(NESTED)
    rows, code, some = (made["properties"][name] for name in ("rows", "code", "any"))
    assert rows == {
        "type": "array",
        "items": {"$ref": "#/$defs/Row"},
        "description": '{"minItems":3}',
    }
    assert code["description"] == 'A code.\n\n{"pattern":"^x"}'
    assert some == {
        "anyOf": [{"type": "string"}, {"type": "integer", "description": '{"minimum":1}'}]
    }
    assert made["properties"]["when"]["format"] == "date-time"


LOOSE = {
    "type": "object",
    "properties": {
        "a": {"type": "string"},
        "b": {"type": "integer", "default": 3, "description": "How many."},
        "c": {"anyOf": [{"$ref": "#/$defs/C"}, {"type": "null"}], "default": None},
        "d": {"$ref": "#/$defs/C", "description": "Another."},
        "e": {"enum": ["x", 1]},
        "f": {"oneOf": [{"const": "y"}, {"type": "null"}], "discriminator": {}},
    },
    "required": ["a", "d", "e", "f"],
    "$defs": {"C": {"type": "object", "properties": {}, "additionalProperties": False}},
}


def test_strict_mode_gets_what_can_be_demanded():
    made, strict = strict_form(LOOSE)
    assert strict
    assert made["required"] == ["a", "b", "c", "d", "e", "f"]
    assert made["properties"] == {
        "a": {"type": "string"},
        "b": {"type": "integer", "description": "How many.\n\nDefault: 3"},
        "c": {"anyOf": [{"$ref": "#/$defs/C"}, {"type": "null"}]},
        "d": {"description": "Another.", "anyOf": [{"$ref": "#/$defs/C"}]},
        "e": {"type": ["integer", "string"], "enum": ["x", 1]},
        "f": {"anyOf": [{"type": "string", "const": "y"}, {"type": "null"}]},
    }
    assert LOOSE["required"] == ["a", "d", "e", "f"]


@pytest.mark.parametrize(
    "change",
    [
        {"g": {"type": "string"}},  # nothing to say for who has nothing to say
        {"g": {"default": 1}},  # of any type
        {"g": {"type": "object", "additionalProperties": {"type": "string"}, "default": {}}},
    ],
)
def test_what_strict_mode_refuses_is_left_as_it_is(change):
    schema = {**LOOSE, "properties": {**LOOSE["properties"], **change}}
    assert strict_form(schema) == (closed(schema), False)


def test_a_client_that_says_strict_itself_is_taken_at_its_word():
    for strict in (True, False):
        made = body("openai-chat", AnswerFormat(LOOSE, "form", strict))["response_format"]
        assert made["json_schema"]["strict"] is strict
        assert made["json_schema"]["schema"] == closed(LOOSE)
