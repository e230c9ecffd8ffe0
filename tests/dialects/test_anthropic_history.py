"""The history in a request: carriers byte for byte, order kept, a longer one extends a shorter."""

from __future__ import annotations

import itertools
import json
from base64 import b64encode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthropic_wire import BUDGET, HERE, STREAMS, answers, claude, decode, wire_block
from conversations import ELSEWHERE, as_taken, blocks, messages, snapshot
from mull.dialects.registry import encode_request
from mull.history.log import Log
from mull.neutral.blocks import (
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from mull.neutral.messages import Message, assistant, user
from mull.neutral.request import Request, RequestOptions, Tool
from mull.neutral.thinking import ThinkingPlan
from mull.policy.prepare import prepare

ON = ThinkingPlan("on", "anthropic-budget", budget=4096)
OFF = ThinkingPlan("off", "anthropic-budget", thinks=False)
ABSENT = ThinkingPlan("absent", thinks=False)
LEFT = ThinkingPlan("absent")
TIDE = Tool("tide", "High water.", {"properties": {"port": {"type": "string"}}})
CACHING = {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75}


def request(*messages, thinking=ON, **more):
    return Request(messages=messages, thinking=thinking, **more)


def encode(asked, where=HERE):
    return encode_request(as_taken(asked, where), where)


def body(*messages, where=HERE, **more):
    return json.loads(encode(request(*messages, **more), where).body)


def contents(*messages, **more):
    return [(m["role"], m["content"]) for m in body(*messages, **more)["messages"]]


def said(*messages, **more):
    return [note.text for note in encode(request(*messages, **more)).notes]


def tool(*results):
    return Message(role="tool", blocks=results)


def thought(text="t", signature="s", **more):
    return ThinkingBlock(text, "thinking", signature=signature, **more)


def text(words):
    return {"type": "text", "text": words}


def test_blocks_go_back_in_wire_order():
    message = decode(STREAMS["interleaved"])
    ((_, question), (_, answer), _) = contents(user("q"), message, user("next"))
    assert question == [text("q")]
    assert answer == [wire_block(block) for block in message.blocks]


def test_neighbours_of_one_role_become_one_message_results_first():
    first, second = ToolCallBlock("a", "tide", {"port": "x"}), ToolCallBlock("b", "tide")
    found = contents(
        user("one"),
        user("two"),
        assistant(thought(), first),
        assistant(second),
        tool(ToolResultBlock("a", "1")),
        tool(ToolResultBlock("b", "2", is_error=True)),
        user("and?"),
    )
    assert [role for role, _ in found] == ["user", "assistant", "user"]
    assert found[0][1] == [text("one"), text("two")]
    assert [block["type"] for block in found[1][1]] == ["thinking", "tool_use", "tool_use"]
    assert found[2][1] == [
        {"type": "tool_result", "tool_use_id": "a", "content": "1"},
        {"type": "tool_result", "tool_use_id": "b", "content": "2", "is_error": True},
        text("and?"),
    ]
    mixed = Message(role="user", blocks=(TextBlock("t"), ToolResultBlock("a")))
    assert [b["type"] for b in contents(assistant(first), mixed)[1][1]] == ["tool_result", "text"]


def test_results_with_pictures():
    picture = MediaBlock("image/png", data="iVBO")
    shown = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"},
    }
    call = assistant(ToolCallBlock("a", "tide"))
    (_, (_, [result])) = contents(call, tool(ToolResultBlock("a", "see", media=(picture,))))
    assert result["content"] == [text("see"), shown]
    (_, (_, [result])) = contents(call, tool(ToolResultBlock("a", media=(picture,))))
    assert result["content"] == [shown]
    (_, (_, [result])) = contents(call, tool(ToolResultBlock("a")))
    assert result == {"type": "tool_result", "tool_use_id": "a"}


PDF = "application/pdf"


@pytest.mark.parametrize(
    ("media", "wire"),
    [
        (
            MediaBlock("image/jpg", data="AA"),
            ("image", {"type": "base64", "media_type": "image/jpeg", "data": "AA"}),
        ),
        (
            MediaBlock("image/bmp", url="https://x.example/a.bmp"),
            ("image", {"type": "url", "url": "https://x.example/a.bmp"}),
        ),
        (
            MediaBlock(PDF, data="AA"),
            ("document", {"type": "base64", "media_type": PDF, "data": "AA"}),
        ),
        (
            MediaBlock("text/markdown; charset=utf-8", data=b64encode("å".encode()).decode()),
            ("document", {"type": "text", "media_type": "text/plain", "data": "å"}),
        ),
    ],
)
def test_attachments(media, wire):
    ((_, [block]),) = contents(Message(role="user", blocks=(media,)))
    assert (block["type"], block["source"]) == wire


def test_a_document_keeps_its_name():
    named = MediaBlock(PDF, url="https://x.example/a.pdf", name="tides.pdf")
    ((_, [block]),) = contents(Message(role="user", blocks=(named,)))
    assert block["title"] == "tides.pdf"


@pytest.mark.parametrize(
    "media",
    [
        MediaBlock("audio/wav", data="AA"),
        MediaBlock("image/tiff", data="AA"),
        MediaBlock("image/png"),
        MediaBlock("text/plain", data="%%%"),
        MediaBlock("text/plain", data=b64encode(b"\xff\xfe").decode()),
        MediaBlock("text/plain", url="https://x.example/a.txt"),
    ],
)
def test_attachments_without_a_block_are_told(media):
    message = Message(role="user", blocks=(TextBlock("see"), media))
    assert contents(message) == [("user", [text("see")])]
    assert said(message)[0].startswith("1 attachment not sent")


