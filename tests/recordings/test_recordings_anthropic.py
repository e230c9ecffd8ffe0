"""Real traffic of the Messages API and of servers that speak it.

Every answer is decoded without loss, however it is cut. Where a recorded client went on, the
messages it sent are compared with ours. The documented differences:

| recording | theirs | ours | reason |
|---|---|---|---|
| …-agui-0-1-10-drops-prefix, third request | the answer without its thinking | with it | the
  recording shows a client that loses thinking on the way; ours keeps it |
| all | `"stream": false` | left out | the API's default |
"""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest

from anthropic_wire import HERE, decode, events_of, wire_block
from mull.dialects.registry import decoder, encode_request
from mull.neutral.blocks import OpaqueBlock, TextBlock, ToolCallBlock
from mull.neutral.events import Failed, Finished
from mull.neutral.messages import Message, user
from mull.neutral.request import Request
from mull.neutral.thinking import ThinkingPlan
from recordings import FOLDER, Exchange, bodies, chunk_streams, exchanges, need_recordings

PATH = "/v1/messages"
LOSES_THINKING = "agui-0-1-10-drops-prefix"
SPLICED = "spliced-message-start"


def conversations() -> list[list[Exchange]]:
    """The recorded conversations on this API, answers only."""
    found = [[e for e in one if e.path == PATH] for one in exchanges()]
    return [one for one in found if one]


def streams() -> dict[str, bytes]:
    found = chunk_streams("anthropic")
    found |= bodies("llama.cpp/*anthropic*.sse", "vllm/*anthropic*.sse")
    for one in conversations():
        for number, exchange in enumerate(one):
            if exchange.body.startswith(b"event:"):
                found[f"{exchange.name}/{number}"] = exchange.body
    return found


def wholes() -> dict[str, bytes]:
    found = bodies("vercel-ai/anthropic/*.json", "llama.cpp/*anthropic*.json")
    for one in conversations():
        for number, exchange in enumerate(one):
            if exchange.body.startswith(b"{"):
                found[f"{exchange.name}/{number}"] = exchange.body
    return found


HERE_ARE = FOLDER.is_dir()
STREAMS = streams() if HERE_ARE else {"none": b""}
WHOLES = wholes() if HERE_ARE else {"none": b""}


@pytest.fixture(autouse=True)
def _recordings():
    need_recordings()


def raw_values(data: bytes) -> list[dict[str, Any]]:
    lines = data.decode().splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


def raw_blocks(data: bytes) -> list[dict[str, Any]]:
    """The blocks of a stream, put together in the plainest way."""
    blocks: list[dict[str, Any]] = []
    by_index: dict[int, dict[str, Any]] = {}
    for value in raw_values(data):
        match value:
            case {"type": "message_start", "message": {"content": list(content)}}:
                blocks += content
            case {"type": "content_block_start", "index": index, "content_block": block}:
                by_index[index] = {**block, "_json": ""}
                blocks.append(by_index[index])
            case {"type": "content_block_delta", "index": index, "delta": delta}:
                block = by_index[index]
                for name, piece in delta.items():
                    if name == "citation":
                        block["citations"] = [*block.get("citations", []), piece]
                    elif name == "partial_json":
                        block["_json"] += piece
                    elif name != "type":
                        block[name] = (block.get(name) or "") + piece
    for block in blocks:
        if text := block.pop("_json", ""):
            block["input"] = parsed(text)
        if block["type"] == "tool_use":
            block.setdefault("input", {})
    return blocks


def parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def our_blocks(message: Message) -> list[dict[str, Any]]:
    found = []
    for block in message.blocks:
        wire = dict(wire_block(block))
        if isinstance(block, ToolCallBlock) and block.arguments is not None:
            wire["input"] = parsed(block.arguments)
        found.append(wire)
    return found


@pytest.mark.parametrize("name", sorted(STREAMS))
def test_a_stream_loses_and_doubles_nothing(name):
    data = STREAMS[name]
    message = decode(data)
    assert our_blocks(message) == raw_blocks(data)
    last = events_of(data)[-1]
    assert isinstance(last, Failed if SPLICED in name else Finished)


