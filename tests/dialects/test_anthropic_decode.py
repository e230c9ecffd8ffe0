"""Messages streams and whole messages become the same events, however they are cut or damaged."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from anthropic_wire import (
    STREAMS,
    answers,
    decode,
    events_of,
    render_stream,
    render_whole,
)
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolCallBlock, Wire
from mull.neutral.events import (
    BlockEnded,
    Finished,
    Started,
    TextDelta,
    ThinkingCarrier,
    ThinkingDelta,
    ToolCallDelta,
    UsageReported,
)
from mull.neutral.usage import Usage


def test_events_come_in_wire_order_with_the_index_as_key():
    found = events_of(STREAMS["thinking_then_tools"])
    assert found[0] == Started("msg_01mull", "thinker")
    kinds = [type(event) for event in found]
    assert [k for i, k in enumerate(kinds) if i == 0 or kinds[i - 1] is not k] == [
        Started,
        UsageReported,
        ThinkingDelta,
        ThinkingCarrier,
        BlockEnded,
        TextDelta,
        BlockEnded,
        ToolCallDelta,
        BlockEnded,
        ToolCallDelta,
        BlockEnded,
        UsageReported,
        Finished,
    ]
    assert {e.key for e in found if isinstance(e, ThinkingDelta | ThinkingCarrier)} == {0}
    assert {e.key for e in found if isinstance(e, ToolCallDelta)} == {2, 3}


def test_a_message_keeps_every_byte():
    message = decode(STREAMS["thinking_then_tools"])
    thought, text, first, second = message.blocks
    assert thought == ThinkingBlock(
        "Two ports — Bergen and Ålesund 🚢.\n\n Ask the tide table for each.",
        source_field="thinking",
        signature="ErUBCkYIBhgCIkDmull+first/halfAndTheSecondHalf==",
    )
    assert text == TextBlock("I will look up both tides.")
    assert first == ToolCallBlock("toolu_01tideA", "tide", {"port": "Bergen", "day": 3})
    assert second == ToolCallBlock(
        "toolu_01tideB",
        "tide",
        {"port": "Ålesund", "day": 3},
        wire=Wire("anthropic", {"caller": {"type": "direct"}}),
    )
    assert message.usage == Usage(
        input=12 + 300 + 4096,
        output=181,
        reasoning=97,
        total=12 + 300 + 4096 + 181,
        cache_read=4096,
        cache_write=300,
    )


@given(answers, st.integers(0, 2**16))
def test_a_rendered_answer_comes_back_as_it_was(message, seed):
    assert decode(render_stream(message, seed)) == message
    assert decode(render_whole(message)) == message
