"""Requests in the shape of Chat Completions, byte for byte where an endpoint checks."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import as_taken, listed, target, wired
from mull.dialects.openai_chat.encode import encode_request
from mull.neutral.blocks import (
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Wire,
)
from mull.neutral.messages import Message, assistant, user
from mull.neutral.request import NamedTool, Request, Tool
from mull.neutral.target import Target
from mull.neutral.thinking import ThinkingPlan
from openai_chat_wire import answers, decode, render_stream

ON = ThinkingPlan("on", "openai-effort", effort="high")
OFF = ThinkingPlan("off", "thinking-type", thinks=False)
LEFT = ThinkingPlan("absent")
SILENT = ThinkingPlan("absent", thinks=False)


def encode(*messages: Message, to: Target | None = None, **options: Any):
    to = to or target()
    asked = Request(messages, options.pop("thinking", ON), **options)
    made = encode_request(as_taken(asked, to), to)
    return msgspec.json.decode(made.body), made


def result(call_id: str = "c", output: str = "out", **more: Any) -> Message:
    return Message(role="tool", blocks=(ToolResultBlock(call_id, output, **more),))


def test_a_plain_request():
    body, made = encode(user("Hi"), system="Be brief.")
    assert body == {
        "model": "thinker",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "reasoning_effort": "high",
    }
    assert (made.method, made.path, made.notes) == ("POST", "/chat/completions", ())
    assert made.headers == {"content-type": "application/json", "accept": "text/event-stream"}


def test_the_row_names_roles_limits_path_and_more():
    row = target(
        compat={
            "system_role": "developer",
            "system_inside": "system",
            "max_tokens_field": "max_completion_tokens",
            "stream_usage": False,
            "path": "/v2/chat",
            "keep_thinking": {"thinking": {"clear_thinking": False}},
            "extra_body": {"reasoning_split": True, "thinking": {"extra": 1}},
        }
    )
    told = Message(role="system", blocks=(TextBlock("New rule."),))
    plan = ThinkingPlan("on", "thinking-type")
    body, made = encode(
        user("q"), told, to=row, thinking=plan, keep_thinking=True, max_tokens=99, temperature=0.5
    )
    assert body["messages"][1] == {"role": "developer", "content": "New rule."}
    assert body["max_completion_tokens"] == 99
    assert body["temperature"] == 0.5
    assert body["thinking"] == {"type": "enabled", "clear_thinking": False, "extra": 1}
    assert body["reasoning_split"] is True
    assert "stream_options" not in body
    assert made.path == "/v2/chat"
    body, _ = encode(user("q"), to=row, thinking=OFF, keep_thinking=True, stream=False)
    assert body["thinking"] == {"type": "disabled", "extra": 1}
    assert body["stream"] is False
    for plan, kept in ((LEFT, {"clear_thinking": False}), (SILENT, {})):
        body, _ = encode(user("q"), to=row, thinking=plan, keep_thinking=True)
        assert body["thinking"] == {**kept, "extra": 1}


def test_tools_and_their_choice():
    tools = (Tool("f", "Does f.", {"type": "object"}), Tool("g"))
    body, _ = encode(user("q"), tools=tools, tool_choice="required")
    assert body["tools"] == [
        {
            "type": "function",
            "function": {"name": "f", "description": "Does f.", "parameters": {"type": "object"}},
        },
        {
            "type": "function",
            "function": {"name": "g", "parameters": {"type": "object", "properties": {}}},
        },
    ]
    assert body["tool_choice"] == "required"
    named = {"type": "function", "function": {"name": "f"}}
    body, _ = encode(user("q"), tools=tools, tool_choice=NamedTool("f"))
    assert body["tool_choice"] == named
    body, made = encode(user("q"), tool_choice="auto")
    assert "tool_choice" not in body
    assert made.notes[0].about == "toolChoice"


def test_a_users_parts():
    blocks = (
        TextBlock("a"),
        MediaBlock("image/png", data="QUJD"),
        MediaBlock("image/png", url="https://x.example/a.png"),
        MediaBlock("audio/wav", data="QUJD"),
        MediaBlock("application/pdf", data="QUJD", name="a.pdf"),
        MediaBlock("application/pdf", url="https://x.example/a.pdf"),
        MediaBlock("image/png"),
        OpaqueBlock({"type": "odd"}),
    )
    body, made = encode(Message(role="user", blocks=blocks), Message(role="user"))
    assert body["messages"][0]["content"] == [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
        {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}},
        {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
        {
            "type": "file",
            "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,QUJD"},
        },
    ]
    assert body["messages"][1] == {"role": "user", "content": ""}
    assert {note.about for note in made.notes} == {"media", "history"}


def test_calls_and_results():
    calls = (
        ToolCallBlock("a", "f", {"x": 1}, arguments='{"x": 1}'),
        ToolCallBlock(
            "b",
            "g",
            wire=Wire("openai-chat", {"extra_content": {"google": {"thought_signature": "s"}}}),
        ),
        ToolCallBlock("c", "h", arguments='{"cut":'),
        ToolCallBlock(
            "d",
            "",
            wire=Wire("openai-chat", {"type": "custom", "custom": {"name": "sh", "input": "ls"}}),
        ),
        ToolCallBlock("e", "i", wire=Wire("openai-chat", {"function": {"strict": True}})),
    )
    media = (MediaBlock("image/png", data="QUJD"),)
    results = Message(
        role="tool",
        blocks=(ToolResultBlock("a", "one"), ToolResultBlock("b", "two", media=media)),
    )
    body, made = encode(user("q"), assistant(*calls), results)
    message, *answers_ = body["messages"][1:]
    assert message["content"] is None
    assert [c["function"]["arguments"] for c in message["tool_calls"] if "function" in c] == [
        '{"x": 1}',
        "{}",
        '{"cut":',
        "{}",
    ]
    assert message["tool_calls"][1]["extra_content"] == {"google": {"thought_signature": "s"}}
    assert message["tool_calls"][3] == {
        "id": "d",
        "type": "custom",
        "custom": {"name": "sh", "input": "ls"},
    }
    assert message["tool_calls"][4]["function"]["strict"] is True
    assert answers_ == [
        {"role": "tool", "tool_call_id": "a", "content": "one"},
        {"role": "tool", "tool_call_id": "b", "content": "two"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "[from the tool result above]"}, IMAGE],
        },
    ]
    assert made.notes == ()


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
LOOKED = Message(
    role="tool",
    blocks=(
        ToolResultBlock("a", "one", media=(MediaBlock("image/png", data="QUJD", name="x.png"),)),
        ToolResultBlock("b", media=(MediaBlock("video/mp4"),)),
    ),
)


def test_images_of_results_follow_all_results_and_what_has_no_place_is_told():
    body, made = encode(
        user("q"), assistant(ToolCallBlock("a", "f"), ToolCallBlock("b", "f")), LOOKED
    )
    assert body["messages"][2:] == [
        {"role": "tool", "tool_call_id": "a", "content": "one"},
        {
            "role": "tool",
            "tool_call_id": "b",
            "content": "[1 of its attachments cannot be sent to this API]",
        },
        {
            "role": "user",
            "content": [{"type": "text", "text": "[from the tool result above: x.png]"}, IMAGE],
        },
    ]
    assert [note.about for note in made.notes] == ["media"]


def test_images_of_results_stay_in_them_where_no_user_may_follow():
    calls = assistant(ToolCallBlock("a", "f"), ToolCallBlock("b", "f"))
    body, _ = encode(user("q"), calls, LOOKED, to=target(compat={"result_media": "tool"}))
    assert body["messages"][2]["content"] == [{"type": "text", "text": "one"}, IMAGE]
    assert [message["role"] for message in body["messages"][2:]] == ["tool", "tool"]


def test_words_beside_results_share_the_message_with_their_images():
    result = ToolResultBlock("a", "one", media=(MediaBlock("image/png", data="QUJD"),))
    said = Message(role="user", blocks=(result, TextBlock("go on")))
    body, _ = encode(user("q"), assistant(ToolCallBlock("a", "f")), said)
    assert body["messages"][-1]["content"] == [
        {"type": "text", "text": "[from the tool result above]"},
        IMAGE,
        {"type": "text", "text": "go on"},
    ]


def test_calls_without_ids_get_ids_that_stay():
    turn = [
        assistant(ToolCallBlock("", "f"), ToolCallBlock("", "g")),
        Message(role="tool", blocks=(ToolResultBlock("", "1"), ToolResultBlock("", "2"))),
    ]
    body, _ = encode(user("q"), *turn, *turn)
    ids = [c["id"] for m in body["messages"] for c in m.get("tool_calls", ())]
    assert ids == ["call_1", "call_2", "call_3", "call_4"]
    assert [m["tool_call_id"] for m in body["messages"] if m["role"] == "tool"] == ids


def test_results_in_a_users_name_are_results():
    blocks = (ToolResultBlock("a", "one"), TextBlock("and this"))
    body, _ = encode(
        user("q"), assistant(ToolCallBlock("a", "f")), Message(role="user", blocks=blocks)
    )
    assert [m["role"] for m in body["messages"][2:]] == ["tool", "user"]


def test_the_filler_for_empty_content_is_the_rows():
    row = target(compat={"empty_content": " "})
    body, _ = encode(user("q"), assistant(ToolCallBlock("c", "f")), result(), to=row)
    assert body["messages"][1]["content"] == " "


# What holds for every history

turns = st.lists(answers(), max_size=4)


def history(messages: list[Message]) -> list[Message]:
    out = [user("q0")]
    for number, message in enumerate(messages, 1):
        out.append(message)
        results = tuple(ToolResultBlock(c.id, f"r{number}") for c in message.tool_calls)
        if results:
            out.append(Message(role="tool", blocks=results))
        out.append(user(f"q{number}"))
    return out


@given(turns, answers())
def test_a_longer_history_begins_with_a_shorter_one(messages, last):
    short, _ = encode(*history(messages))
    longer, _ = encode(*history([*messages, last]))
    assert longer["messages"][: len(short["messages"])] == short["messages"]
    rest = {k: v for k, v in short.items() if k != "messages"}
    assert rest == {k: v for k, v in longer.items() if k != "messages"}


@given(answers(), st.data())
def test_what_was_decoded_goes_back_with_every_carrier(message, data):
    decoded = decode(render_stream(data.draw, message))
    body, _ = encode(*history([decoded]))
    sent = [m for m in body["messages"] if m["role"] == "assistant"]
    if not message.text and not message.tool_calls:
        assert sent == []
        return
    (back,) = sent
    assert (back["content"] or "") == message.text
    for call, wire in zip(message.tool_calls, back.get("tool_calls", ()), strict=True):
        assert wire["id"] == call.id
        assert msgspec.json.decode(wire["function"]["arguments"]) == call.input
        assert wire.get("extra_content") == wired(call).get("extra_content")
    for block in message.thinking:
        assert back.get("reasoning_details", []) == [
            entry
            for entry in wired(block).get("reasoning_details", ())
            if not lost_signature(entry)
        ]
        assert back.get("reasoning_opaque") == block.signature
        if block.wire is None and block.source_field != "reasoning_text":
            assert back.get(block.source_field, "") == block.thought


def lost_signature(entry):
    kind = entry["type"], entry["format"]
    return kind == ("reasoning.text", "anthropic-claude-v1") and not entry.get("signature")


@pytest.mark.parametrize("out", ["same", "reasoning_details"])
def test_a_thought_of_claude_that_lost_its_signature_is_not_sent(out):
    claude = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
    lost, whole = {**claude, "text": "a"}, {**claude, "text": "b", "signature": "S", "index": 1}
    block = ThinkingBlock("ab", "reasoning_details", wire=listed([lost, whole]))
    to = target(compat={"reasoning_out": out})
    body, _ = encode(user("q"), assistant(block, TextBlock("so")), user("r"), to=to)
    sent = {"role": "assistant", "content": "so", "reasoning_details": [whole]}
    assert body["messages"][1] == sent
    block = ThinkingBlock("a", "reasoning_details", wire=listed([lost]))
    body, _ = encode(user("q"), assistant(block, TextBlock("so")), user("r"), to=to)
    assert body["messages"][1] == {"role": "assistant", "content": "so"}


def test_an_empty_answer_is_not_sent():
    body, made = encode(user("q"), assistant(TextBlock("")), user("r"))
    assert [m["role"] for m in body["messages"]] == ["user", "user"]
    assert made.notes[0].about == "history"


def test_several_texts_of_a_user_go_as_one_string_which_every_server_takes():
    blocks = TextBlock("look at this"), TextBlock("```\nx\n```\n"), TextBlock("and this")
    body, _ = encode(Message(role="user", blocks=blocks))
    assert body["messages"][0]["content"] == "look at this\n\n```\nx\n```\nand this"
