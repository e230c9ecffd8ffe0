"""Recorded Responses traffic: decoded without loss, and encoded as the recorded client did.

Where our next request differs from the recorded client's, the difference is one of these:

| what                                       | recorded client          | mull                    |
|--------------------------------------------|--------------------------|-------------------------|
| a person's text                            | a bare string            | one `input_text` part   |
| `encrypted_content` of DeepSeek            | null                     | as it came, or no key   |
| id of an item with no reasoning before it  | sent by some             | left out: can only harm |
| ids of calls and messages at DeepSeek      | left out                 | as they came            |
| an answer at DeepSeek                      | a bare string            | a message with its phase |
| call ids that later responses use again    | made unique              | as they came            |
| call id in the oldest recording            | the item's id            | the call's id           |
| sources and outputs of hosted tools        | left out                 | as they came            |
| typographic quotes                         | changed by the recorder  | as they came            |
"""

from __future__ import annotations

import json
import random
import re
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from conversations import target, wired
from mull.dialects.registry import encode_request
from mull.neutral.blocks import (
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from mull.neutral.messages import Message, user
from mull.neutral.request import Request
from mull.neutral.thinking import ThinkingPlan
from openai_responses_wire import cut, decode
from recordings import Exchange, exchanges, need_recordings, responses_streams, responses_wholes

TARGET = target("responses", dialect="openai-responses")


STREAMS = responses_streams()
WHOLE = responses_wholes()
TALKS = [[one for one in talk if one.path.endswith("/responses")] for talk in exchanges()]
TALKS = [talk for talk in TALKS if len(talk) > 1]


@pytest.fixture(autouse=True)
def _recorded() -> None:
    need_recordings()


def _values(data: bytes) -> list[dict[str, Any]]:
    values = []
    for line in data.splitlines():
        if line.startswith(b"data:") and line[5:].strip() != b"[DONE]":
            try:
                values.append(json.loads(line[5:]))
            except ValueError:
                continue
    return values


def _said(message: Message) -> dict[str, str]:
    """All text of a message by channel."""
    thinking = message.thinking
    return {
        "text": message.text,
        "summary": "".join(_bare(block) for block in thinking if block.kind == "summary"),
        "raw": "".join(_bare(block) for block in thinking if block.kind == "raw"),
        "arguments": "".join(
            call.arguments or json.dumps(call.input) for call in message.tool_calls
        ).replace(" ", ""),
    }


def _bare(block: ThinkingBlock) -> str:
    if "parts" not in wired(block):
        return block.thought
    return "".join(part["text"] for part in wired(block)["parts"] if "text" in part)


def _streamed(data: bytes) -> dict[str, str]:
    """All text of a stream by channel, from its deltas alone."""
    found = dict.fromkeys(("text", "summary", "raw", "arguments"), "")
    channel = {
        "response.output_text.delta": "text",
        "response.refusal.delta": "text",
        "response.reasoning_summary_text.delta": "summary",
        "response.reasoning_text.delta": "raw",
        "response.function_call_arguments.delta": "arguments",
    }
    for value in _values(data):
        if name := channel.get(value.get("type", "")):
            found[name] += value["delta"]
    found["arguments"] = found["arguments"].replace(" ", "")
    return found


def test_there_are_recordings():
    assert len(STREAMS) > 50
    assert len(WHOLE) > 30
    assert len(TALKS) > 8


@pytest.mark.parametrize("name", sorted(STREAMS))
def test_no_byte_of_a_stream_is_lost_or_doubled(name):
    answer = decode(STREAMS[name])
    said, streamed = _said(answer.message), _streamed(STREAMS[name])
    if "openai-phase.1" in name or "openai-shell-container.1" in name:
        return  # their deltas were shortened or rewritten before they were published
    for channel, text in streamed.items():
        assert not text or said[channel] == text
    assert not [warning for warning in answer.warnings if warning.code != "unreadable"]


@pytest.mark.parametrize("name", sorted(STREAMS))
def test_every_carrier_of_a_stream_is_kept(name):
    message = decode(STREAMS[name]).message
    finished = [
        v["item"] for v in _values(STREAMS[name]) if v.get("type", "").endswith("item.done")
    ]
    seals = [item["encrypted_content"] for item in finished if item.get("encrypted_content")]
    assert [block.encrypted for block in message.thinking if block.encrypted] == seals
    known = ("reasoning", "message", "function_call", "custom_tool_call")
    opaque = [block.data for block in message.blocks if isinstance(block, OpaqueBlock)]
    for item in finished:
        assert item["type"] in known or item in opaque


@pytest.mark.parametrize("name", sorted(STREAMS))
def test_a_stream_ends_as_its_response_says(name):
    ends = [v for v in _values(STREAMS[name]) if v.get("type") == "response.completed"]
    message = decode(STREAMS[name]).message
    if ends:
        assert message.status in ("complete", "no_answer")
        assert message.usage.output == ends[-1]["response"]["usage"]["output_tokens"]


@pytest.mark.parametrize("name", sorted(STREAMS))
def test_cuts_do_not_matter(name):
    data = STREAMS[name]
    whole = decode(data).message
    chance = random.Random(name)
    for _ in range(3):
        assert decode(*cut(data, [chance.randrange(len(data)) for _ in range(40)])).message == whole
    if len(data) < 12_000:
        assert decode(*(data[n : n + 1] for n in range(len(data)))).message == whole


@pytest.mark.parametrize("name", sorted(STREAMS))
def test_a_stream_equals_its_finished_response(name):
    """But for seals, which OpenAI makes anew, ids that rotate, and items that ended late."""
    ends = [v for v in _values(STREAMS[name]) if v.get("type") == "response.completed"]
    if not ends or "id-rotation" in name or "openai-shell-container.1" in name:
        pytest.skip("no finished response, or another one")
    streamed = decode(STREAMS[name]).message
    whole = decode(msgspec.json.encode(ends[-1]["response"])).message
    assert (streamed.status, streamed.stop_reason) == (whole.status, whole.stop_reason)
    ours, theirs = ([_unsealed(b) for b in m.blocks] for m in (streamed, whole))
    if "backfills" in name:
        ours, theirs = sorted(ours, key=repr), sorted(theirs, key=repr)
    assert ours == theirs


def _unsealed(block: Any) -> Any:
    return msgspec.structs.replace(block, encrypted=None) if hasattr(block, "encrypted") else block


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_whole_responses_lose_nothing(name):
    message = decode(WHOLE[name]).message
    kept = json.dumps(msgspec.to_builtins(message), ensure_ascii=False)
    for item in json.loads(WHOLE[name])["output"]:
        for text in _strings(item):
            assert json.dumps(text, ensure_ascii=False)[1:-1] in kept or _is_arguments(item, text)


def _is_arguments(item: dict[str, Any], text: str) -> bool:
    return item["type"] == "function_call" and text == item["arguments"]


def _strings(value: Any, key: str = "") -> list[str]:
    if isinstance(value, dict):
        return [text for name, inner in value.items() for text in _strings(inner, name)]
    if isinstance(value, list):
        return [text for inner in value for text in _strings(inner, key)]
    return [value] if isinstance(value, str) and key not in ("type", "status", "role") else []


def _answer(exchange: Exchange) -> Message:
    return decode(exchange.body).message


def _next_request(talk: list[Exchange], number: int) -> list[dict[str, Any]]:
    """What we would send after the first `number` answers, given what the client said between."""
    messages: list[Message] = []
    known = 0
    for exchange, following in pairwise(talk[: number + 1]):
        given = exchange.request["input"]
        messages += _from_client(given[known:])
        messages.append(msgspec.structs.replace(_answer(exchange), origin=TARGET.origin))
        known = _where_client_goes_on(following.request["input"], len(given))
    messages += _from_client(talk[number].request["input"][known:])
    request = Request(messages=tuple(messages), thinking=ThinkingPlan("default", "responses"))
    sent = msgspec.json.decode(encode_request(request, TARGET).body)["input"]
    return [_normal(item) for item in sent]


OURS = ("reasoning", "function_call", "web_search_call", "code_interpreter_call")


def _where_client_goes_on(given: list[dict[str, Any]], known: int) -> int:
    while known < len(given) and _is_answer(given[known]):
        known += 1
    return known


def _is_answer(item: dict[str, Any]) -> bool:
    return item.get("role") == "assistant" or item.get("type") in OURS


def _from_client(items: list[dict[str, Any]]) -> list[Message]:
    messages = []
    for item in items:
        if item.get("role") == "user":
            messages.append(user(item["content"]))
        elif item.get("type") == "function_call_output":
            result = ToolResultBlock(item["call_id"], item["output"])
            messages.append(Message(role="tool", blocks=(result,)))
        elif item.get("type") == "reasoning":
            thoughts = [
                ThinkingBlock(p["text"], id=item["id"], kind="summary") for p in item["summary"]
            ]
            thoughts += [ThinkingBlock(p["text"], id=item["id"]) for p in item["content"]]
            messages.append(Message(role="assistant", origin=TARGET.origin, blocks=tuple(thoughts)))
        elif item.get("type") == "function_call":
            call = ToolCallBlock(item["call_id"], item["name"], json.loads(item["arguments"]))
            last = messages.pop()
            messages.append(msgspec.structs.replace(last, blocks=(*last.blocks, call)))
        else:
            raise AssertionError(item)
    return _merged(messages)


def _merged(messages: list[Message]) -> list[Message]:
    merged: list[Message] = []
    for message in messages:
        if merged and message.role == merged[-1].role == "assistant":
            last = merged.pop()
            message = msgspec.structs.replace(last, blocks=(*last.blocks, *message.blocks))
        merged.append(message)
    return merged


def _normal(item: dict[str, Any]) -> dict[str, Any]:
    """An item without the documented differences."""
    item = {key: value for key, value in item.items() if value is not None}
    kind = item.setdefault("type", "message")
    if kind in ("message", "function_call"):
        for key in ("id", "status", "phase"):
            item.pop(key, None)
    if kind == "message" and isinstance(item["content"], list):
        item["content"] = "".join(part["text"] for part in item["content"])
    if kind == "message":
        item["content"] = re.sub("[“”]", '"', item["content"].replace("’", "'"))
    if kind.startswith("function_call") and "resp_" in item["call_id"]:
        item["call_id"] = item["call_id"].rpartition(":")[2]
    if kind == "reasoning" and "content" in item:
        item.pop("encrypted_content", None)
    item.pop("outputs", None)
    if "action" in item:
        item["action"].pop("sources", None)
    return item


COMPARED = [
    (talk, number)
    for talk in TALKS
    for number in range(1, len(talk))
    if not talk[0].name.startswith("test-tool-search")
    and not talk[0].name.endswith(("annotations-streaming", "test-openai-responses-stream"))
]


@pytest.mark.parametrize(
    ("talk", "number"), COMPARED, ids=[f"{talk[0].name} {number}" for talk, number in COMPARED]
)
def test_the_next_request_is_what_the_recorded_client_sent(talk, number):
    recorded = [_normal(item) for item in talk[number].request["input"]]
    assert _next_request(talk, number) == recorded


def test_reasoning_items_go_back_with_ids_and_seals():
    (talk,) = (
        t for t in TALKS if "thinking-with-tool-calls" in t[0].name and "google" not in t[0].name
    )
    message = msgspec.structs.replace(_answer(talk[0]), origin=TARGET.origin)
    plan = ThinkingPlan("default", "responses")
    sent = msgspec.json.decode(encode_request(Request((message,), plan), TARGET).body)["input"]
    recorded = talk[1].request["input"][1:3]
    assert sent == recorded
    assert isinstance(message.blocks[0], ThinkingBlock)
    assert not any(isinstance(block, TextBlock) for block in message.blocks)
