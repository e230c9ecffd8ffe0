"""Recorded Chat Completions traffic: nothing lost, nothing doubled, and what would be sent back.

Where a recording holds several turns, our next message list is compared with the recorded one,
which the provider accepted. They differ in these points, on purpose:

| recorded client (pydantic-ai)                        | mull                                    |
|------------------------------------------------------|-----------------------------------------|
| thinking in tags goes back as `<think>\\n…\\n</think>` | the tags with exactly what was in them  |
| … or not at all (Groq, not streamed)                 | the same, since the endpoint sent them  |
| joins a tagged thought and its text with `\\n\\n`      | the text as it followed the tag         |
| `name: null` and `tool_calls: null` (Hugging Face)   | no such keys                            |
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from conversations import snapshot, target, wired
from mull.catalog.resolve import resolve
from mull.dialects.registry import encode_request
from mull.history.log import Log
from mull.neutral.blocks import (
    OpaqueBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from mull.neutral.messages import Message, assistant, user
from mull.neutral.request import RequestOptions
from mull.policy.prepare import prepare
from openai_chat_wire import decode
from recordings import Exchange, chat_answers, exchanges, need_recordings

MARKS = ("<think>", "</think>")


ANSWERS = chat_answers()
CONVERSATIONS = [c for c in exchanges() if len(c) > 1 and c[0].path.endswith("/chat/completions")]


@pytest.fixture(autouse=True)
def _recordings():
    need_recordings()


def values_of(body: bytes) -> list[dict[str, Any]]:
    if body.lstrip().startswith(b"{"):
        return [json.loads(body)]
    lines = [line[6:] for line in body.splitlines() if line.startswith(b"data: ")]
    return [json.loads(line) for line in lines if line != b"[DONE]"]


def parts_of(body: bytes) -> list[dict[str, Any]]:
    """Every delta or message of an answer."""
    choices = [choice for value in values_of(body) for choice in value.get("choices") or []]
    return [choice.get("delta") or choice.get("message") or {} for choice in choices]


def said(part: dict[str, Any], field: str) -> str:
    """The text in a field, also where it is a list."""
    value = part.get(field)
    if isinstance(value, str):
        return value
    texts = []
    for member in value if isinstance(value, list) else []:
        if member["type"] == "thinking":
            texts += [inner["text"] for inner in member["thinking"]]
        else:
            texts.append(member.get("text") or member.get("summary") or "")
    return "".join(texts)


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_nothing_is_lost_and_nothing_doubled(name):
    message, parts = decode(ANSWERS[name]), parts_of(ANSWERS[name])
    thought = "".join(block.thought for block in message.thinking)
    content = "".join(said(part, "content") for part in parts)
    if any(block.source_field == "think_tags" for block in message.thinking):
        content = content.replace(MARKS[0], "", 1).replace(MARKS[1], "", 1)
    listed = any(isinstance(part.get("content"), list) for part in parts)
    fields = ("reasoning_content", "reasoning") if not listed else ()
    expected = [t for f in fields if (t := "".join(said(part, f) for part in parts))]
    assert len(expected) <= 1
    in_content = not expected
    assert thought + message.text == "".join(expected) + content
    assert in_content or thought == expected[0]


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_carriers_and_calls_come_whole(name):
    message, parts = decode(ANSWERS[name]), parts_of(ANSWERS[name])
    for key in ("signature", "data", "id"):
        sent = [d[key] for p in parts for d in p.get("reasoning_details") or () if d.get(key)]
        kept = [
            d[key]
            for b in message.thinking
            for d in wired(b).get("reasoning_details", ())
            if d.get(key)
        ]
        assert kept == sent
    calls = [call for part in parts for call in part.get("tool_calls") or ()]
    ids = [call["id"] for call in calls if call.get("id")]
    assert [call.id for call in message.tool_calls] == ids
    arguments = "".join(call["function"].get("arguments") or "" for call in calls)
    kept = [c.arguments or json.dumps(c.input, separators=(",", ":")) for c in message.tool_calls]
    assert "".join(kept) == arguments
    assert not any(isinstance(block, OpaqueBlock) for block in message.blocks)


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_cuts_change_nothing(name):
    body = ANSWERS[name]
    expected = decode(body)
    chance = random.Random(name)
    for _ in range(3):
        cuts = [chance.randrange(len(body)) for _ in range(chance.randrange(1, 60))]
        assert decode(body, cuts=cuts) == expected
    if len(body) < 6_000:
        assert decode(body, cuts=list(range(len(body)))) == expected


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_usage_and_the_end_are_known(name):
    message = decode(ANSWERS[name])
    assert message.status in ("complete", "no_answer", "error")
    assert (message.status == "error") == ("stream-error" in name)
    assert message.usage is not None
    assert message.usage.input is not None
    assert message.usage.output is not None
    assert (message.usage.reasoning or 0) <= message.usage.output


# What the next request would be


def history(exchange: Exchange, before: list[Message]) -> list[Message]:
    """The recorded request as messages, with our own decoded answers in place of the sent ones."""
    decoded, log = list(before), []
    for sent in exchange.request["messages"]:
        match sent["role"]:
            case "assistant":
                log.append(_answer(sent, decoded))
            case "tool":
                result = ToolResultBlock(sent["tool_call_id"], sent["content"])
                log.append(Message(role="tool", blocks=(result,)))
            case "system":
                log.append(Message(role="system", blocks=(TextBlock(sent["content"]),)))
            case _:
                log.append(user(sent["content"]))
    assert not decoded
    return log


def _answer(sent: dict[str, Any], decoded: list[Message]) -> Message:
    """The decoded answer that this message repeats; else one that the client made up."""
    ids = [call["id"] for call in sent.get("tool_calls") or ()]
    if decoded and [call.id for call in decoded[0].tool_calls] == ids:
        return decoded.pop(0)
    calls = [
        ToolCallBlock(
            call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])
        )
        for call in sent["tool_calls"]
    ]
    return assistant(*calls)


def plain(message: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if value is not None or key == "content"}


def targets(exchange: Exchange):
    host = {"api.deepseek.com": "deepseek", "api.z.ai": "zai", "openrouter.ai": "openrouter"}
    if exchange.host not in host:
        return target(model=exchange.request["model"])
    return resolve(f"{host[exchange.host]}/{exchange.request['model']}")


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda c: c[0].name)
def test_the_next_request_is_what_the_provider_accepted(conversation):
    before: list[Message] = []
    for exchange in conversation:
        if len(exchange.request["messages"]) <= len(before):
            before = []  # a conversation of its own
        to = targets(exchange)
        log = Log(history(exchange, before))
        stream = bool(exchange.request.get("stream"))
        prepared = prepare(log, snapshot(includeInContext=True), to, RequestOptions(stream=stream))
        body = json.loads(encode_request(prepared.request, to).body)
        assert body["stream"] == stream
        ours, theirs = body["messages"], list(map(plain, exchange.request["messages"]))
        assert [m["role"] for m in ours] == [m["role"] for m in theirs]
        for mine, sent in zip(ours, theirs, strict=True):
            if mine["role"] == "assistant" and MARKS[0] in (mine["content"] or ""):
                answer = before[0]
                (thought,) = answer.thinking
                assert mine["content"] == f"{MARKS[0]}{thought.thought}{MARKS[1]}{answer.text}"
                assert answer.text.strip() in sent["content"]
            else:
                assert mine == sent
        before.append(decode(exchange.body, to))


def test_the_recordings_hold_every_way_of_thinking():
    fields = {block.source_field for body in ANSWERS.values() for block in decode(body).thinking}
    assert fields == {
        "reasoning_content", "reasoning", "reasoning_details", "think_tags", "content_list"
    }  # fmt: skip
