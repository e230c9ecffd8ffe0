"""The history in a request: carriers byte for byte, order kept, a longer one extends a shorter."""

from __future__ import annotations

import itertools
import json
from base64 import b64encode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthropic_wire import BUDGET, HERE, STREAMS, answers, claude, decode, wire_block
from conversations import ELSEWHERE, blocks, messages, snapshot
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
OFF = ThinkingPlan("off", "anthropic-budget")
ABSENT = ThinkingPlan("absent")
TIDE = Tool("tide", "High water.", {"properties": {"port": {"type": "string"}}})
CACHING = {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75}


def request(*messages, thinking=ON, **more):
    return Request(messages=messages, thinking=thinking, **more)


def encode(asked, where=HERE):
    return encode_request(asked, where)


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


def test_ids_that_start_again_every_turn_are_told_apart():
    turn = [assistant(ToolCallBlock("call_0", "tide")), tool(ToolResultBlock("call_0", "4"))]
    found = contents(*turn, *turn, *turn)
    calls = [content[0]["id"] for role, content in found if role == "assistant"]
    results = [content[0]["tool_use_id"] for role, content in found if role == "user"]
    assert calls == results == ["call_0", "call_0_2", "call_0_3"]
    twice = assistant(ToolCallBlock("c", "a"), ToolCallBlock("c", "b"))
    found = contents(twice, tool(ToolResultBlock("c", "1"), ToolResultBlock("c", "2")))
    assert [block["tool_use_id"] for block in found[1][1]] == ["c", "c_2"]


def test_blank_texts_stay_only_between_signed_thoughts():
    blank = TextBlock("\n\n")
    signed = assistant(blank, thought(), TextBlock(""), TextBlock("a"))
    assert [b["type"] for b in contents(signed, user("x"))[0][1]] == ["text", "thinking", "text"]
    plain = assistant(blank, TextBlock(""), TextBlock("a"))
    assert contents(plain, user("x"))[0][1] == [text("a")]
    assert said(plain, user("x")) == ["1 blank text not sent: the API takes none"]
    assert contents(user(" "), user("x")) == [("user", [text("x")])]
    filled = claude(compat={"empty_content": "(nothing)"})
    assert contents(user(""), where=filled) == [("user", [text("(nothing)")])]


def test_system_messages():
    first = Message(role="system", blocks=(TextBlock("Be brief."),))
    found = body(first, user("x"), first, system="You know tides.")
    assert found["system"] == [text("You know tides."), text("Be brief.")]
    assert found["messages"] == [{"role": "user", "content": [text("x"), text("Be brief.")]}]
    assert said(user("x"), first)[0].startswith("1 system message")


def test_blocks_in_the_wrong_role_are_told():
    odd = Message(role="user", blocks=(thought(), ToolCallBlock("a", "f"), TextBlock("x")))
    strange = assistant(ToolResultBlock("a"), MediaBlock("image/png", data="AA"), TextBlock("y"))
    assert contents(odd, strange, user("z")) == [
        ("user", [text("x")]),
        ("assistant", [text("y")]),
        ("user", [text("z")]),
    ]
    texts = said(odd, strange, user("z"))
    assert texts[0].startswith("1 attachment")
    assert texts[1].startswith("3 blocks not sent")


def test_unknown_blocks_of_a_user_pass():
    block = OpaqueBlock({"type": "search_result", "title": "t"})
    assert contents(Message(role="user", blocks=(block,))) == [("user", [block.data])]


def test_the_text_of_an_unreadable_input_is_not_sent():
    cut = OpaqueBlock({"type": "server_tool_use", "input": {}, "partial_json": "{"})
    assert contents(assistant(cut), user("x"))[0][1] == [{"type": "server_tool_use", "input": {}}]
    call = assistant(ToolCallBlock("a", "tide", {}, arguments='{"port": "B'))
    assert contents(call)[0][1][0]["input"] == {}
    assert any("unreadable arguments" in line for line in said(call))


def test_an_endpoint_that_takes_no_thoughts_gets_none():
    where = claude(compat={"reasoning_out": "never"})
    asked = request(assistant(thought(), TextBlock("a")), user("x"))
    wire = encode(asked, where)
    assert json.loads(wire.body)["messages"][0]["content"] == [text("a")]
    assert wire.notes[0].text == "1 thought not sent: the endpoint takes none back"


def test_an_endpoint_that_demands_its_unsigned_thoughts_gets_them():
    where = claude(compat={"requires_reasoning": "all"})
    answer = assistant(ThinkingBlock("t", "thinking"), TextBlock("a"))
    assert contents(answer, user("x"), where=where)[0][1] == [
        {"type": "thinking", "thinking": "t"},
        text("a"),
    ]


def test_a_filler_stands_in_for_missing_thoughts_where_the_row_asks():
    filler = {"type": "thinking", "thinking": " ", "signature": ""}
    called, plain = assistant(ToolCallBlock("a", "f")), assistant(TextBlock("a"))
    where = claude(compat={"missing_reasoning": " "})
    assert contents(called, user("x"), where=where)[0][1][0] == filler
    assert contents(plain, user("x"), where=where)[0][1] == [text("a")]
    assert contents(called, user("x"), where=where, thinking=OFF)[0][1][0]["type"] == "tool_use"
    where = claude(compat={"missing_reasoning": " ", "requires_reasoning": "all"})
    assert contents(plain, user("x"), where=where)[0][1] == [filler, text("a")]
    own = assistant(thought(), TextBlock("a"))
    assert contents(own, user("x"), where=where)[0][1][0]["thinking"] == "t"


def test_unknown_keys_of_a_thought_go_back():
    answer = assistant(thought(details=[{"model_hint": 1, "type": "other"}]), TextBlock("a"))
    assert contents(answer, user("x"))[0][1][0] == {
        "model_hint": 1,
        "type": "thinking",
        "thinking": "t",
        "signature": "s",
    }


def test_a_request_that_ends_with_an_answer_is_told_unless_it_was_paused():
    answer = assistant(TextBlock("a"), stop_reason="stop")
    assert "ends with an answer" in said(user("q"), answer)[0]
    assert said(user("q"), decode(STREAMS["pause_turn"])) == []
    assert said(user("q"), assistant(thought())) == [
        "1 thought at the end of an answer not sent: the API takes none"
    ]


def test_ids_survive_a_turn_that_was_split_in_two_answers():
    call = assistant(ToolCallBlock("c", "f"))
    once = [call, tool(ToolResultBlock("c", "1"))]
    found = contents(*once, call, assistant(TextBlock("wait")), tool(ToolResultBlock("c", "2")))
    assert found[-1][1][0]["tool_use_id"] == "c_2"


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
