"""Chat Completions streams and whole responses become the same message, however cut or damaged."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from conversations import listed, target, wired
from effort import tried
from mull.neutral.blocks import OpaqueBlock, TextBlock, ThinkingBlock, ToolCallBlock, Wire
from mull.neutral.events import (
    Finished,
    Started,
    ThinkingCarrier,
    ThinkingDelta,
    ToolCallDelta,
    UsageReported,
)
from openai_chat_wire import (
    STREAMS,
    answers,
    decode,
    deltas,
    events_of,
    render_stream,
    render_whole,
    whole,
)


def call(id_: str | None = None, name: str | None = None, arguments: str = "", **more):
    return {"id": id_, "function": {"name": name, "arguments": arguments}, **more}


def test_events_come_in_wire_order():
    kinds = [type(event) for event in events_of(STREAMS["openrouter-encrypted"])]
    assert kinds == [
        Started,
        ThinkingDelta,
        ToolCallDelta,
        ThinkingCarrier,
        UsageReported,
        Finished,
    ]


@tried(2)
@given(answers(), st.data())
def test_any_answer_is_read_from_a_stream_and_from_a_whole_response(message, data):
    assert decode(render_whole(message)) == message
    assert decode(render_stream(data.draw, message)) == message


# Reasoning fields


def test_the_field_that_delivered_is_read_on_unless_another_comes_alone():
    body = deltas({"reasoning": "a"}, {"reasoning_content": "X", "reasoning": "b"},
                  {"reasoning_content": "c"}, {"content": "d"})  # fmt: skip
    assert decode(body).blocks == (ThinkingBlock("abc", "reasoning"), TextBlock("d"))


def test_a_field_name_is_the_only_one_read():
    body = deltas({"reasoning": "a", "reasoning_content": "b", "mine": "c"}, {"content": "d"})
    assert decode(body, field="mine").blocks == (ThinkingBlock("c", "mine"), TextBlock("d"))


def test_the_endpoints_order_decides_between_fields():
    ordered = target(compat={"reasoning_in": ("reasoning", "reasoning_content")})
    body = deltas({"reasoning_content": "a", "reasoning": "b"})
    assert decode(body, ordered).thinking[0].source_field == "reasoning"


def test_an_empty_field_takes_the_name_of_the_one_that_speaks():
    body = deltas({"reasoning_content": "", "reasoning": None}, {"reasoning": "x"})
    assert decode(body).blocks == (ThinkingBlock("x", "reasoning"),)


def test_an_empty_field_alone_is_an_empty_thought():
    expected = (ThinkingBlock("", "reasoning_content"),)
    assert decode(deltas({"reasoning_content": ""})).blocks == expected
    assert decode(whole({"content": "", "reasoning_content": ""})).blocks == expected


def test_thoughts_between_texts_stay_there():
    body = deltas({"reasoning": "a"}, {"content": "b"}, {"reasoning": "c"}, {"content": "d"})
    assert decode(body).blocks == (
        ThinkingBlock("a", "reasoning"),
        TextBlock("b"),
        ThinkingBlock("c", "reasoning"),
        TextBlock("d"),
    )


def test_details_belong_to_the_thought_they_came_in():
    def piece(index, **more):
        return [{"type": "reasoning.text", "index": index, **more}]

    body = deltas(
        {"reasoning": "a", "reasoning_details": piece(0, text="a")},
        {"content": "b"},
        {"reasoning_details": piece(0, signature="s0")},
        {"content": "c"},
        {"reasoning": "d", "reasoning_details": piece(1, text="d")},
        {"reasoning_details": piece(1, signature="s1")},
        {"content": "e"},
    )
    first = ThinkingBlock(
        "a",
        "reasoning",
        wire=listed(piece(0, text="a", signature="s0")),
    )
    second = ThinkingBlock(
        "d",
        "reasoning",
        wire=listed(piece(1, text="d", signature="s1")),
    )
    assert decode(body).blocks == (first, TextBlock("bc"), second, TextBlock("e"))


def test_a_carrier_after_text_does_not_tear_it():
    encrypted = {"type": "reasoning.encrypted", "data": "x", "index": 0}
    body = deltas({"content": "a"}, {"reasoning_details": [encrypted]}, {"content": "b"})
    kept = ThinkingBlock("", "reasoning_details", wire=listed([encrypted]))
    assert decode(body).blocks == (TextBlock("ab"), kept)


def test_details_that_contradict_are_entries_of_their_own():
    one = {"type": "reasoning.encrypted", "id": "call_1", "data": "x", "index": 0}
    two = {"type": "reasoning.encrypted", "id": "call_2", "data": "y", "index": 0}
    signed = {"type": "reasoning.text", "text": "a", "signature": "s", "index": 1}
    more = {"type": "reasoning.text", "text": "b", "index": 1}
    body = deltas(*({"reasoning_details": [d]} for d in (one, two, two, signed, more)))
    assert wired(decode(body).thinking[0])["reasoning_details"] == [one, two, signed, more]


def test_details_without_an_index_join_only_their_neighbours():
    def piece(text):
        return {"type": "reasoning.text", "text": text}

    other = {"type": "reasoning.encrypted", "data": "x"}
    body = deltas(
        *({"reasoning_details": [d]} for d in (piece("a"), piece("b"), other, piece("c")))
    )
    assert wired(decode(body).thinking[0])["reasoning_details"] == [piece("ab"), other, piece("c")]


def test_a_stream_that_repeats_itself_is_read_once():
    repeats = target(compat={"cumulative": True})

    def both(text):
        return {"reasoning_details": [{"type": "text", "text": text}]}

    body = deltas(both("Hm"), both("Hm, so"), {"content": "A"}, {"content": "A b"})
    expected = ThinkingBlock(
        "Hm, so",
        "reasoning_details",
        wire=listed([{"type": "text", "text": "Hm, so"}]),
    )
    assert decode(body, repeats).blocks == (expected, TextBlock("A b"))
    body = deltas({"reasoning": "a"}, {"reasoning": "ab"}, {"reasoning": "ab"}, {"reasoning": "x"})
    assert decode(body, repeats).blocks == (ThinkingBlock("abx", "reasoning"),)


def test_a_second_opaque_signs_a_thought_of_its_own():
    body = deltas({"reasoning_text": "a"}, {"reasoning_opaque": "s"}, {"reasoning_opaque": "t"})
    assert decode(body).blocks == (
        ThinkingBlock("a", "reasoning_text", signature="s"),
        ThinkingBlock("", "reasoning_text", signature="t"),
    )


def test_members_of_a_list_keep_what_is_no_text():
    reference = {"type": "tool_reference", "tool": "web"}
    inner = [{"type": "text", "text": "a"}, reference, {"type": "text", "text": "b"}]
    member = {"type": "thinking", "thinking": inner}
    expected = ThinkingBlock("ab", "content_list", wire=Wire("openai-chat", {"thinking": inner}))
    assert decode(whole({"content": [member, "c"]})).blocks == (expected, TextBlock("c"))
    pieces = [{"content": [{"type": "thinking", "thinking": [part]}]} for part in inner]
    assert decode(deltas(*pieces, {"content": "c"})).blocks == (expected, TextBlock("c"))


def test_signed_members_stay_apart():
    def member(text, signature):
        inner = [{"type": "text", "text": text}]
        return {"type": "thinking", "thinking": inner, "signature": signature}

    body = whole({"content": [member("a", "s"), member("b", "t")]})
    assert [(b.thought, b.signature) for b in decode(body).thinking] == [("a", "s"), ("b", "t")]


def test_marked_content_without_tags_is_a_thought():
    mark = {"extra_content": {"google": {"thought": True}}}
    carried = {"extra_content": {"google": {"thought_signature": "s"}}}
    body = deltas({"content": "a", **mark}, {"content": "b"}, {"content": "", **carried})
    assert decode(body).blocks == (
        ThinkingBlock("a", "extra_content"),
        TextBlock("b", wire=Wire("openai-chat", carried)),
    )


def test_held_text_stands_before_the_call():
    body = deltas({"content": "\n<thi"}, {"tool_calls": [call("c", "f", "{}")]})
    assert decode(body).blocks == (TextBlock("\n<thi"), ToolCallBlock("c", "f"))


def test_pictures_are_kept():
    pictures = {"images": [{"type": "image_url", "image_url": {"url": "data:,"}}]}
    assert decode(deltas({"content": "a", **pictures})).blocks == (
        TextBlock("a"),
        OpaqueBlock(pictures),
    )
