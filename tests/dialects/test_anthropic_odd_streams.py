"""Servers that speak the Messages API in their own way: nothing is lost, nothing is invented."""

from __future__ import annotations

import pytest

from anthropic_wire import (
    HERE,
    STREAMS,
    begin,
    decode,
    delta,
    ended,
    ending,
    events_of,
    sse,
    started,
    stop,
)
from conversations import wired
from mull.dialects.anthropic.decode import ChunkInterpreter
from mull.dialects.anthropic.fold import Fold
from mull.dialects.registry import decoder
from mull.neutral.assemble import assemble
from mull.neutral.blocks import OpaqueBlock, TextBlock, ThinkingBlock, ToolCallBlock, Wire
from mull.neutral.events import (
    Failed,
    Finished,
    Warned,
)
from mull.neutral.usage import Usage


def test_a_signature_of_a_block_that_never_stopped_does_not_count():
    (thought,) = decode(STREAMS["cut_in_signature"]).blocks
    assert thought == ThinkingBlock("Half a thou", source_field="thinking")


def test_lists_grow_in_the_fold_and_nowhere_else():
    start, more = {"citations": [1], "seen": None}, [5]
    fold = Fold(start)
    fold.add({"citation": 2, "seen": more})
    first = fold.build()
    fold.add({"citation": 3, "seen": [6]})
    assert fold.build() == {"citations": [1, 2, 3], "seen": [5, 6]}
    assert first == {"citations": [1, 2], "seen": [5]}
    assert (start, more) == ({"citations": [1], "seen": None}, [5])


def test_a_list_that_another_value_replaced_begins_anew():
    fold, again = Fold({}), [2]
    for value in ([1], 7, again, [3]):
        fold.add({"novel": value})
    assert fold.build() == {"novel": [2, 3]}
    assert again == [2]


def test_a_late_signature_still_finds_its_block():
    data = sse(
        started(),
        begin(0, type="thinking", thinking=""),
        delta(0, "thinking", thinking="t"),
        stop(0),
        delta(0, "signature", signature="late"),
        *ended(),
    )
    assert decode(data).thinking[0].signature == "late"


def test_the_end_of_a_message_ends_blocks_whose_stops_got_lost():
    data = sse(
        started(),
        begin(0, type="thinking", thinking=""),
        delta(0, "signature", signature="s"),
        begin(1, type="novel", a=1),
        *ended(),
    )
    assert decode(data).blocks == (
        ThinkingBlock("", "thinking", signature="s"),
        OpaqueBlock({"type": "novel", "a": 1}),
    )


def test_a_block_without_any_signature_has_none():
    data = sse(started(), begin(0, type="thinking", thinking="t"), stop(0), *ended())
    assert decode(data).thinking[0].signature is None


def test_unknown_keys_of_a_thinking_block_are_kept():
    block = {"type": "thinking", "thinking": "t", "signature": "s", "model_hint": {"a": 1}}
    data = sse(started(), begin(0, **block), stop(0), *ended())
    assert wired(decode(data).thinking[0]) == {"model_hint": {"a": 1}}


def test_deltas_without_a_start_open_their_block():
    data = sse(
        started(),
        delta(0, "thinking", thinking="t"),
        delta(1, "text", text="x"),
        delta(2, "input_json", partial_json="{}"),
        *ended(),
    )
    message = decode(data)
    assert [type(block) for block in message.blocks] == [ThinkingBlock, TextBlock]
    assert [e.code for e in events_of(data) if isinstance(e, Warned)] == ["unexpected_delta"]


def test_values_without_an_index_belong_to_the_newest_block():
    values = [
        started(),
        begin(0, type="text", text=""),
        delta(0, "text", text="a"),
        begin(1, type="text", text=""),
        delta(1, "text", text="b"),
        stop(1),
        *ended(),
    ]
    for value in values:
        value.pop("index", None)
    assert decode(sse(*values)).blocks == (TextBlock("a"), TextBlock("b"))


def test_a_delta_that_points_at_another_kind_of_block_is_not_lost():
    data = sse(
        started(),
        begin(0, type="text", text=""),
        delta(0, "thinking", thinking="t"),
        delta(0, "text", text="x"),
        stop(0),
        *ended(),
    )
    assert set(decode(data).blocks) == {TextBlock("x"), ThinkingBlock("t", "thinking")}


def test_text_that_points_at_a_call_is_text():
    data = sse(
        started(),
        begin(0, type="tool_use", id="c", name="f", input={}),
        delta(0, "text", text="x"),
        stop(0),
        *ended(),
    )
    assert decode(data).blocks == (ToolCallBlock("c", "f"), TextBlock("x"))


