"""Whatever a model wrote into a tool call, the next request is one that every provider takes."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import snapshot, target
from effort import tried
from mull.dialects.registry import encode_request
from mull.dialects.traits import TRAITS
from mull.history.log import Entry, Log
from mull.neutral.assemble import assemble
from mull.neutral.blocks import TextBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.events import Failed, Finished, TextDelta, ToolCallDelta
from mull.neutral.messages import Message, assistant, message_from_json, message_to_json, user
from mull.neutral.request import NamedTool, RequestOptions, Tool
from mull.policy.failure import Failure
from mull.policy.heal.healing import heal
from mull.policy.prepare import prepare
from mull.policy.view.calls import MALFORMED, _wire_name, names_on_wire, wire_name
from mull.policy.view.repair import NO_OBJECT, NO_RESULT
from mull.store.sessions.records import decode_record, encode_record

DIALECTS = sorted(TRAITS)
NAMES = {
    "openai-chat": r"[a-zA-Z0-9_-]{1,64}",
    "openai-responses": r"[a-zA-Z0-9_-]{1,64}",
    "anthropic": r"[a-zA-Z0-9_-]{1,128}",
    "gemini": r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}",
    "bedrock-converse": r"[a-zA-Z0-9_-]{1,64}",
}
"""The patterns as the providers publish them."""
ODD_NAMES = [
    "", "read file", "functions.read", "read<|channel|>commentary", "a\0b", "größe", "x" * 300,
    "\ufffd", "1st", "-", "_", "..", "read\n", " read", "日本", "tool_", "a" * 64, "a" * 65,
]  # fmt: skip
ODD_ARGUMENTS = [
    "{", '{"path": "a', "NaN", "[1]", "null", '"text"', "7", '{"a":1}{"b":2}', "```json\n{}\n```",
    "{'a': 1}", '{"a": NaN}', '{"a": 1e999}', '{"a":"\\ud800"}', "\ufeff{}", '{"a":1,}', "   ", "",
    '{"a": 1}', "{}", '{"a":' * 500 + "1" + "}" * 500, '{"n": 123456789012345678901234567890}',
]  # fmt: skip


def refuse(word):
    raise ValueError(f"{word} is no JSON")


def is_object(text):
    return isinstance(json.loads(text, parse_constant=refuse), dict)


def chat_calls(body):
    for message in body["messages"]:
        for call in message.get("tool_calls", ()):
            function = call["function"]
            yield call["id"], function["name"], is_object(function["arguments"])
        if message["role"] == "tool":
            yield message["tool_call_id"]


def responses_calls(body):
    for item in body["input"]:
        if item["type"] == "function_call":
            yield item["call_id"], item["name"], is_object(item["arguments"])
        elif item["type"] == "function_call_output":
            yield item["call_id"]


def anthropic_calls(body):
    for block in (block for message in body["messages"] for block in message["content"]):
        if block["type"] == "tool_use":
            yield block["id"], block["name"], isinstance(block["input"], dict)
        elif block["type"] == "tool_result":
            yield block["tool_use_id"]


def bedrock_calls(body):
    for block in (block for message in body["messages"] for block in message["content"]):
        if call := block.get("toolUse"):
            yield call["toolUseId"], call["name"], isinstance(call["input"], dict)
        elif result := block.get("toolResult"):
            yield result["toolUseId"]


def gemini_calls(body):
    for part in (part for content in body["contents"] for part in content["parts"]):
        if call := part.get("functionCall"):
            yield call["name"], call["name"], isinstance(call["args"], dict)
        elif result := part.get("functionResponse"):
            yield result["name"]


CALLS = {
    "openai-chat": chat_calls,
    "openai-responses": responses_calls,
    "anthropic": anthropic_calls,
    "bedrock-converse": bedrock_calls,
    "gemini": gemini_calls,
}


def calls_of(dialect, body):
    """The calls of a request as (id, name, whether its input is an object), and their results."""
    found = [*CALLS[dialect](body)]
    calls = [one for one in found if isinstance(one, tuple)]
    return calls, [one for one in found if isinstance(one, str)]


def judge(dialect, body):
    calls, results = calls_of(dialect, body)
    for _, name, takes in calls:
        assert re.fullmatch(NAMES[dialect], name), name
        assert takes
    assert results == [call_id for call_id, _, _ in calls]
    return calls


def answered(*calls, end=None, text="", **more):
    """An answer that was read from the wire, stored and read again."""
    events = [TextDelta(text)] if text else []
    events += [ToolCallDelta(n, f"call_{n}", name, said) for n, (name, said) in enumerate(calls)]
    message = assemble([*events, end or Finished("tool_calls")], **more)
    return message_from_json(message_to_json(message))


def results_of(message, which=None):
    given = [ToolResultBlock(call.id, "out") for call in message.tool_calls[:which]]
    return [Message(role="tool", blocks=tuple(given))] if given else []


def request(messages, dialect="openai-chat", **options):
    known = target(dialect=dialect)
    prepared = prepare(Log(messages), snapshot(), known, RequestOptions(**options))
    return prepared, json.loads(encode_request(prepared.request, known).body)


names = st.one_of(st.sampled_from(ODD_NAMES), st.text(max_size=80))
arguments = st.one_of(
    st.sampled_from(ODD_ARGUMENTS),
    st.text(max_size=20),
    st.recursive(
        st.one_of(st.none(), st.integers(), st.text(max_size=5)),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=5,
    ).map(json.dumps),
)
endings = st.sampled_from(
    [
        Finished("tool_calls"),
        Finished("length"),
        Finished("content_filter"),
        Failed("cut", "network", "interrupted"),
    ]
)


@tried(2)
@given(
    st.sampled_from(DIALECTS),
    st.sampled_from(DIALECTS),
    st.lists(st.tuples(names, arguments), min_size=1, max_size=3),
    endings,
    st.integers(0, 3),
    st.lists(names, max_size=4, unique=True),
)
def test_no_call_makes_a_request_that_is_refused(wrote, reads, calls, end, done, tools):
    message = answered(*calls, end=end, text="hm", origin=target(dialect=wrote).origin)
    stored = message_to_json(message)
    talk = [user("q"), message, *results_of(message, done), user("go on")]
    choice = NamedTool(tools[0]) if tools else None
    _, body = request(talk, reads, tools=tuple(map(Tool, tools)), tool_choice=choice)
    judge(reads, body)
    assert message_to_json(message) == stored


@pytest.mark.sweep
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", [*filter(None, ODD_NAMES)])
def test_names_of_tools_are_taken_by_every_provider(dialect, name):
    options = {"tools": (Tool(name), Tool("read")), "tool_choice": NamedTool(name)}
    message = answered((name, "{}"))
    prepared, body = request([user("q"), message, *results_of(message)], dialect, **options)
    (called,) = judge(dialect, body)
    first, second = (tool.name for tool in prepared.request.tools)
    assert first == called[1] == prepared.request.tool_choice.name
    assert re.fullmatch(NAMES[dialect], first)
    assert (first == name) == (wire_name(name, dialect) == name)
    assert second == "read"
    if first != name:
        told = [note.about for note in prepared.notes if note.kind != "outcome"]
        assert told == ["history", "tools"]


def test_names_that_would_become_one_stay_apart():
    odd = ["read file", "read.file", "read_file", "read\tfile", "größe", "gröẞe"]
    odd.append(wire_name("read file", "openai-chat"))
    renamed = names_on_wire(odd, "openai-chat")
    sent = [renamed.get(name, name) for name in odd]
    assert len(set(sent)) == len(odd)
    assert renamed.keys() == {"read file", "read.file", "read\tfile", "größe", "gröẞe"}
    message = answered(*((name, "{}") for name in odd))
    tools = tuple(map(Tool, odd))
    _, body = request([user("q"), message, *results_of(message)], tools=tools)
    assert [call[1] for call in judge("openai-chat", body)] == sent
    assert [tool["function"]["name"] for tool in body["tools"]] == sent


def test_a_long_name_is_not_cached():
    _wire_name.cache_clear()
    names = [wire_name(name * 150, "anthropic") for name in ("a", "ab", "ab")]
    assert names[1] == names[2] == f"{'ab' * 25}_{names[1][-8:]}"
    assert _wire_name.cache_info().currsize == 1


def test_a_faultless_call_goes_as_it_came():
    message = answered(("read", '{"path":  "a"}'))
    prepared, body = request([user("q"), message, *results_of(message)])
    assert body["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"path":  "a"}'
    assert prepared.request.messages[1] is message
    assert [note.kind for note in prepared.notes] == ["outcome"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_model_sees_what_it_wrote_and_the_user_is_told(dialect):
    message = answered(("read", "{'path': 1}"))
    (stored,) = message.tool_calls
    assert stored == ToolCallBlock("call_0", "read", {}, "{'path': 1}")
    prepared, body = request([user("q"), message, user("go on")], dialect)
    assert MALFORMED in json.dumps(body)
    assert "{'path': 1}" in json.dumps(body)
    assert NO_OBJECT in json.dumps(body)
    told = [note.text for note in prepared.notes if note.warning]
    assert "1 tool call sent with the arguments as text: they are not a JSON object" in told


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("said", ["", "{", '{"path": "src/ma'])
def test_a_call_that_the_token_limit_cut_is_not_sent(dialect, said):
    whole = answered(("list", '{"a":1}'), ("read", said), end=Finished("length"), text="I look")
    assert whole.status == "truncated"
    prepared, body = request([user("q"), whole, user("go on")], dialect)
    assert [call[1] for call in judge(dialect, body)] == ["list"]
    assert NO_RESULT in json.dumps(body)
    told = [note.text for note in prepared.notes if note.warning]
    assert "1 tool call cut at the token limit not sent" in told
    alone = answered(("read", said), end=Finished("length"))
    _, body = request([user("q"), alone, user("go on")], dialect)
    assert judge(dialect, body) == []


def test_a_call_at_the_token_limit_that_was_answered_stays():
    message = answered(("read", "{"), end=Finished("length"))
    _, body = request([user("q"), message, *results_of(message), user("go on")])
    assert len(judge("openai-chat", body)) == 1


POISONED = b"""{"role":"assistant","status":"complete","stopReason":"tool_calls","blocks":[
 {"type":"tool_call","id":"c1","name":"read file","arguments":"{\\"path\\": \\"a"},
 {"type":"tool_call","id":"c2","name":"","arguments":"NaN","extra":{"function":"odd","id":7}}]}"""
"""An answer as earlier versions stored it."""


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_session_that_an_earlier_version_stored_recovers(dialect):
    plain = encode_record(Entry(assistant(TextBlock("x")), 1.0))
    stored = plain.replace(message_to_json(assistant(TextBlock("x"))), POISONED)
    message = decode_record(stored, "s", 0).message
    assert [call.name for call in message.tool_calls] == ["read file", ""]
    _, body = request([user("q"), message, *results_of(message), user("go on")], dialect)
    assert len(judge(dialect, body)) == 2


REFUSALS = [
    Failure("Failed to parse tool call arguments as JSON: [json.exception.parse_error.101]", 500),
    Failure(
        "Invalid 'messages[1].tool_calls[0].function.name': string does not match pattern.", 400
    ),
    Failure("Invalid 'input[2].name': string does not match pattern. Expected a string", 400),
    Failure("messages.1.content.0.tool_use.name: String should match pattern '^[a-zA-Z]+$'", 400),
    Failure("messages.1.content.0.tool_use.input: Input should be a valid dictionary", 400),
    Failure("Invalid function name. Must start with a letter or an underscore.", 400),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda one: one.text[:30])
def test_a_refusal_of_a_call_is_healed(refusal):
    message = answered(("read-file", '{"path":  "a"}'))
    prepared, _ = request([user("q"), message, *results_of(message)])
    healed = heal(prepared, refusal)
    (call,) = healed.request.messages[1].tool_calls
    assert call == ToolCallBlock("call_0", "read_file", {"path": "a"})
    assert healed.change.startswith("tool calls sent in their simplest form")


def test_a_call_that_is_plain_already_is_told_in_words():
    message = answered(("read", '{"path":"a"}'), text="I look.")
    prepared, _ = request([user("q"), message, *results_of(message)])
    healed = heal(prepared, REFUSALS[0])
    assert [one.role for one in healed.request.messages] == ["user", "assistant", "user"]
    assert healed.request.messages[1].text == 'I look.\n\n(Called read with {"path":"a"})'
    assert healed.request.messages[2].blocks == (TextBlock("(Result of read)\nout"),)


def test_a_refusal_of_something_else_changes_no_calls():
    message = answered(("read-file", "{}"))
    prepared, _ = request([user("q"), message, *results_of(message)])
    assert heal(prepared, Failure("tool_choice is required", 400)) is None
