"""Twice as much takes twice as long, however an answer or a history is cut into pieces."""

import re

import pytest

from conversations import target
from growth import ends
from mull.dialects.anthropic.fold import Fold
from mull.dialects.grammar import turn_grammar
from mull.dialects.openai_chat.calls import Calls
from mull.dialects.registry import encode_request
from mull.dialects.schemas import strict_form
from mull.dialects.serving import answer_writer
from mull.dialects.sse import SseReader, parse_payload
from mull.dialects.writer import About
from mull.gateway.ids import provider_id
from mull.neutral.blocks import ToolCallBlock, ToolResultBlock
from mull.neutral.events import Finished, ToolCallDelta
from mull.neutral.messages import Message, assistant, user
from mull.neutral.request import AnswerFormat, Request
from mull.neutral.target import TurnForm
from mull.neutral.thinking import ThinkingPlan

CLAUDE = target("anthropic-budget", dialect="anthropic")


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [64, 200])
def test_a_frame_of_many_lines(end, size):
    stream = (b"data: " + b"x" * 194 + end) * 40_000 + end
    reader = SseReader()
    with ends():
        chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
        ((_, data),) = [frame for chunk in chunks for frame in reader.feed(chunk)]
    assert data.count(b"\n") == 39_999


@pytest.mark.parametrize("between", [b"", b"\n data: "])
def test_many_values_glued_together(between):
    payload = (b'{"a":1}' + between) * 150_000
    with ends():
        assert len(parse_payload(payload).values) == 150_000


@pytest.mark.parametrize("repeats_name", [False, True])
def test_a_call_in_many_pieces_without_id_and_index(repeats_name):
    calls, events = Calls(), []
    name = {"name": "f"} if repeats_name else {}
    with ends():
        calls.add([{"function": {"name": "f", "arguments": '{"a":"'}}], events)
        for _ in range(1200_000):
            calls.add([{"function": {**name, "arguments": "0123456789"}}], events)
        calls.add([{"function": {**name, "arguments": '"}'}}], events)
    assert {event.key for event in events} == {0}
    calls.add([{"function": {"name": "f", "arguments": "{}"}}], events)
    assert events[-1].key == 1


def test_many_citations_of_one_text():
    fold = Fold({"citations": []})
    with ends():
        for number in range(200_000):
            fold.add({"type": "citations_delta", "citation": number})
        assert fold.build()["citations"] == list(range(200_000))


def test_an_id_that_starts_again_in_every_turn():
    turn = [assistant(ToolCallBlock("call_0", "f")), results("call_0")]
    with ends():
        wire = encode_request(asked(*turn * 30_000), CLAUDE)
    assert b'"call_0_30000"' in wire.body


def test_many_results_in_messages_of_their_own():
    ids = [f"c{number}" for number in range(30_000)]
    calls = assistant(*(ToolCallBlock(one, "f") for one in ids))
    with ends():
        encode_request(asked(calls, *map(results, ids)), CLAUDE)


def results(call_id):
    return Message(role="tool", blocks=(ToolResultBlock(call_id, "r"),))


def asked(*messages):
    return Request((user("q"), *messages), ThinkingPlan("absent"))


@pytest.mark.parametrize(
    "dialect", ["anthropic", "bedrock-converse", "gemini", "openai-chat", "openai-responses"]
)
def test_an_answer_of_many_calls_is_written(dialect):
    writer = answer_writer(dialect, About(source="openai-chat"))
    with ends():
        for key in range(30_000):
            writer.feed(ToolCallDelta(key, None, "f", "{}"))
        written = writer.feed(Finished("tool_calls"))
    assert len(set(re.findall(rb'"(call_[0-9]+)"', written))) == 30_000


@pytest.mark.parametrize("size", [1_000, 4_000_000])
def test_a_long_id_of_a_call_that_only_looks_like_one_of_ours(size):
    with ends():
        assert provider_id("a" * size + "0") is None


def object_of(names, **more):
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}, **more}


def test_a_schema_of_many_members_in_another_order_than_they_are_demanded():
    names = [f"p{at}" for at in range(100_000)]
    with ends():
        made, strict = strict_form(object_of(names, required=names[::-1]))
    assert strict
    assert made["required"] == names


def nested(**more):
    schema = {"type": "string"}
    for _ in range(60):
        schema = {"type": ["object", "object", "null"], **{k: v(schema) for k, v in more.items()}}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        nested(properties=lambda schema: {"a": schema}),
        nested(anyOf=lambda schema: [schema]),
        object_of([f"p{at}" for at in range(20_000)]),
    ],
)
def test_the_grammar_of_a_schema_is_not_much_longer_than_the_schema(schema):
    with ends():
        made = turn_grammar(TurnForm("", "", ()), wanted=AnswerFormat(schema))
    assert len(made) < 4_000_000