def test_blocks_that_are_no_objects_are_passed_over():
    whole = b'{"type":"message","content":[null,3,{"type":"text","text":"x"}],"stop_reason":"x"}'
    assert decode(whole).blocks == (TextBlock("x"),)
    assert decode(sse(started(id="a"), started(id="b"), *ended())).status == "no_answer"


def test_unknown_deltas_of_known_blocks_become_their_extra():
    data = sse(
        started(),
        begin(0, type="text", text=""),
        delta(0, "tone", tone="so"),
        delta(0, "tone", tone="ft"),
        stop(0),
        begin(1, type="tool_use", id="c", name="f", input={}),
        delta(1, "reason", reason="because"),
        stop(1),
        *ended(),
    )
    assert decode(data).blocks == (
        TextBlock("", wire=Wire("anthropic", {"tone": "soft"})),
        ToolCallBlock("c", "f", wire=Wire("anthropic", {"reason": "because"})),
    )


def test_two_calls_with_one_id_stay_two():
    data = sse(
        started(),
        begin(0, type="tool_use", id="c", name="f", input={}),
        begin(1, type="tool_use", id="c", name="g", input={}),
        delta(1, "input_json", partial_json='{"b":1}'),
        delta(0, "input_json", partial_json='{"a":1}'),
        stop(0),
        stop(1),
        *ended(),
    )
    first, second = decode(data).tool_calls
    assert (first.name, first.input) == ("f", {"a": 1})
    assert (second.name, second.input) == ("g", {"b": 1})
    assert first.id == "c" != second.id


def test_an_unfinished_unknown_block_is_told_not_handed_on():
    data = sse(started(), begin(0, type="server_tool_use", id="s", name="n", input={}))
    assert decode(data).blocks == ()
    assert [e.code for e in events_of(data) if isinstance(e, Warned)] == ["unfinished_block"]


def test_an_input_of_an_unknown_block_that_is_no_json_is_stored_as_text():
    data = sse(
        started(),
        begin(0, type="server_tool_use", id="s", name="n", input={}),
        delta(0, "input_json", partial_json='{"q": "cu'),
        stop(0),
        *ended("max_tokens"),
    )
    (block,) = decode(data).blocks
    assert isinstance(block, OpaqueBlock)
    assert block.data["input"] == {}
    assert block.data["partial_json"] == '{"q": "cu'


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "tool_calls"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
        ("pause_turn", "pause_turn"),
        ("something_new", "something_new"),
    ],
)
def test_stop_reasons(word, reason):
    data = sse(started(), begin(0, type="text", text="x"), stop(0), *ended(word))
    assert ending(data) == Finished(reason)


def test_a_call_makes_a_plain_stop_a_call_but_not_a_cut_one():
    call = [begin(0, type="tool_use", id="c", name="f", input={}), stop(0)]
    assert ending(sse(started(), *call, *ended("end_turn"))) == Finished("tool_calls")
    assert ending(sse(started(), *call, *ended("max_tokens"))) == Finished("length")


def test_a_refusal_says_why():
    warned = [e for e in events_of(STREAMS["refusal"]) if isinstance(e, Warned)]
    text = "reasoning_extraction: The request asks for raw reasoning."
    assert warned == [Warned("refusal", text)]


def test_dropped_thinking_of_the_request_is_told():
    row = {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "model_mismatch"}
    data = sse(started(input_transformations=[row]), begin(0, type="text", text="x"), *ended())
    assert Warned("thinking_dropped", "messages.1.content.0: model_mismatch") in events_of(data)


def test_counts_are_cumulative_and_zero_does_not_undo_one():
    data = sse(
        started(usage={"input_tokens": 9, "cache_read_input_tokens": None, "output_tokens": 1}),
        {"type": "message_delta", "delta": {}, "usage": {"input_tokens": 0, "output_tokens": 5}},
        *ended(output_tokens=7, output_tokens_details={"thinking_tokens": 0}),
    )
    assert decode(data).usage == Usage(input=9, output=7, reasoning=0, total=16)


def test_unknown_counts_are_none():
    assert decode(sse(started(), *ended())).usage is None
    assert decode(sse(started(usage={"output_tokens": 3}), *ended())).usage == Usage(output=3)
    dirty_counts = {"input_tokens": "7", "output_tokens": True, "output_tokens_details": 3}
    assert decode(sse(started(usage=dirty_counts), *ended())).usage == Usage()


