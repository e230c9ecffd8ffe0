"""Responses streams and whole responses become the same messages, whatever the server does."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import wired
from effort import tried
from mull.dialects.registry import decoder
from mull.neutral.assemble import assemble
from mull.neutral.blocks import OpaqueBlock, TextBlock, ThinkingBlock, ToolCallBlock, Wire
from mull.neutral.events import Started, TextDelta, ThinkingDelta
from mull.neutral.usage import Usage
from openai_responses_wire import (
    FOLDER,
    STREAMS,
    TARGET,
    USAGE,
    WHOLE,
    Renderer,
    decode,
    pieces,
    response,
    sse,
)


def values(name: str) -> list[dict]:
    lines = STREAMS[name].splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith(b"data: {")]


def drop(name: str, *kinds: str) -> bytes:
    return sse([value for value in values(name) if not value["type"].endswith(kinds)])


def test_there_are_fixtures():
    assert len(STREAMS) >= 15, FOLDER


@given(made=pieces(), data=st.data())
@tried(2)
def test_a_rendered_message_is_decoded_to_itself(made, data):
    whole = response(made)
    stream = Renderer(data.draw).render(whole)
    blocks = tuple(block for piece in made for block in piece.blocks)
    for answer in (decode(stream), decode(msgspec.json.encode(whole))):
        assert answer.message.blocks == blocks
        assert answer.message.usage == Usage(12, 34, 30, 46, 8)
        assert answer.message.origin == TARGET.origin
        assert answer.failed is None
        assert not answer.warnings
    assert decode(stream).message == decode(msgspec.json.encode(whole)).message


def test_started_tells_the_providers_own_words():
    first = decode(STREAMS["summary-then-calls"]).events[0]
    assert first == Started("resp_1", "thinker-1")


def test_usage_counts_reasoning_inside_the_output():
    assert decode(STREAMS["summary-then-calls"]).message.usage == Usage(
        input=321, output=90, reasoning=64, total=411, cache_read=256
    )


def test_unknown_counts_stay_unknown():
    usage = decode(STREAMS["raw-without-indexes"]).message.usage
    assert usage == Usage(input=23, output=72, total=95)


def test_encrypted_content_is_taken_from_the_finished_item():
    (thought, *_) = decode(STREAMS["summary-then-calls"]).message.thinking
    assert thought.encrypted == "gAAAAABfinal+/seal0=="


def test_encrypted_content_of_an_unfinished_item_is_not_taken():
    data = sse(values("summary-then-calls")[:8])
    (thought,) = decode(data).message.thinking
    assert thought.encrypted is None
    assert thought.thought == "**Reading the question**\n\nTh"


def test_encrypted_content_of_the_finished_response_does_not_replace_the_items_own():
    some = values("summary-then-calls")
    some[-1]["response"]["output"][0]["encrypted_content"] = "gAAAAABsealed-again"
    assert decode(sse(some)).message.thinking[0].encrypted == "gAAAAABfinal+/seal0=="


def test_rotating_ids_do_not_split_items():
    message = decode(STREAMS["rotating-ids"]).message
    assert [type(block) for block in message.blocks] == [ThinkingBlock, TextBlock]
    assert wired(message.blocks[1]) == {"id": "rot_20", "phase": "final_answer"}


def test_unknown_items_keep_their_place():
    kinds = [type(block) for block in decode(STREAMS["hosted-search"]).message.blocks]
    assert kinds == [ThinkingBlock, OpaqueBlock, ThinkingBlock, TextBlock]


def test_annotations_that_came_before_a_cut_are_kept():
    data = drop("hosted-search", "output_item.done", "completed")
    (text,) = (b for b in decode(data).message.blocks if isinstance(b, TextBlock))
    assert wired(text)["part"]["annotations"][0]["title"] == "Tides"


def test_an_item_without_its_end_is_ended_by_the_finished_response():
    whole = decode(WHOLE["hosted-search"]).message
    message = decode(drop("hosted-search", "output_item.done")).message
    by_place = sorted(message.blocks, key=lambda block: whole.blocks.index(block))
    assert tuple(by_place) == whole.blocks


def test_deltas_may_be_missing():
    data = drop("summary-then-calls", ".delta", "text.done", "part.done", "arguments.done")
    assert decode(data).message == decode(WHOLE["summary-then-calls"]).message


def test_frames_of_parts_may_be_missing():
    data = drop("summary-then-calls", "part.added", "part.done", "text.done", "arguments.done")
    assert decode(data).message == decode(WHOLE["summary-then-calls"]).message


def test_openings_may_be_missing():
    data = drop("summary-then-calls", "output_item.added")
    assert decode(data).message == decode(WHOLE["summary-then-calls"]).message


def test_only_the_finished_response_may_tell_all():
    data = sse([values("hosted-search")[-1]])
    assert decode(data).message == decode(WHOLE["hosted-search"]).message


def test_silent_reasoning_keeps_its_place_when_it_ends_late():
    late = [
        {"type": "response.output_item.added", "item": {"type": "reasoning", "id": "rs_1"}},
        {"type": "response.output_item.added", "item": {"type": "message", "id": "msg_1"}},
        {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "Hi"},
        {
            "type": "response.output_item.done",
            "item": {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gA"},
        },
        {"type": "response.completed", "response": {"status": "completed"}},
    ]
    blocks = decode(sse(late)).message.blocks
    assert [type(block) for block in blocks] == [ThinkingBlock, TextBlock]
    assert blocks[0].encrypted == "gA"


def test_numbers_that_mean_nothing_lose_nothing():
    some = values("summary-then-calls")
    for value in some:
        value["sequence_number"] = 0
    assert decode(sse(some)).message == decode(WHOLE["summary-then-calls"]).message


def test_the_whole_stream_twice_is_the_stream_once():
    some = values("summary-then-calls")[:-1]
    last = values("summary-then-calls")[-1:]
    assert decode(sse(some + some + last)).message == decode(WHOLE["summary-then-calls"]).message


def test_a_second_response_on_the_same_stream_is_not_a_replay():
    some = values("done-only")[:-1]
    more = values("cut-short-in-answer")
    for value in more:
        if "response" in value:
            value["response"]["id"] = "resp_2"
    blocks = decode(sse(some + more)).message.blocks
    assert [type(block) for block in blocks] == [ThinkingBlock, ToolCallBlock, TextBlock]


def test_a_response_after_the_end_is_no_part_of_the_answer():
    some = values("done-only")
    more = values("cut-short-in-answer")
    live = decoder(TARGET, reads_on=False)
    events = [*live.feed(sse(some + more)), *live.close()]
    assert assemble(events, TARGET.origin) == decode(sse(some)).message


def test_one_index_for_all_items_does_not_merge_them():
    some = values("summary-then-calls")
    for value in some:
        if "output_index" in value:
            value["output_index"] = 0
    assert decode(sse(some)).message == decode(WHOLE["summary-then-calls"]).message


def test_a_finished_item_that_differs_is_kept_beside_what_was_streamed():
    some = values("phases")
    for value in some:
        if value["type"].endswith("text.delta") and value["delta"] == "ook ":
            value["delta"] = "uck "
    answer = decode(sse(some))
    assert [warning.code for warning in answer.warnings] == ["mismatch"]
    assert wired(answer.message.blocks[0])["part"]["text"] == "I will look it up."


def test_unknown_keys_of_a_reasoning_item_are_kept():
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gA", "mood": 3}
    (thought,) = decode(
        msgspec.json.encode({"status": "completed", "output": [item]})
    ).message.blocks
    assert wired(thought) == {"item": {"mood": 3}}


def test_a_call_without_call_id_is_known_by_its_item():
    item = {"type": "function_call", "id": "fc_1", "name": "look", "arguments": "{}"}
    (call,) = decode(msgspec.json.encode({"status": "completed", "output": [item]})).message.blocks
    assert call == ToolCallBlock("fc_1", "look", wire=Wire("openai-responses", {"id": "fc_1"}))


def test_a_delta_costs_one_event():
    answer = decode(STREAMS["raw-without-indexes"])
    deltas = [event for event in answer.events if isinstance(event, TextDelta | ThinkingDelta)]
    wanted = [value for value in values("raw-without-indexes") if "delta" in value]
    assert sum(bool(delta.text) for delta in deltas) == len(wanted)


@pytest.mark.parametrize(
    ("reason", "word", "status"),
    [
        ("max_output_tokens", "length", "truncated"),
        ("content_filter", "content_filter", "complete"),
        ("steered", "steered", "complete"),
        (None, "incomplete", "complete"),
    ],
)
def test_incomplete_responses_say_why(reason, word, status):
    some = values("cut-short-in-answer")
    some[-1]["response"]["incomplete_details"] = reason and {"reason": reason}
    message = decode(sse(some)).message
    assert (message.stop_reason, message.status) == (word, status)


def test_a_call_cut_short_is_not_a_finished_call():
    item = {"type": "function_call", "call_id": "c", "name": "rm", "arguments": '{"path": "/tm'}
    whole = {
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
        "output": [item],
    }
    message = decode(msgspec.json.encode(whole)).message
    assert (message.stop_reason, message.status) == ("length", "truncated")
    assert message.tool_calls[0].arguments == '{"path": "/tm'


@pytest.mark.parametrize(
    ("body", "text", "code"),
    [
        ({"error": {"message": "no", "type": "bad", "code": None}}, "no", "bad"),
        ({"error": {"message": "no", "code": 500}}, "no", "500"),
        ({"error": "no"}, "no", None),
        ({"detail": "no"}, "no", None),
        ({"status": "failed", "error": {"message": "no", "code": "c"}, "output": []}, "no", "c"),
        ({}, "the provider reported an error without a message", None),
    ],
)
def test_errors_of_whole_answers(body, text, code):
    answer = decode(msgspec.json.encode(body))
    assert (answer.failed.text, answer.failed.code) == (text, code)
    assert answer.message.status == "error"


@pytest.mark.parametrize("status", ["cancelled", "in_progress", "queued"])
def test_a_response_that_is_not_over_is_interrupted(status):
    answer = decode(msgspec.json.encode({"status": status, "output": []}))
    assert answer.message.status == "interrupted"


def test_a_whole_response_inside_a_stream_is_read():
    data = b"data: " + msgspec.json.encode(json.loads(WHOLE["done-only"])) + b"\n\n"
    assert decode(data).message == decode(WHOLE["done-only"]).message


def test_halves_of_a_character_in_two_deltas_are_one():
    some = sse(
        [
            {"type": "response.output_item.added", "item": {"type": "message", "id": "m"}},
            {"type": "response.output_text.delta", "item_id": "m", "delta": "FIRST"},
            {"type": "response.output_text.delta", "item_id": "m", "delta": "SECOND"},
            {"type": "response.output_text.done", "item_id": "m", "text": "🧠"},
            {"type": "response.completed", "response": {"status": "completed", "usage": USAGE}},
        ]
    )
    some = some.replace(b"FIRST", rb"\ud83e").replace(b"SECOND", rb"\udde0")
    answer = decode(some)
    assert answer.message.text == "🧠"
    assert not answer.warnings