def test_foreign_tool_ids_are_made_fit_in_call_and_result():
    call = ToolCallBlock("functions.tide:0", "tide")
    found = contents(assistant(call), tool(ToolResultBlock("functions.tide:0", "4")))
    wire_id = found[0][1][0]["id"]
    assert wire_id.startswith("functions_tide_0_")
    assert found[1][1][0]["tool_use_id"] == wire_id
    other = contents(assistant(ToolCallBlock("functions/tide/0", "tide")))
    assert other[0][1][0]["id"] != wire_id


def test_a_numbered_id_of_a_server_is_not_given_twice():
    ids = [ToolCallBlock(name, "f") for name in ("c", "c_2", "c", "c", "c_2")]
    ((_, sent),) = contents(assistant(*ids))
    assert [block["id"] for block in sent] == ["c", "c_2", "c_3", "c_4", "c_2_2"]


def test_results_come_first_whatever_messages_they_came_in():
    calls = [ToolCallBlock(name, "f") for name in "abc"]
    results = [tool(ToolResultBlock(call.id, "r")) for call in calls]
    spoken = [results[0], user("first"), *results[1:], user("second")]
    (_, (_, sent)) = contents(assistant(*calls), *spoken)
    assert [block.get("tool_use_id", block.get("text")) for block in sent] == [
        *"abc",
        "first",
        "second",
    ]


def flat(wire):
    """Role and block of everything that is sent, without markers."""
    return [
        (m["role"], {k: v for k, v in block.items() if k != "cache_control"})
        for m in json.loads(wire.body)["messages"]
        for block in m["content"]
    ]


def as_history(answer, number):
    """A turn around an answer, with a result for each of its calls."""
    results = [ToolResultBlock(c.id, f"r{number}") for c in answer.tool_calls]
    return [user(f"q{number}"), answer, *([tool(*results)] if results else [])]


@settings(max_examples=60)
@given(st.lists(answers, min_size=1, max_size=4), st.booleans())
def test_every_carrier_goes_back_byte_for_byte(turns, caching):
    history = [m for n, answer in enumerate(turns) for m in as_history(answer, n)]
    where = claude(cost=CACHING) if caching else HERE
    sent = flat(encode(request(*history, user("end")), where))
    thoughts = [block for _, block in sent if block["type"] in ("thinking", "redacted_thinking")]
    expected = []
    for answer in turns:
        kept = list(answer.blocks)
        while kept and (
            isinstance(kept[-1], ThinkingBlock)
            or (isinstance(kept[-1], TextBlock) and not kept[-1].text)
        ):
            kept.pop()
        signed = any(b.signature or b.redacted for b in answer.thinking)
        if not signed:
            while kept and (
                isinstance(kept[-1], ThinkingBlock)
                or (isinstance(kept[-1], TextBlock) and not kept[-1].text.strip())
            ):
                kept.pop()
        expected += [
            wire_block(b)
            for b in kept
            if isinstance(b, ThinkingBlock) and (b.redacted is not None or b.thought or b.signature)
        ]
    assert thoughts == expected
    opaque = [block for _, block in sent if block["type"] == "something_new"]
    assert opaque == [b.data for a in turns for b in a.blocks if isinstance(b, OpaqueBlock)]


@settings(max_examples=60)
@given(st.lists(answers, min_size=1, max_size=4), st.booleans())
def test_a_longer_history_extends_a_shorter_one(turns, caching):
    history = [m for n, answer in enumerate(turns) for m in as_history(answer, n)]
    where = claude(cost=CACHING) if caching else HERE
    before = []
    for upto in range(len(history) + 1):
        sent = flat(encode(request(*history[:upto]), where))
        assert sent[: len(before)] == before
        before = sent


@settings(max_examples=100)
@given(st.lists(messages, max_size=5), st.lists(blocks, max_size=3))
def test_no_history_breaks_the_shape(history, more):
    found = body(*history, Message(role="user", blocks=tuple(more)))["messages"]
    roles = [message["role"] for message in found]
    assert all(one != other for one, other in itertools.pairwise(roles))
    for message in found:
        assert message["content"]
        kinds = [block.get("type") for block in message["content"]]
        if message["role"] == "assistant":
            assert kinds[-1] not in ("thinking", "redacted_thinking")
        else:
            assert kinds == sorted(kinds, key=lambda kind: kind != "tool_result")


@settings(max_examples=40)
@given(st.lists(answers, min_size=1, max_size=3), st.sampled_from(["none", "all", "allButLast"]))
def test_what_policy_prepares_can_be_sent(turns, strip):
    log = Log()
    for number, answer in enumerate(turns):
        for message in as_history(answer, number):
            log.append(message)
    log.append(user("end"))
    prepared = prepare(
        log,
        snapshot(includeInContext=True, stripFromContext=strip),
        claude(options=[{"type": "toggle"}, BUDGET]),
        RequestOptions(system="s", tools=(TIDE,)),
    )
    found = json.loads(encode_request(prepared.request, prepared.target).body)
    assert found["messages"][-1]["role"] == "user"
    assert found["max_tokens"] > found.get("thinking", {}).get("budget_tokens", 0)


def test_carriers_of_another_origin_do_not_reach_the_encoder():
    log = Log()
    log.append(user("q"))
    log.append(assistant(thought(signature="foreign"), TextBlock("a"), origin=ELSEWHERE))
    log.append(user("next"))
    prepared = prepare(log, snapshot(includeInContext=True), HERE)
    assert b"foreign" not in encode_request(prepared.request, HERE).body
