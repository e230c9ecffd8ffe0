"""The JSON form of messages: exact both ways, strict about what it does not know."""

import json

import msgspec
import pytest
from hypothesis import given

from conversations import messages
from mull.neutral.blocks import OpaqueBlock, TextBlock, ThinkingBlock, ToolCallBlock, Wire
from mull.neutral.errors import ConfigError
from mull.neutral.messages import (
    Message,
    Origin,
    assistant,
    message_from_json,
    message_to_json,
    messages_from_json,
    messages_to_json,
    user,
)
from mull.neutral.usage import Usage

KIMI = Origin("moonshotai", "openai-chat", "kimi-k2-thinking", "https://api.moonshot.ai/v1")


@given(messages)
def test_any_message_comes_back_equal(message):
    data = message_to_json(message)
    assert message_from_json(data) == message
    assert message_to_json(message_from_json(data)) == data


@given(messages)
def test_the_json_is_plain_json(message):
    assert json.loads(message_to_json(message))["role"] == message.role


def test_the_documented_form_of_an_assistant_message():
    message = assistant(
        ThinkingBlock("hm", "reasoning_content"),
        TextBlock("yes"),
        ToolCallBlock("call_1", "read_file", {"path": "a.py"}),
        origin=KIMI,
        stop_reason="tool_calls",
        usage=Usage(120, 80, 61, 200),
    )
    assert json.loads(message_to_json(message)) == {
        "role": "assistant",
        "status": "complete",
        "stopReason": "tool_calls",
        "origin": {
            "provider": "moonshotai",
            "dialect": "openai-chat",
            "model": "kimi-k2-thinking",
            "endpoint": "https://api.moonshot.ai/v1",
        },
        "blocks": [
            {"type": "thinking", "thought": "hm", "sourceField": "reasoning_content"},
            {"type": "text", "text": "yes"},
            {
                "type": "tool_call",
                "id": "call_1",
                "name": "read_file",
                "input": {"path": "a.py"},
            },
        ],
        "usage": {
            "input": 120,
            "output": 80,
            "reasoning": 61,
            "total": 200,
            "cacheRead": None,
            "cacheWrite": None,
        },
    }


def test_req_think_001_1_req_think_001_2_source_field_and_signature_survive():
    block = ThinkingBlock(
        "t", "thinking", signature="EqQB", id="rs_1", wire=Wire("anthropic", {"x": 1})
    )
    (again,) = message_from_json(message_to_json(assistant(block))).blocks
    assert again == block


def test_req_think_001_3_thinking_is_a_block_among_others():
    text = b'{"role":"assistant","blocks":[{"type":"thinking","thought":"a","isHidden":false}]}'
    assert message_from_json(text).blocks == (ThinkingBlock("a"),)


def test_absent_empty_and_full_reasoning_are_three_states():
    stored = [assistant(), assistant(ThinkingBlock("")), assistant(ThinkingBlock("x"))]
    assert len({message_to_json(message) for message in stored}) == 3
    assert messages_from_json(messages_to_json(stored)) == tuple(stored)


@given(messages)
def test_the_thought_of_a_thinking_block_is_always_written(message):
    """Document 001's schema has it without a question mark."""
    told = json.loads(message_to_json(message)).get("blocks", [])
    written = [block["thought"] for block in told if block["type"] == "thinking"]
    assert written == [block.thought for block in message.thinking]


@given(messages)
def test_messages_from_before_it_was_always_written_still_open(message):
    told = json.loads(message_to_json(message))
    for block in told.get("blocks", ()):
        if block["type"] == "thinking" and not block["thought"]:
            del block["thought"]
    assert message_from_json(json.dumps(told)) == message


def test_an_opaque_block_keeps_everything_in_order():
    data = {"type": "server_tool_use", "z": 1, "a": [1.5, None, {"k": "\u2028"}], "big": 2**80}
    (again,) = message_from_json(message_to_json(assistant(OpaqueBlock(data)))).blocks
    assert isinstance(again, OpaqueBlock)
    assert list(again.data) == list(data)
    assert again.data == data


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not a message: Input data was truncated"),
        ('{"role":"robot"}', "not a message: Invalid enum value 'robot' - at `$.role`"),
        (
            '{"role":"user","blocks":[{"type":"text","txt":"a"}]}',
            "not a message: Object contains unknown field `txt` - at `$.blocks[0]`",
        ),
    ],
)
def test_bad_json_is_one_clear_line(text, said):
    with pytest.raises(ConfigError) as caught:
        message_from_json(text)
    assert str(caught.value) == said


def test_values_cannot_be_changed():
    with pytest.raises(AttributeError):
        user("a").role = "system"
    assert user("a") == Message(role="user", blocks=(TextBlock("a"),))
    assert msgspec.structs.replace(user("a"), role="system").role == "system"


def test_blank_is_only_what_has_neither_text_nor_carrier():
    assert ThinkingBlock(" \n").is_blank
    assert not ThinkingBlock("", signature="s").is_blank
    assert not ThinkingBlock("", encrypted="e").is_blank
    assert not ThinkingBlock("", redacted="r").is_blank
    assert not ThinkingBlock("", wire=Wire("anthropic", {})).is_blank
    assert not ThinkingBlock("x").is_blank


def test_views_of_a_message():
    call = ToolCallBlock("1", "f")
    message = assistant(TextBlock("a"), ThinkingBlock("t"), call, TextBlock("b"))
    assert (message.text, message.thinking, message.tool_calls) == (
        "ab",
        (ThinkingBlock("t"),),
        (call,),
    )
