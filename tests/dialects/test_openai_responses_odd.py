"""What servers do that the API does not promise."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answers import assembled, read, target_of, written
from conversations import wired
from mull.dialects.openai_responses.decode import ChunkInterpreter
from mull.dialects.registry import encode_request
from mull.neutral.assemble import assemble
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolCallBlock
from mull.neutral.request import Request
from mull.neutral.thinking import ThinkingPlan
from openai_responses_wire import TARGET, Answer, decode, sse

DONE = {"type": "response.completed", "response": {"status": "completed"}}


def stream(*events: tuple[str, dict[str, Any]]) -> Answer:
    return decode(sse([*({"type": f"response.{kind}", **more} for kind, more in events), DONE]))


def whole(*items: dict[str, Any]) -> Answer:
    return decode(msgspec.json.encode({"status": "completed", "output": list(items)}))


@pytest.mark.parametrize(
    "kind",
    [
        "output_text.delta",
        "output_text.done",
        "refusal.delta",
        "reasoning_text.delta",
        "reasoning_text.done",
        "reasoning_summary_part.added",
        "content_part.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.added",
        "output_item.done",
        "created",
    ],
)
@pytest.mark.parametrize("value", [None, 3, [], "x"])
def test_missing_and_wrong_values_are_nothing(kind, value):
    names = ("delta", "text", "refusal", "arguments", "part", "item", "response")
    given = {} if value == "x" else dict.fromkeys(names, value)
    answer = stream((kind, given))
    assert answer.message.blocks == ()
    assert answer.failed is None


def test_deltas_without_any_name_continue_the_last_item_of_their_kind():
    answer = stream(
        ("reasoning_text.delta", {"delta": "a"}),
        ("output_text.delta", {"delta": "b"}),
        ("reasoning_text.delta", {"delta": "c"}),
        ("output_text.delta", {"delta": "d"}),
    )
    assert [block.thought for block in answer.message.thinking] == ["ac"]
    assert answer.message.text == "bd"


def test_an_id_that_is_used_again_is_another_item():
    item = {"type": "message", "id": "msg_0", "role": "assistant"}
    answer = stream(
        ("output_item.added", {"item": item}),
        ("output_text.delta", {"item_id": "msg_0", "delta": "one"}),
        ("output_item.done", {"item": {**item, "content": [_text("one")]}}),
        ("output_item.added", {"item": item}),
        ("output_text.delta", {"item_id": "msg_0", "delta": "two"}),
        ("output_item.done", {"item": {**item, "content": [_text("two")]}}),
    )
    assert [block.text for block in answer.message.blocks] == ["one", "two"]


def _text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text}


def test_an_item_that_is_added_and_done_twice_is_one_item():
    item = {"type": "message", "id": "msg_0", "content": [_text("one")]}
    events = [("output_item.added", {"item": item}), ("output_item.done", {"item": item})]
    answer = stream(events[0], events[0], events[1], events[1])
    assert answer.message.text == "one"


def test_empty_parts_before_one_with_text_count():
    item = {"type": "reasoning", "id": "r", "summary": [_part(""), _part("b")]}
    streamed = stream(
        ("reasoning_summary_text.delta", {"item_id": "r", "summary_index": 1, "delta": "b"}),
        ("output_item.done", {"item": item}),
    )
    assert streamed.message.blocks == whole(item).message.blocks
    assert streamed.message.thinking[0].thought == "\n\nb"


def _part(text: str) -> dict[str, Any]:
    return {"type": "summary_text", "text": text}


def test_absurd_part_numbers_cost_nothing():
    answer = stream(
        ("reasoning_summary_text.delta", {"item_id": "r", "summary_index": 10**12, "delta": "b"})
    )
    assert answer.message.thinking[0].thought == "b"


def test_arguments_as_an_object_are_read():
    call = {"type": "function_call", "call_id": "c", "name": "look", "arguments": {"at": 1}}
    assert whole(call).message.blocks == (ToolCallBlock("c", "look", {"at": 1}),)


def test_arguments_that_differ_from_the_streamed_ones_are_told_and_sent_back():
    call = {"type": "function_call", "id": "f", "call_id": "c", "name": "look"}
    answer = stream(
        ("output_item.added", {"item": call}),
        ("function_call_arguments.delta", {"item_id": "f", "delta": '{"at":1}'}),
        ("output_item.done", {"item": {**call, "arguments": '{"at":2}'}}),
    )
    assert [warning.code for warning in answer.warnings] == ["mismatch"]
    request = Request((answer.message,), ThinkingPlan("absent"))
    (sent,) = msgspec.json.decode(encode_request(request, TARGET).body)["input"]
    assert sent["arguments"] == '{"at":2}'


def test_finished_arguments_that_are_no_object_are_not_sent_back():
    call = {"type": "function_call", "id": "f", "call_id": "c", "name": "look"}
    answer = stream(
        ("output_item.added", {"item": call}),
        ("function_call_arguments.delta", {"item_id": "f", "delta": '{"at":1}'}),
        ("output_item.done", {"item": {**call, "arguments": '{"at":'}}),
    )
    request = Request((answer.message,), ThinkingPlan("absent"))
    (sent,) = msgspec.json.decode(encode_request(request, TARGET).body)["input"]
    assert (sent["name"], sent["arguments"]) == ("look", '{"at":1}')


def test_a_thought_that_differs_from_the_streamed_one_is_sent_back_as_finished():
    answer = stream(
        ("reasoning_summary_text.delta", {"item_id": "r", "delta": "one"}),
        ("output_item.done", {"item": {"type": "reasoning", "id": "r", "summary": [_part("two")]}}),
    )
    (thought,) = answer.message.thinking
    assert (thought.thought, wired(thought)) == ("one", {"parts": [_part("two")]})
    assert [warning.code for warning in answer.warnings] == ["mismatch"]


def test_bare_texts_in_the_place_of_parts_are_read():
    answer = whole(
        {"type": "reasoning", "summary": ["why", 3], "content": "at length"},
        {"type": "message", "content": "Hi"},
    )
    assert answer.message.blocks == (
        ThinkingBlock("why", "summary", kind="summary"),
        ThinkingBlock("at length", "reasoning_text"),
        TextBlock("Hi"),
    )


def test_unknown_parts_of_a_message_are_kept_and_sent_back():
    part = {"type": "output_smell", "smell": "rose"}
    message = whole({"type": "message", "id": "m", "content": [_text("a"), part]}).message
    request = Request((message,), ThinkingPlan("absent"))
    (sent,) = msgspec.json.decode(encode_request(request, TARGET).body)["input"]
    assert sent["content"][1] == part


def test_the_name_of_the_event_stands_in_for_a_missing_type():
    data = b'event: response.output_text.delta\ndata: {"delta":"Hi","item_id":"m"}\n\n'
    assert decode(data).message.text == "Hi"


def test_late_events_after_an_error_do_not_double_anything():
    item = {"type": "message", "id": "m", "content": [_text("So far")]}
    answer = decode(
        sse(
            [
                {"type": "response.output_text.delta", "item_id": "m", "delta": "So"},
                {"type": "error", "message": "overloaded", "code": "overloaded"},
                {"type": "response.output_item.done", "item": item},
                {"type": "response.failed", "response": {"status": "failed", "output": [item]}},
            ]
        )
    )
    assert (answer.message.text, answer.message.status) == ("So far", "error")


@pytest.mark.parametrize("value", [None, 3, "x", [], [1]])
def test_values_that_are_no_objects_are_ignored(value):
    interpreter = ChunkInterpreter(TARGET)
    assert interpreter.take(None, value) == []
    assert [type(event).__name__ for event in interpreter.whole(value)] == ["Failed"]


@given(st.lists(st.integers(0, 3), max_size=30))
@settings(max_examples=50)
def test_interleaved_items_stay_apart(order):
    spoken: dict[int, str] = {}
    events = []
    for count, number in enumerate(order):
        spoken[number] = spoken.get(number, "") + f"{count} "
        delta = {"item_id": f"m{number}", "output_index": number, "delta": f"{count} "}
        events.append(("output_text.delta", delta))
    texts = [block.text for block in stream(*events).message.blocks]
    assert texts == list(spoken.values())


def test_a_blank_line_inside_a_part_is_no_new_part():
    """`**Title**`, a blank line and text are one summary part, whatever the deltas are."""
    at = {"item_id": "rs_1", "output_index": 0}
    parts = ["**Title**\n\nText", "\n\nSecond\n\n"]
    deltas = [["**Title**", "\n\n", "Text"], ["\n\n", "Second", "\n\n"]]
    told = [{"type": "summary_text", "text": text} for text in parts]
    item = {"id": "rs_1", "type": "reasoning", "summary": told, "encrypted_content": "gAAA"}
    told_events = [{"type": "response.output_item.added", "output_index": 0, "item": {
        "id": "rs_1", "type": "reasoning", "summary": []}}]  # fmt: skip
    for number, pieces in enumerate(deltas):
        delta = {"type": "response.reasoning_summary_text.delta", "summary_index": number, **at}
        told_events += [{**delta, "delta": piece} for piece in pieces]
    told_events.append({"type": "response.output_item.done", "output_index": 0, "item": item})
    done = {"type": "response.completed", "response": {"status": "completed", "output": [item]}}
    to = target_of("openai-responses")
    events = read(sse([*told_events, done]), to)
    again = written("openai-responses", events)
    assert assembled(again, to).blocks == assemble(events).blocks
    finished = [json.loads(line[6:]) for line in again.splitlines() if b"summary_text.done" in line
                and line.startswith(b"data: ")]  # fmt: skip
    assert [one["text"] for one in finished] == parts


@pytest.mark.parametrize(
    "numbers",
    [[4, 4, 4], [4, 5, 4], [4, 5, 5], [1, 1, 2], [0, 0, 0]],
    ids=str,
)
def test_numbers_that_repeat_lose_no_text(numbers):
    """Some servers count wrongly, or start again with every item."""
    deltas = ["Hello ", "big ", "world"]
    events = [
        ("output_text.delta", {"item_id": "m", "delta": delta, "sequence_number": number})
        for delta, number in zip(deltas, numbers, strict=True)
    ]
    assert stream(*events).message.text == "Hello big world"


def test_events_that_are_sent_again_are_read_once():
    deltas = [("Hello ", 4), ("world", 5)]
    events = [
        ("output_text.delta", {"item_id": "m", "delta": delta, "sequence_number": number})
        for delta, number in deltas
    ]
    assert stream(*events, *events).message.text == "Hello world"
