"""Calls of tools that take a text (Responses: `custom_tool_call`) go to every dialect and back."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answers import DIALECTS, FIXTURES, assembled, read, target_of, written
from conversations import ELSEWHERE, snapshot
from mull.dialects.registry import encode_request
from mull.dialects.serving import decode_request, write_answer
from mull.dialects.writer import About
from mull.history.log import Log
from mull.neutral.blocks import OpaqueBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.events import ToolCallDelta
from mull.neutral.messages import Message, Origin, assistant, user
from mull.neutral.request import NamedTool, RequestOptions
from mull.policy.prepare import prepare

OWN = "openai-responses"
HERE = target_of(OWN)
STREAM = FIXTURES[OWN, "free-text-call.sse"]
PATCH = msgspec.json.decode(FIXTURES[OWN, "free-text-call.json"])["output"][1]
TEXT = PATCH["input"]
OUTPUT = {"type": "custom_tool_call_output", "call_id": "call_1", "output": "done"}
TOOL = {"type": "custom", "name": "apply_patch", "format": {"type": "grammar", "syntax": "lark"}}
ASKED = {
    "model": "m",
    "input": [{"type": "message", "role": "user", "content": "patch"}, PATCH, OUTPUT],
    "tools": [TOOL],
    "tool_choice": {"type": "custom", "name": "apply_patch"},
}
texts = st.text(st.characters(codec="utf-8"), max_size=30)


def asked():
    return decode_request(OWN, msgspec.json.encode(ASKED), "/v1/responses")


def sent(dialect: str, origin: Origin | None = None):
    given, to = asked(), target_of(dialect)
    messages = [
        msgspec.structs.replace(one, origin=origin) if one.role == "assistant" else one
        for one in given.messages
    ]
    talk = RequestOptions(tools=given.tools, tool_choice=given.tool_choice)
    prepared = prepare(Log(messages), snapshot(includeInContext=True), to, talk)
    return encode_request(prepared.request, to)


def test_the_call_is_one_with_an_object():
    call, other = assembled(STREAM, HERE).tool_calls
    assert (call.id, call.name, call.input) == ("call_1", "apply_patch", {"input": TEXT})
    assert (call.arguments, other.name) == (None, "shell")
    assert assembled(STREAM, HERE).stop_reason == "tool_calls"


def test_it_is_told_piece_by_piece():
    events = [one for one in read(STREAM, HERE) if isinstance(one, ToolCallDelta)]
    pieces = [one.arguments for one in events if one.key == "ctc_1" and one.arguments]
    assert len(pieces) > 3
    assert msgspec.json.decode("".join(pieces)) == {"input": TEXT}


@pytest.mark.parametrize("end", ["", "}", '{"type":"error","message":"no"}'])
def test_one_that_broke_off_does_not_look_whole(end):
    cut = STREAM[: STREAM.index(b"custom_tool_call_input.done")].rpartition(b"event: ")[0]
    (call,) = assembled(cut + (b"data: %b\n\n" % end.encode() if end else b""), HERE).tool_calls
    assert call.input == {}
    assert call.arguments is not None
    assert call.arguments.startswith('{"input":"*** Begin')


def test_it_goes_home_as_it_came():
    body = msgspec.json.decode(sent(OWN).body)
    bare = {key: value for key, value in PATCH.items() if key not in ("id", "status")}
    assert body["input"][1:] == [bare, OUTPUT]
    assert body["tools"] == [TOOL]
    assert body["tool_choice"] == ASKED["tool_choice"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_it_crosses_with_its_result_and_its_tool(dialect):
    wire = sent(dialect, ELSEWHERE)
    back = decode_request(dialect, wire.body, wire.path, wire.headers)
    (call,) = [call for message in back.messages for call in message.tool_calls]
    assert (call.name, call.input) == ("apply_patch", {"input": TEXT})
    results = [b for m in back.messages for b in m.blocks if isinstance(b, ToolResultBlock)]
    assert [(one.call_id, one.output) for one in results] == [(call.id, "done")]
    (tool,) = back.tools
    assert tool.free_text == (dialect == OWN)
    assert tool.parameters["properties"] == {"input": {"type": "string"}}
    assert back.tool_choice == NamedTool("apply_patch")


@pytest.mark.parametrize("dialect", DIALECTS)
@given(text=texts)
def test_an_answer_of_any_dialect_calls_it_with_a_text(dialect, text):
    """A client that offered such a tool gets such a call, streamed and whole."""
    call = ToolCallBlock("c1", "apply_patch", {"input": text})
    first = write_answer(assistant(call, stop_reason="tool_calls"), dialect).body
    events = read(first, target_of(dialect))
    about = {"source": dialect, "free_text": frozenset({"apply_patch"})}
    stream = written(OWN, events, **about)
    document = write_answer(assembled(first, target_of(dialect)), OWN, About(**about)).body
    for item in (last_item(stream), msgspec.json.decode(document)["output"][0]):
        assert (item["type"], item["call_id"], item["input"]) == ("custom_tool_call", "c1", text)
    for body in (stream, document):
        (found,) = assembled(body, HERE).tool_calls
        assert found.input == {"input": text}


def last_item(stream: bytes) -> dict:
    (line,) = [line for line in stream.splitlines() if line.startswith(b'data: {"type":"response.c')
               and b'"response.completed"' in line]  # fmt: skip
    return msgspec.json.decode(line[6:])["response"]["output"][0]


def test_arguments_that_are_no_text_are_told_as_they_are():
    call = ToolCallBlock("c1", "apply_patch", {"patch": "x"})
    about = About(source="anthropic", free_text=frozenset({"apply_patch"}))
    (item,) = msgspec.json.decode(write_answer(assistant(call), OWN, about).body)["output"]
    assert item["input"] == '{"patch":"x"}'


def test_sessions_that_kept_it_whole_go_home_as_before():
    talk = [
        user("patch"),
        assistant(OpaqueBlock(PATCH), origin=HERE.origin),
        Message(role="tool", blocks=(OpaqueBlock(OUTPUT),)),
    ]
    prepared = prepare(Log(talk), snapshot(includeInContext=True), HERE)
    body = msgspec.json.decode(encode_request(prepared.request, HERE).body)
    assert [item["type"] for item in body["input"][1:]] == ["custom_tool_call", OUTPUT["type"]]