def test_a_second_answer_inside_the_first_fails_and_keeps_both_apart():
    message = decode(STREAMS["spliced"])
    assert message.status == "error"
    assert [b.signature for b in message.thinking] == ["EqQBhalf", "SigAgain"]
    assert [c.id for c in message.tool_calls] == ["toolu_01cut", "toolu_02again"]
    assert ending(STREAMS["spliced"]).code == "spliced"


def test_an_answer_announced_twice_is_one():
    message = decode(STREAMS["announced_twice"])
    assert (message.text, message.status) == ("Once.", "complete")


def test_an_answer_after_the_end_is_no_part_of_it():
    one = [begin(0, type="text", text="a"), stop(0), *ended(output_tokens=1)]
    data = sse(started(), *one, started(id="msg_2"), *one)
    live = decoder(HERE, reads_on=False)
    message = assemble([*live.feed(data), *live.close()])
    assert message.blocks == (TextBlock("a"),)
    assert message.status == "complete"


def test_an_answer_after_the_end_of_another_in_a_file_is_kept_with_a_warning():
    one = [begin(0, type="text", text="a"), stop(0), *ended(output_tokens=1)]
    data = sse(started(), *one, started(id="msg_2"), *one)
    assert decode(data).text == "aa"
    assert [event.code for event in events_of(data) if isinstance(event, Warned)]


def test_an_answer_where_the_end_should_be_is_kept_with_a_warning():
    one = [begin(0, type="text", text="a"), stop(0), *ended(output_tokens=1)[:-1]]
    data = sse(started(), *one, started(id="msg_2"), *one)
    assert decode(data).blocks == (TextBlock("a"), TextBlock("a"))
    assert [e.code for e in events_of(data) if isinstance(e, Warned)] == ["second_message"]


@pytest.mark.parametrize(
    ("body", "text", "code"),
    [
        ('{"type":"error","error":{"type":"api_error","message":"broken"}}', "broken", "api_error"),
        ('{"error":{"message":"quota exceeded"}}', "quota exceeded", None),
        ('{"error":"no such model"}', "no such model", None),
        ('{"error":{"code":529,"message":"busy"}}', "busy", "529"),
        ('{"type":"error"}', "the endpoint reported an error", None),
        ('{"detail":"Not Found"}', "the answer has no content", "unreadable"),
        ("3", "the stream ended before it began", "empty"),
    ],
)
def test_errors_in_the_provider_s_words(body, text, code):
    last = ending(body.encode())
    assert isinstance(last, Failed)
    assert (last.text, last.code) == (text, code)


def test_a_lone_string_as_content_is_text():
    assert decode(b'{"type":"message","content":"hi","stop_reason":"end_turn"}').text == "hi"
    assert ending(b'[{"type":"message_stop"}]') == Finished(None)
    assert isinstance(ChunkInterpreter(HERE).whole([])[0], Failed)


def test_event_names_stand_in_for_a_missing_type():
    data = b'event: error\ndata: {"message":"gone"}\n\n'
    assert (ending(data).text, decode(data).status) == ("gone", "error")


def test_late_deltas_of_whole_blocks_are_told():
    data = sse(
        started(),
        begin(0, type="novel"),
        stop(0),
        delta(0, "novel", more="x"),
        begin(1, type="redacted_thinking", data="d"),
        delta(1, "redacted", data="e"),
        delta(1, "text", text="t"),
        stop(1),
        begin(2, type="redacted_thinking", data=None),
        stop(2),
        *ended(),
    )
    assert decode(data).blocks == (
        OpaqueBlock({"type": "novel"}),
        ThinkingBlock("", "redacted_thinking", redacted="d"),
        TextBlock("t"),
        OpaqueBlock({"type": "redacted_thinking", "data": None}, broken=True),
    )
    codes = [e.code for e in events_of(data) if isinstance(e, Warned)]
    assert codes == ["unexpected_delta", "unexpected_delta", "malformed"]


def test_arguments_given_as_text_in_the_start_are_read():
    start = begin(0, type="tool_use", id="c", name="f", input='{"a":1}')
    assert decode(sse(started(), start, stop(0), *ended())).tool_calls[0].input == {"a": 1}
    assert decode(sse(started(), start)).tool_calls[0].input == {"a": 1}


def test_done_is_an_end_too():
    data = sse(started(), begin(0, type="text", text="x"), stop(0)) + b"data: [DONE]\n\n"
    assert ending(data) == Finished(None)