@pytest.mark.parametrize("name", sorted(WHOLES))
def test_a_whole_response_loses_and_doubles_nothing(name):
    data = WHOLES[name]
    found = decode(data)
    assert our_blocks(found) == json.loads(data)["content"]
    assert found.usage is not None
    counts = json.loads(data)["usage"]
    assert found.usage.output == counts["output_tokens"]


@pytest.mark.parametrize("name", sorted(STREAMS))
def test_a_stream_may_be_cut_anywhere(name):
    data = STREAMS[name]
    expected = events_of(data)
    rng = random.Random(name)
    for _ in range(3):
        edges = sorted({0, len(data), *(rng.randrange(len(data)) for _ in range(12))})
        one = decoder(HERE)
        found = [e for a, b in itertools.pairwise(edges) for e in one.feed(data[a:b])]
        assert found + one.close() == expected
    if len(data) < 20_000:
        assert events_of(data, 1) == expected


@pytest.mark.parametrize("name", sorted(STREAMS))
def test_a_stream_that_is_cut_off_keeps_its_beginning(name):
    data, rng = STREAMS[name], random.Random(name)
    whole = decode(data)
    for _ in range(5):
        cut = decode(data[: rng.randrange(len(data))])
        assert whole.text.startswith(cut.text)
        signatures = [block.signature for block in whole.thinking]
        assert all(block.signature in (None, *signatures) for block in cut.thinking)


@pytest.mark.parametrize("name", sorted(STREAMS))
def test_counts_are_those_of_the_last_report(name):
    counts: dict[str, Any] = {}
    for value in raw_values(STREAMS[name]):
        usage = (value.get("message") or value).get("usage") or {}
        counts = usage if value["type"] == "message_start" else {**counts, **usage}
    found = decode(STREAMS[name]).usage
    assert found is not None
    read, written = counts.get("cache_read_input_tokens"), counts.get("cache_creation_input_tokens")
    assert found.output == counts["output_tokens"]
    assert found.input == counts["input_tokens"] + (read or 0) + (written or 0)
    assert (found.cache_read, found.cache_write) == (read, written)


def follow_ups() -> list[tuple[list[Exchange], int]]:
    return [(one, n) for one in conversations() for n in range(1, len(one))] if HERE_ARE else []


def test_a_recorded_client_sends_what_we_would():
    compared = 0
    for one, number in follow_ups():
        answers = [decode(exchange.body) for exchange in one[:number]]
        theirs = one[number].request["messages"]
        ours = sent([_message(row, answers) for row in theirs])
        if LOSES_THINKING in one[number].name and number == 2:
            theirs[1]["content"].insert(0, ours[1]["content"][0])
        assert ours == theirs
        compared += 1
    assert compared >= 6


@pytest.mark.parametrize("name", sorted(STREAMS | WHOLES))
def test_every_recorded_answer_goes_back_verbatim(name):
    data = {**STREAMS, **WHOLES}[name]
    message = decode(data)
    kept = list(message.blocks)
    while kept and kept[-1] in message.thinking:
        kept.pop()
    if not kept:
        return
    sent_back = sent([user("q"), message, user("next")])[1]["content"]
    expected = [wire_block(block) for block in kept if not _is_blank(block, message)]
    assert sent_back == expected
    opaque = [b.data for b in message.blocks if isinstance(b, OpaqueBlock)]
    assert [b for b in sent_back if b in opaque] == opaque


def _is_blank(block: Any, message: Message) -> bool:
    signed = any(b.signature or b.redacted for b in message.thinking)
    return isinstance(block, TextBlock) and not (block.text if signed else block.text.strip())


def _message(row: dict[str, Any], answers: list[Message]) -> Message:
    """A row of a recorded request as the message it came from."""
    text = "".join(b.get("text", "") for b in row["content"])
    if row["role"] == "user":
        return user(text)
    return next(answer for answer in answers if answer.text == text)


def sent(messages: list[Message]) -> list[dict[str, Any]]:
    plan = ThinkingPlan("on", "anthropic-budget", budget=1024)
    wire = encode_request(Request(messages=tuple(messages), thinking=plan), HERE)
    found: list[dict[str, Any]] = json.loads(wire.body)["messages"]
    return found
