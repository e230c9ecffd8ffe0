"""Requests to the Responses API: items in order and in pairs, carriers byte for byte."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conversations import ELSEWHERE, as_taken, messages, target
from effort import tried
from mull.dialects.registry import encode_request
from mull.neutral.blocks import (
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Wire,
)
from mull.neutral.messages import Message, assistant, message_from_json, message_to_json, user
from mull.neutral.request import NamedTool, Request, Tool, WireRequest
from mull.neutral.target import Target
from mull.neutral.thinking import ThinkingPlan
from mull.neutral.usage import Usage
from openai_responses_wire import STREAMS, TARGET, WHOLE, decode, pieces, response

PLAN = ThinkingPlan("default", "responses", summary="auto")


def encode(*history: Message, at: Target = TARGET, **more: Any) -> WireRequest:
    more.setdefault("thinking", PLAN)
    return encode_request(as_taken(Request(history, **more), at), at)


def body(*history: Message, at: Target = TARGET, **more: Any) -> dict[str, Any]:
    return msgspec.json.decode(encode(*history, at=at, **more).body)


def items(*history: Message, at: Target = TARGET) -> list[dict[str, Any]]:
    return body(*history, at=at)["input"]


def notes(*history: Message) -> list[str]:
    return [note.text for note in encode(*history).notes]


def said(*blocks: Any) -> Message:
    return assistant(*blocks, origin=TARGET.origin)


SEALED = ThinkingBlock("why", "summary", encrypted="gAAAA", id="rs_1", kind="summary")
TEXT = TextBlock("Hi", wire=Wire("openai-responses", {"id": "msg_1"}))
CALL = ToolCallBlock("call_1", "look", {"at": 1}, wire=Wire("openai-responses", {"id": "fc_1"}))


def test_a_plain_request():
    wire = encode(user("Hello"), system="Be brief.", temperature=0.5)
    assert (wire.method, wire.path, wire.notes) == ("POST", "/responses", ())
    assert wire.headers == {"content-type": "application/json", "accept": "text/event-stream"}
    assert msgspec.json.decode(wire.body) == {
        "model": "thinker",
        "instructions": "Be brief.",
        "input": [
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "Hello"}],
            }
        ],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "temperature": 0.5,
        "reasoning": {"summary": "auto"},
    }


def test_a_request_for_one_document():
    wire = encode(user("Hello"), stream=False)
    assert wire.headers["accept"] == "application/json"
    assert msgspec.json.decode(wire.body)["stream"] is False


def test_the_plan_is_written_and_extra_body_comes_last():
    at = target(
        "responses",
        dialect="openai-responses",
        compat={"extra_body": {"reasoning": {"context": "all_turns"}, "include": []}},
    )
    sent = body(user("x"), at=at, thinking=ThinkingPlan("on", "responses", "high"))
    assert sent["reasoning"] == {"effort": "high", "context": "all_turns"}
    assert sent["include"] == []


def test_keeping_old_thoughts_is_asked_for_while_thinking():
    keep = {"reasoning": {"context": "all_turns"}}
    at = target("responses", dialect="openai-responses", compat={"keep_thinking": keep})
    off = ThinkingPlan("off", "responses", "none", thinks=False)
    assert body(user("x"), at=at, keep_thinking=True)["reasoning"]["context"] == "all_turns"
    assert "context" not in body(user("x"), at=at)["reasoning"]
    assert "context" not in body(user("x"), at=at, keep_thinking=True, thinking=off)["reasoning"]


def test_an_endpoint_may_have_its_own_path_and_developer_prompts():
    compat = {"path": "/v2/answers", "system_role": "developer"}
    at = target("responses", dialect="openai-responses", compat=compat)
    wire = encode(user("x"), at=at, system="Be brief.")
    sent = msgspec.json.decode(wire.body)
    assert wire.path == "/v2/answers"
    assert "instructions" not in sent
    assert [item["role"] for item in sent["input"]] == ["developer", "user"]


def test_a_model_that_does_not_reason_is_not_asked_for_reasoning():
    at = target("none", dialect="openai-responses", reasoning=False)
    assert "include" not in body(user("x"), at=at, thinking=ThinkingPlan("absent"))


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", "auto"),
        ("required", "required"),
        (NamedTool("look"), {"type": "function", "name": "look"}),
    ],
)
def test_tool_choices(choice, sent):
    assert body(user("x"), tool_choice=choice)["tool_choice"] == sent


def test_tools_are_not_strict_and_always_have_a_schema():
    schema = {"type": "object", "properties": {"at": {"type": "integer"}}}
    sent = body(user("x"), tools=(Tool("look", "Looks.", schema), Tool("wait")))["tools"]
    assert sent == [
        {
            "type": "function",
            "name": "look",
            "description": "Looks.",
            "parameters": schema,
            "strict": False,
        },
        {
            "type": "function",
            "name": "wait",
            "parameters": {"type": "object", "properties": {}},
            "strict": False,
        },
    ]


def test_the_limit_of_the_answer_is_at_least_sixteen():
    assert body(user("x"), max_tokens=4000)["max_output_tokens"] == 4000
    wire = encode(user("x"), max_tokens=5)
    assert msgspec.json.decode(wire.body)["max_output_tokens"] == 16
    assert wire.notes[0].warning


def test_a_tool_round_goes_back_in_order():
    result = Message(role="tool", blocks=(ToolResultBlock("call_1", "seen"),))
    assert items(user("q"), said(SEALED, CALL), result)[1:] == [
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "why"}],
            "encrypted_content": "gAAAA",
        },
        {
            "type": "function_call",
            "call_id": "call_1",
            "name": "look",
            "arguments": '{"at":1}',
            "id": "fc_1",
        },
        {"type": "function_call_output", "call_id": "call_1", "output": "seen"},
    ]


def test_an_answer_goes_back_as_one_message():
    (_, message) = items(said(SEALED, TEXT))
    assert message == {
        "type": "message",
        "role": "assistant",
        "id": "msg_1",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Hi", "annotations": []}],
    }


def test_parts_of_one_message_go_back_together():
    sent = items(decode(STREAMS["phases"]).message)
    assert [part["text"] for part in sent[1]["content"]] == ["One.", " Two. "]
    assert [item.get("phase") for item in sent] == ["commentary", "final_answer", None]


def test_media_and_tool_media():
    image = MediaBlock("image/png", data="QUJD")
    page = MediaBlock("application/pdf", url="https://x.example/a.pdf")
    file = MediaBlock("application/pdf", data="QUJD", name="a.pdf")
    message = Message(role="user", blocks=(TextBlock("see"), image, page, file))
    result = Message(role="tool", blocks=(ToolResultBlock("c", "shot", media=(image,)),))
    given, output = items(message, result)
    picture = {
        "type": "input_image",
        "image_url": "data:image/png;base64,QUJD",
        "detail": "auto",
    }
    assert given["content"] == [
        {"type": "input_text", "text": "see"},
        picture,
        {"type": "input_file", "file_url": "https://x.example/a.pdf"},
        {
            "type": "input_file",
            "filename": "a.pdf",
            "file_data": "data:application/pdf;base64,QUJD",
        },
    ]
    assert output["output"] == [{"type": "input_text", "text": "shot"}, picture]


def test_what_has_no_place_is_said():
    empty = Message(role="user", blocks=(TextBlock("a"), MediaBlock("image/png")))
    failed = Message(role="tool", blocks=(ToolResultBlock("c", "no", is_error=True),))
    assert notes(empty, failed) == [
        "1 attachment not sent: this API does not accept such media",
        "1 failed tool result sent as text: this API has no error flag",
    ]


def test_results_between_a_persons_words_keep_their_order():
    mixed = Message(role="user", blocks=(TextBlock("a"), ToolResultBlock("c", "r"), TextBlock("b")))
    kinds = [item["type"] for item in items(mixed)]
    assert kinds == ["message", "function_call_output", "message"]


def test_a_system_message_in_the_middle_keeps_its_place():
    note = Message(role="system", blocks=(TextBlock("now"),))
    inside = target("responses", dialect="openai-responses", compat={"system_inside": "system"})
    for at, role in ((TARGET, "user"), (inside, "system")):
        sent = items(user("a"), note, user("b"), at=at)
        assert [item["role"] for item in sent] == ["user", role, "user"]


def test_foreign_answers_are_plain_messages():
    foreign = assistant(TextBlock("Hi"), TextBlock(""), origin=ELSEWHERE)
    assert items(foreign) == [
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Hi", "annotations": []}],
        }
    ]


@pytest.mark.parametrize("origin", [None, ELSEWHERE])
def test_call_ids_that_are_too_long_are_shortened_in_pairs(origin):
    long, other = "x" * 90, "x" * 65
    call = assistant(ToolCallBlock(long, "look"), ToolCallBlock(other, "look"), origin=origin)
    results = ToolResultBlock(long, "seen"), ToolResultBlock(other, "seen")
    ids = [item["call_id"] for item in items(call, Message(role="tool", blocks=results))]
    assert ids[:2] == ids[2:]
    assert ids[0] != ids[1]
    assert [len(one) for one in ids] == [64] * 4
    short = "x" * 64
    assert items(said(ToolCallBlock(short, "look")))[0]["call_id"] == short


def test_hosted_items_travel_with_their_reasoning():
    search = OpaqueBlock({"type": "web_search_call", "id": "ws_1", "status": "completed"})
    assert items(said(SEALED, search, TEXT))[1] == search.data
    assert [item["type"] for item in items(said(search, TEXT))] == ["message"]
    assert notes(said(search, TEXT)) == [
        "1 item of hosted tools not sent: their reasoning is left out"
    ]
    counted = msgspec.structs.replace(said(search), usage=Usage(reasoning=0))
    assert items(counted) == [search.data]


def test_calls_of_other_kinds_keep_their_results():
    patch = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "p", "input": "x"}
    output = {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"}
    given = Message(role="tool", blocks=(OpaqueBlock(output),))
    assert items(said(SEALED, OpaqueBlock(patch)), given)[1:] == [patch, output]
    bare = {name: value for name, value in patch.items() if name != "id"}
    assert items(said(OpaqueBlock(patch)), given) == [bare, output]


def test_a_result_goes_nowhere_without_its_call():
    click = {"type": "computer_call", "id": "cu_1", "call_id": "c1", "action": {"type": "wait"}}
    output = OpaqueBlock({"type": "computer_call_output", "call_id": "c1", "output": {}})
    talk = said(OpaqueBlock(click), TEXT), Message(role="tool", blocks=(output,))
    assert [item["type"] for item in items(*talk)] == ["message"]
    assert notes(*talk) == ["2 items of hosted tools not sent: their reasoning is left out"]


def test_parts_that_nobody_knows_go_back_as_they_came():
    file = {"type": "input_file", "file_id": "file_1"}
    (message,) = items(Message(role="user", blocks=(TextBlock("Read."), OpaqueBlock(file))))
    assert message["content"] == [{"type": "input_text", "text": "Read."}, file]


def test_invalid_arguments_go_back_as_they_came():
    call = ToolCallBlock("c", "look", {}, '{"at": ')
    assert items(said(call))[0]["arguments"] == '{"at": '


def test_a_text_that_differs_from_its_finished_item_goes_back_as_finished():
    part = {"type": "output_text", "text": "Hello!"}
    text = TextBlock("Hello", wire=Wire("openai-responses", {"id": "m", "part": part}))
    assert items(said(text))[0]["content"] == [{**part, "annotations": []}]


def test_unknown_keys_of_a_reasoning_item_go_back():
    block = msgspec.structs.replace(SEALED, wire=Wire("openai-responses", {"item": {"mood": 3}}))
    (item, _) = items(said(block, TEXT))
    assert item["mood"] == 3
    assert item["summary"] == [{"type": "summary_text", "text": "why"}]


@given(made=pieces())
@tried(2)
def test_every_carrier_goes_back_byte_for_byte(made):
    """What is sent of an answer is what came, but for what the pairing rules leave out."""
    message = decode(msgspec.json.encode(response(made))).message
    stored = message_from_json(message_to_json(message))
    sent = items(stored)
    came = {item["id"]: item for item in response(made)["output"]}
    for item in sent:
        if "id" not in item:
            continue
        original = came[item["id"]]
        for key, value in item.items():
            if key == "content" and item["type"] == "message":
                assert [part.get("text", part.get("refusal")) for part in value] == [
                    part.get("text", part.get("refusal")) for part in original["content"]
                ]
            else:
                assert value == original[key]
    seals = [i["encrypted_content"] for i in sent if i.get("encrypted_content")]
    assert seals == _followed_seals(made)


def _followed_seals(made: list[Any]) -> list[str]:
    last = max((n for n, piece in enumerate(made) if _is_sent(made, n)), default=-1)
    found = (piece.item.get("encrypted_content") for piece in made[: last + 1])
    return [seal for seal in found if seal]


def _is_sent(made: list[Any], number: int) -> bool:
    kind = made[number].item["type"]
    if kind != "crystal_ball_call":
        return kind != "reasoning"
    before = [piece.item for piece in made[:number] if piece.item["type"] == "reasoning"]
    if not before:
        return False
    has_text = any(part["text"] for part in before[-1].get("content", ()))
    has_text = has_text or len(before[-1].get("content", ())) > 1
    return bool(before[-1].get("encrypted_content")) or has_text


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_an_encoded_answer_is_decoded_to_itself(name):
    """The items that are sent, taken for an output again, give the same blocks but for ids."""
    message = decode(WHOLE[name]).message
    sent = items(message)
    again = decode(msgspec.json.encode({"status": "completed", "output": sent})).message
    assert again.text == message.text
    assert again.tool_calls == message.tool_calls or name == "phases"


@given(history=st.lists(messages, max_size=6), shorter=st.integers(0, 6))
@settings(max_examples=60)
def test_a_longer_history_extends_the_shorter_one(history, shorter):
    whole = items(*history)
    part = items(*history[:shorter])
    assert whole[: len(part)] == part


@given(history=st.lists(messages, max_size=5))
@settings(max_examples=60)
def test_encoding_is_stable_and_never_fails(history):
    wire = encode(*history)
    assert wire.body == encode(*history).body
    for item in msgspec.json.decode(wire.body)["input"]:
        assert isinstance(item, dict)
