"""How an answer is brought into a form, and how a value is read from one."""

from __future__ import annotations

import pytest

from conversations import snapshot, target
from mull.history.log import Log
from mull.neutral.blocks import TextBlock, ToolCallBlock
from mull.neutral.messages import assistant, user
from mull.neutral.request import AnswerFormat, NamedTool, RequestOptions, Tool
from mull.policy.answer_format import format_way
from mull.policy.answer_value import answer_value
from mull.policy.prepare import prepare

FORM = AnswerFormat({"type": "object", "properties": {"a": {"type": "string"}}}, "form")
LOOK = Tool("look")


@pytest.mark.parametrize(
    ("facts", "options", "way"),
    [
        ({"structured_output": True}, {}, "native"),
        ({"structured_output": True}, {"tools": (LOOK,)}, "native"),
        ({"structured_output": True}, {"plain_format": True}, "prompt"),
        ({"tool_call": True, "reasoning": False}, {}, "tool"),
        ({"tool_call": True, "reasoning": False}, {"tools": (LOOK,)}, "prompt"),
        ({"tool_call": True, "reasoning": False, "forced_tools": False}, {}, "prompt"),
        ({"tool_call": True, "reasoning": True}, {}, "prompt"),
        ({"reasoning": False}, {}, "prompt"),
        ({"structured_output": False, "reasoning": False}, {}, "prompt"),
    ],
)
def test_the_way_follows_from_the_model_and_the_request(facts, options, way):
    where, wanted = target(**facts), RequestOptions(format=FORM, **options)
    assert format_way(wanted, where) == way
    made = prepare(Log([user("q")]), snapshot(), where, wanted)
    assert (made.request.format is not None) == (way == "native")
    assert (made.request.tool_choice == NamedTool("form")) == (way == "tool")
    assert ("JSON schema below" in made.request.system) == (way == "prompt")
    (note,) = (note for note in made.notes if note.about == "format")
    assert note.effective == way


OPEN = {"type": "object", "properties": {"n": {"type": "object", "additionalProperties": {}}}}


@pytest.mark.parametrize(
    ("dialect", "way"),
    [("anthropic", "prompt"), ("bedrock-converse", "prompt"), ("openai-chat", "native")],
)
def test_a_mapping_is_not_closed_where_the_endpoint_closes_objects(dialect, way):
    where = target(dialect=dialect, structured_output=True)
    assert format_way(RequestOptions(format=AnswerFormat(OPEN)), where) == way
    assert format_way(RequestOptions(format=FORM), where) == "native"


def test_what_asks_for_the_form_is_counted():
    plain, asked = RequestOptions(), RequestOptions(format=FORM)
    for facts in ({}, {"structured_output": True}, {"tool_call": True, "reasoning": False}):
        log, where = Log([user("q")]), target(**facts)
        assert (
            prepare(log, snapshot(), where, asked).tokens
            > prepare(log, snapshot(), where, plain).tokens
        )


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        ' \n{"a": 1}\n',
        '```json\n{"a": 1}\n```',
        'Sure:\n```\n{"a": 1}\n```\nThere it is.',
        'Here: {"a": 1}.',
    ],
)
def test_the_value_is_found_among_words(text):
    assert answer_value(assistant(TextBlock(text)), FORM) == {"a": 1}


@pytest.mark.parametrize("text", ["[1, 2]", "x [1, 2] y"])
def test_a_value_need_not_be_an_object(text):
    assert answer_value(assistant(TextBlock(text)), FORM) == [1, 2]


def test_the_value_may_be_the_arguments_of_a_call():
    called = assistant(TextBlock("well"), ToolCallBlock("c", "form", {"a": 1}))
    assert answer_value(called, FORM) == {"a": 1}


@pytest.mark.parametrize(
    ("text", "why"), [("", "is empty"), ("no", "is not JSON"), ('{"a": ', "is not JSON")]
)
def test_what_holds_no_value_is_told(text, why):
    with pytest.raises(ValueError, match=why):
        answer_value(assistant(TextBlock(text)), FORM)
