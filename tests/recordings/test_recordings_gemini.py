"""Recorded Gemini traffic: nothing lost, nothing doubled, and what would be sent back.

Where a recording holds several turns, our next request is compared with the recorded one, which
the provider accepted. They differ in these points, on purpose:

| recorded client (pydantic-ai)                     | mull                                       |
|---------------------------------------------------|--------------------------------------------|
| gives a call without an id an id and sends it     | sends an id only where the wire gave one   |
| `{"return_value": …}` as a function's response    | `{"result": …}`                            |
| joins streamed text with the signature after it   | keeps the signed part without text apart   |
| signatures in the URL-safe alphabet of base64     | signatures byte for byte as they came      |
| fills server-side tool parts from other places    | server-side tool parts as they came        |
| sends thoughts of another model as thought parts  | leaves them out (`reasoning.handoff`)      |
| a placeholder of its own, in base64               | `skip_thought_signature_validator`         |
| snake_case keys here and there                    | camelCase                                  |
"""

import json
import random

import pytest

from conversations import snapshot, target
from gemini_wire import cut, decode
from mull.dialects.registry import encode_request
from mull.history.log import Log
from mull.neutral.blocks import (
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from mull.neutral.messages import Message, assistant, user
from mull.neutral.request import RequestOptions, Tool
from mull.neutral.thinking import UNSIGNED_CALL
from mull.policy.prepare import prepare
from recordings import exchanges, gemini_answers, need_recordings

ANSWERS = gemini_answers()


@pytest.fixture(autouse=True)
def _recordings():
    need_recordings()


def chunks_of(body):
    if body.lstrip().startswith(b"data:"):
        return [json.loads(line[5:]) for line in body.splitlines() if line.startswith(b"data:")]
    return [json.loads(body)]


def parts_of(body):
    return [
        part
        for chunk in chunks_of(body)
        for candidate in chunk.get("candidates", [])
        for part in candidate.get("content", {}).get("parts", [])
    ]


def signatures_in(blocks):
    for block in blocks:
        held = block.data if isinstance(block, OpaqueBlock) else {}
        if signature := getattr(block, "signature", None) or held.get("thoughtSignature"):
            yield signature


def test_there_are_recordings():
    assert len(ANSWERS) >= 20


@pytest.mark.parametrize("name", ANSWERS)
def test_nothing_is_lost_and_nothing_doubled(name):
    parts, got = parts_of(ANSWERS[name]), decode(ANSWERS[name])
    spoken = [part for part in parts if "text" in part]
    assert "".join(b.text for b in got.blocks if isinstance(b, TextBlock)) == "".join(
        part["text"] for part in spoken if not part.get("thought")
    )
    assert "".join(b.thought for b in got.blocks if isinstance(b, ThinkingBlock)) == "".join(
        part["text"] for part in spoken if part.get("thought")
    )
    assert list(signatures_in(got.blocks)) == [
        part["thoughtSignature"] for part in parts if "thoughtSignature" in part
    ]
    named = [part["functionCall"] for part in parts if part.get("functionCall", {}).get("name")]
    calls = got.message.tool_calls
    assert [call.name for call in calls] == [call["name"] for call in named]
    for call, part in zip(calls, named, strict=True):
        if "willContinue" not in part:
            assert call.input == part.get("args", {})
    assert [b.data for b in got.blocks if isinstance(b, OpaqueBlock)] == [
        part for part in parts if "text" not in part and "functionCall" not in part
    ]


@pytest.mark.parametrize("name", ANSWERS)
def test_streamed_arguments_are_all_there(name):
    pieces = [
        piece["stringValue"]
        for part in parts_of(ANSWERS[name])
        for piece in part.get("functionCall", {}).get("partialArgs", [])
    ]

    def strings(value):
        if isinstance(value, dict):
            return "".join(map(strings, value.values()))
        return "".join(map(strings, value)) if isinstance(value, list) else value

    calls = [c for c in decode(ANSWERS[name]).message.tool_calls if pieces]
    assert "".join(strings(call.input) for call in calls) == "".join(pieces)


@pytest.mark.parametrize("name", ANSWERS)
def test_it_ends_as_it_was_recorded(name):
    chunks, got = chunks_of(ANSWERS[name]), decode(ANSWERS[name])
    if "error" in chunks[0]:
        assert (got.error.text, got.message.status) == (chunks[0]["error"]["message"], "error")
        return
    assert got.error is None
    assert got.warnings == []
    assert got.message.status == "complete"
    counts = chunks[-1]["usageMetadata"]
    usage = got.message.usage
    assert usage.total == counts["totalTokenCount"] == usage.input + usage.output
    assert usage.reasoning == counts.get("thoughtsTokenCount")


@pytest.mark.parametrize("name", ANSWERS)
def test_cuts_do_not_matter(name):
    body = ANSWERS[name]
    expected, chance = decode(body).events, random.Random(name)
    ways = [cut(body, [chance.randrange(len(body)) for _ in range(20)]) for _ in range(5)]
    if len(body) < 40_000:
        ways.append([body[at : at + 1] for at in range(len(body))])
    for pieces in ways:
        assert decode(*pieces).events == expected


@pytest.mark.parametrize("name", [name for name in ANSWERS if b"partialArgs" not in ANSWERS[name]])
def test_the_recorded_chunks_as_one_response_are_the_same_message(name):
    chunks = chunks_of(ANSWERS[name])
    parts = parts_of(ANSWERS[name])
    whole = json.loads(json.dumps(chunks[-1]))
    if "candidates" in whole:
        whole["candidates"][0]["content"] = {"role": "model", "parts": parts}
    assert decode(json.dumps(whole).encode()).message == decode(ANSWERS[name]).message


def conversation(name):
    (found,) = exchanges(name)
    return [exchange for exchange in found if "enerateContent" in exchange.path]


def asked_of(exchange):
    """The target and the fixed parts of a recorded request."""
    request = exchange.request
    declared = [d for t in request.get("tools", []) for d in t.get("functionDeclarations", [])]
    schema = "parameters_json_schema"
    system = request.get("systemInstruction", {"parts": [{"text": ""}]})
    return RequestOptions(
        system=system["parts"][0]["text"],
        tools=tuple(Tool(d["name"], d["description"], d.get(schema, {})) for d in declared),
        stream="stream" in exchange.path,
    )


def encode(messages, exchange, to, **settings):
    prepared = prepare(Log(tuple(messages)), snapshot(**settings), to, asked_of(exchange))
    wire = encode_request(prepared.request, to)
    return wire.path, json.loads(wire.body)


def model_at(exchange, writer="gemini-level"):
    name = exchange.path.rpartition("/models/")[2].partition(":")[0]
    return target(writer, dialect="gemini", model=name)


def test_a_streamed_call_and_its_result_go_back():
    first, second = conversation("test-google-test-google-streaming-tool-call-thought-signature")
    to = model_at(first)
    answer = decode(first.body, to=to).message
    (call,) = answer.tool_calls
    question = user(first.request["contents"][0]["parts"][0]["text"])
    result = Message(role="tool", blocks=(ToolResultBlock(call.id, "Mexico"),))
    path, body = encode([question, answer, result], second, to)
    assert path == "/models/gemini-3-pro-preview:streamGenerateContent?alt=sse"
    assert second.path.endswith(path.partition("?")[0])
    recorded = json.loads(json.dumps(second.request["contents"]))
    del recorded[1]["parts"][0]["functionCall"]["id"]
    response = recorded[2]["parts"][0]["functionResponse"]
    del response["id"]
    response["response"] = {"result": response["response"]["return_value"]}
    recorded[1]["parts"][0]["thoughtSignature"] = call.signature
    assert body["contents"] == recorded
    declared = second.request["tools"][0]["functionDeclarations"][0]
    declared["parametersJsonSchema"] = declared.pop("parameters_json_schema")
    assert body["tools"] == [{"functionDeclarations": [declared]}]


def test_server_side_tools_go_back_as_they_came():
    first, second = conversation(
        "test-google-test-google-model-file-search-grounding-gemini-3-true"
    )
    to = model_at(first)
    answer = decode(first.body, to=to).message
    contents = second.request["contents"]
    question, follow_up = (user(contents[at]["parts"][0]["text"]) for at in (0, 2))
    path, body = encode([question, answer, follow_up], second, to)
    assert second.path.endswith(path)
    ours, theirs = body["contents"][1]["parts"], contents[1]["parts"]
    assert (body["contents"][0], body["contents"][2]) == (contents[0], contents[2])
    assert ours[:2] == parts_of(first.body)[:2]
    assert [part["toolCall"]["id"] for part in (ours[0], theirs[0])] == ["tju3qkc9"] * 2
    assert "".join(part["text"] for part in ours[2:]) == theirs[2]["text"]
    standard = [part["thoughtSignature"] for part in ours if "thoughtSignature" in part]
    assert [s.replace("+", "-").replace("/", "_") for s in standard] == [
        part["thoughtSignature"] for part in theirs
    ]


def test_a_call_of_another_model_gets_the_placeholder():
    (exchange,) = conversation("test-google-test-thinking-with-tool-calls-from-other-model")
    to = model_at(exchange)
    contents = exchange.request["contents"]
    recorded = contents[1]["parts"][0]["functionCall"]
    call = ToolCallBlock(recorded["id"], recorded["name"], recorded["args"])
    history = [
        user(contents[0]["parts"][0]["text"]),
        assistant(call, origin=target(model="gpt-5").origin),
        Message(role="tool", blocks=(ToolResultBlock(call.id, "Mexico"),)),
    ]
    _, body = encode(history, exchange, to)
    name = recorded["name"]
    assert body["contents"][1]["parts"] == [
        {"functionCall": {"name": name, "args": {}}, "thoughtSignature": UNSIGNED_CALL}
    ]
    assert body["contents"][2]["parts"] == [
        {"functionResponse": {"name": name, "response": {"result": "Mexico"}}}
    ]


def test_thoughts_of_another_model_are_left_out():
    (exchange,) = conversation("test-google-test-google-model-thinking-part-from-other-model")
    to = model_at(exchange, "gemini-budget")
    contents = exchange.request["contents"]
    *summaries, text = [part["text"] for part in contents[1]["parts"]]
    foreign = assistant(
        *(ThinkingBlock(summary, kind="summary") for summary in summaries),
        TextBlock(text),
        origin=target(model="gpt-5").origin,
    )
    history = [user(contents[0]["parts"][0]["text"]), foreign]
    history.append(user(contents[2]["parts"][0]["text"]))
    _, body = encode(history, exchange, to, includeInContext=True)
    kept = [{"role": "model", "parts": [{"text": text}]}]
    assert body["contents"] == [contents[0], *kept, contents[2]]
    assert body["generationConfig"] == exchange.request["generationConfig"]
    assert body["systemInstruction"]["parts"] == exchange.request["systemInstruction"]["parts"]


def test_thinking_switched_off_is_the_recorded_request():
    (exchange,) = conversation(
        "test-thinking-wire-contract-test-reasoning-wire-contract-google-gemini-25-disable"
    )
    to = target(
        "gemini-budget",
        dialect="gemini",
        model="gemini-2.5-flash",
        options=[{"type": "budget_tokens", "min": 0, "max": 24576}],
    )
    question = user(exchange.request["contents"][0]["parts"][0]["text"])
    path, body = encode([question], exchange, to, enabled=False)
    assert exchange.path.endswith(path)
    assert body["contents"] == exchange.request["contents"]
    recorded = exchange.request["generationConfig"]["thinkingConfig"]
    assert body["generationConfig"]["thinkingConfig"] == {
        "thinkingBudget": recorded["thinking_budget"]
    }
