"""Events fold into blocks by the wire's key, then a call's id, then adjacency."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.neutral.assemble import Assembler, assemble
from mull.neutral.blocks import OpaqueBlock, TextBlock, ThinkingBlock, ToolCallBlock, Wire
from mull.neutral.events import (
    BlockEnded,
    Failed,
    Finished,
    OpaqueReceived,
    Reclassified,
    Started,
    TextDelta,
    ThinkingCarrier,
    ThinkingDelta,
    ToolCallDelta,
    UsageReported,
    Warned,
)
from mull.neutral.messages import Origin
from mull.neutral.usage import Usage

STOP = Finished("stop")


def test_ec_003_wire_order_is_kept_through_interleaving():
    message = assemble(
        [
            ThinkingDelta("a", key=0, source_field="thinking"),
            ThinkingCarrier(key=0, signature="s0"),
            TextDelta("x", key=1),
            ThinkingDelta("b", key=2, source_field="thinking"),
            TextDelta("y", key=1),
            ToolCallDelta(key=3, id="c", name="f", arguments='{"a":1}'),
            Finished("tool_calls"),
        ]
    )
    assert message.blocks == (
        ThinkingBlock("a", "thinking", signature="s0"),
        TextBlock("xy"),
        ThinkingBlock("b", "thinking"),
        ToolCallBlock("c", "f", {"a": 1}),
    )
    assert (message.status, message.stop_reason) == ("complete", "tool_calls")


def test_without_keys_neighbours_of_a_kind_join_and_others_part():
    message = assemble(
        [ThinkingDelta("a"), ThinkingDelta("b"), TextDelta("c"), TextDelta("d"), STOP]
    )
    assert message.blocks == (ThinkingBlock("ab"), TextBlock("cd"))


def test_an_ended_block_is_not_continued():
    message = assemble([TextDelta("a"), BlockEnded(), TextDelta("b"), STOP])
    assert message.blocks == (TextBlock("a"), TextBlock("b"))


def test_two_interleaved_calls_stay_apart_by_key():
    message = assemble(
        [
            ToolCallDelta(key=0, id="a", name="f", arguments='{"x"'),
            ToolCallDelta(key=1, id="b", name="g", arguments='{"y"'),
            ToolCallDelta(key=0, arguments=":1}"),
            ToolCallDelta(key=1, arguments=":2}"),
            STOP,
        ]
    )
    assert message.tool_calls == (
        ToolCallBlock("a", "f", {"x": 1}),
        ToolCallBlock("b", "g", {"y": 2}),
    )


def test_a_new_id_under_a_used_index_opens_a_new_call():
    message = assemble(
        [
            ToolCallDelta(key=0, id="a", name="f", arguments='{"p":"a"}'),
            ToolCallDelta(key=0, id="b", name="f", arguments='{"p":"b"}'),
            STOP,
        ]
    )
    assert [call.input for call in message.tool_calls] == [{"p": "a"}, {"p": "b"}]


def test_a_known_id_wins_over_the_index():
    message = assemble(
        [
            ToolCallDelta(key=0, id="a", name="f", arguments='{"p"'),
            ToolCallDelta(key=0, id="b", name="g", arguments='{"q"'),
            ToolCallDelta(key=1, id="b", arguments=":2}"),
            ToolCallDelta(key=9, id="a", arguments=":1}"),
            STOP,
        ]
    )
    assert [call.input for call in message.tool_calls] == [{"p": 1}, {"q": 2}]


def test_item_ids_tell_calls_of_one_call_id_apart():
    message = assemble(
        [
            ToolCallDelta(key="fc_1", id="call", name="f", arguments='{"n":1}'),
            ToolCallDelta(key="fc_2", id="call", name="f", arguments='{"n":2}'),
            STOP,
        ]
    )
    assert [call.input for call in message.tool_calls] == [{"n": 1}, {"n": 2}]


def test_an_unknown_block_told_twice_keeps_its_place():
    message = assemble(
        [
            OpaqueReceived({"state": "begun"}, key="x"),
            TextDelta("a", key="y"),
            OpaqueReceived({"state": "done"}, key="x"),
            OpaqueReceived({"n": 1}),
            OpaqueReceived({"n": 2}),
            STOP,
        ]
    )
    assert message.blocks == (
        OpaqueBlock({"state": "done"}),
        TextBlock("a"),
        OpaqueBlock({"n": 1}),
        OpaqueBlock({"n": 2}),
    )


def test_asking_midway_changes_nothing():
    events = [ToolCallDelta(0, None, "f"), ToolCallDelta(0, "real", None, '{"a":1}'), STOP]
    assembler = Assembler()
    for event in events:
        assembler.add(event)
        assembler.message()
    assert assembler.message() == assemble(events)
    assert assembler.message().tool_calls == (ToolCallBlock("real", "f", {"a": 1}),)


def test_ids_made_up_do_not_collide_with_real_ones():
    events = [ToolCallDelta(0, "call_0", "f"), ToolCallDelta(1, None, "g"), STOP]
    assert [call.id for call in assemble(events).tool_calls] == ["call_0", "call_1"]


def test_arguments_too_deep_to_read_are_kept_as_text():
    deep = '{"a":' * 200_000 + "1" + "}" * 200_000
    (call,) = assemble([ToolCallDelta(0, "c", "f", deep), STOP]).tool_calls
    assert (call.input, call.arguments) == ({}, deep)


def test_calls_without_index_and_id_continue_the_open_one():
    message = assemble(
        [
            ToolCallDelta(id="a", name="f", arguments="{"),
            ToolCallDelta(arguments="}"),
            ToolCallDelta(id="b", name="g", arguments="{}"),
            STOP,
        ]
    )
    assert message.tool_calls == (ToolCallBlock("a", "f"), ToolCallBlock("b", "g"))


@pytest.mark.parametrize(
    ("arguments", "value", "kept"),
    [
        ('{"a":1}', {"a": 1}, None),
        ('{"a": 1}', {"a": 1}, '{"a": 1}'),
        ('{"a":1.0}', {"a": 1.0}, None),
        ('{"a":', {}, '{"a":'),
        ("[1]", {}, "[1]"),
        ("", {}, None),
    ],
)
def test_the_wires_own_arguments_are_kept_when_they_cannot_be_rebuilt(arguments, value, kept):
    (call,) = assemble([ToolCallDelta(id="a", name="f", arguments=arguments), STOP]).tool_calls
    assert (call.input, call.arguments) == (value, kept)


def test_ec_001_ec_002_an_empty_thought_is_a_block_and_no_thought_is_none():
    assert assemble([ThinkingDelta(""), TextDelta("x"), STOP]).thinking == (ThinkingBlock(""),)
    assert assemble([TextDelta("x"), STOP]).thinking == ()


def test_a_redacted_block_needs_no_delta():
    message = assemble([ThinkingCarrier(key=0, redacted="Emw"), TextDelta("x", key=1), STOP])
    assert message.thinking == (ThinkingBlock("", redacted="Emw"),)


def test_text_that_turns_out_to_be_reasoning_changes_its_kind_in_place():
    message = assemble(
        [TextDelta("inner", key=0), Reclassified(0, "think_tags"), TextDelta("out", key=1), STOP]
    )
    assert message.blocks == (ThinkingBlock("inner", "think_tags"), TextBlock("out"))


def test_reclassifying_nothing_changes_nothing():
    message = assemble([ThinkingDelta("t", key=0), Reclassified(5), Reclassified(), STOP])
    assert message.blocks == (ThinkingBlock("t"),)


@pytest.mark.parametrize(
    ("events", "status"),
    [
        ([TextDelta("a"), STOP], "complete"),
        ([ThinkingDelta("a"), STOP], "no_answer"),
        ([ThinkingDelta("a"), TextDelta(" \n"), STOP], "no_answer"),
        ([STOP], "no_answer"),
        ([ThinkingDelta("a"), Finished("length")], "truncated_in_reasoning"),
        ([ThinkingDelta("a"), TextDelta("b"), Finished("length")], "truncated"),
        ([TextDelta("b"), Finished("length")], "truncated"),
        ([TextDelta("a")], "interrupted"),
        ([TextDelta("a"), Failed("gone")], "error"),
        ([TextDelta("a"), Failed("gone", status="interrupted")], "interrupted"),
        ([ThinkingDelta("a"), ToolCallDelta(id="c", name="f"), Finished("tool_calls")], "complete"),
        ([OpaqueReceived({"type": "x"}), STOP], "complete"),
        ([Finished("stop", status="no_answer")], "no_answer"),
    ],
)
def test_status_says_how_it_ended(events, status):
    assert assemble(events).status == status


def test_last_usage_wins_and_warnings_are_kept():
    assembler = Assembler(Origin("p", "anthropic", "m"))
    for event in (
        Started("id", "m"),
        UsageReported(Usage(input=0)),
        Warned("glued", "two frames in one line"),
        UsageReported(Usage(input=7)),
        TextDelta("a", signature="sig", wire=Wire("openai-responses", {"phase": "final"})),
        TextDelta("b", wire=Wire("openai-responses", {"id": "msg"})),
        OpaqueReceived({"k": 1}, key=9),
        STOP,
    ):
        assembler.add(event)
    message = assembler.message()
    assert message.usage == Usage(input=7)
    assert message.origin == Origin("p", "anthropic", "m")
    assert [warning.code for warning in assembler.warnings] == ["glued"]
    assert message.blocks == (
        TextBlock("ab", "sig", Wire("openai-responses", {"phase": "final", "id": "msg"})),
        OpaqueBlock({"k": 1}),
    )


def test_carriers_of_one_block_add_up():
    message = assemble(
        [
            ThinkingCarrier(key="rs", id="rs", source_field="reasoning", kind="summary"),
            ThinkingDelta("s", key="rs", kind="summary"),
            ThinkingCarrier(
                key="rs", encrypted="gAAA", wire=Wire("openai-responses", {"parts": [{"a": 1}]})
            ),
            STOP,
        ]
    )
    assert message.blocks == (
        ThinkingBlock(
            "s",
            "reasoning",
            id="rs",
            kind="summary",
            encrypted="gAAA",
            wire=Wire("openai-responses", {"parts": [{"a": 1}]}),
        ),
    )


def test_call_signature_and_extra_are_kept():
    (call,) = assemble(
        [
            ToolCallDelta(
                id="a", name="f", signature="sig", wire=Wire("openai-responses", {"x": 1})
            ),
            ToolCallDelta(id="a", wire=Wire("openai-responses", {"y": 2})),
            STOP,
        ]
    ).tool_calls
    assert call == ToolCallBlock(
        "a", "f", signature="sig", wire=Wire("openai-responses", {"x": 1, "y": 2})
    )


pieces = st.lists(st.text(max_size=5), max_size=8)


@given(pieces, pieces, st.randoms(use_true_random=False))
def test_no_byte_is_lost_or_doubled_however_deltas_interleave(thinking, text, random):
    queue = [ThinkingDelta(p, key="t") for p in thinking] + [TextDelta(p, key="x") for p in text]
    order = list(range(len(queue)))
    random.shuffle(order)
    mixed = [queue[i] for i in order]
    message = assemble([*mixed, STOP])
    said = [e.text for e in mixed if isinstance(e, TextDelta)]
    meant = [e.text for e in mixed if isinstance(e, ThinkingDelta)]
    assert message.text == "".join(said)
    assert "".join(block.thought for block in message.thinking) == "".join(meant)


def test_a_call_that_gets_its_key_late_is_found_by_it():
    events = [
        ToolCallDelta(None, "s", "f", "{"),
        ToolCallDelta(0, "s", None, '"a":'),
        ToolCallDelta(0, None, None, "1}"),
    ]
    one_by_one = Assembler()
    for event in events:
        one_by_one.add(event)
    (call,) = one_by_one.blocks()
    assert (call.id, call.name, call.input) == ("s", "f", {"a": 1})
    assert assemble(events).blocks == (call,)
