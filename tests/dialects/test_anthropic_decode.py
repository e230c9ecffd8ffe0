"""Messages streams and whole messages become the same events, however they are cut or damaged."""

from __future__ import annotations

import itertools
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anthropic_wire import (
    HERE,
    STREAMS,
    WHOLES,
    answers,
    decode,
    events_of,
    render_stream,
    render_whole,
)
from effort import tried
from mull.dialects.anthropic.decode import ChunkInterpreter
from mull.dialects.registry import decoder
from mull.neutral.blocks import OpaqueBlock, TextBlock, ThinkingBlock, ToolCallBlock
from mull.neutral.events import (
    BlockEnded,
    Failed,
    Finished,
    Started,
    TextDelta,
    ThinkingCarrier,
    ThinkingDelta,
    ToolCallDelta,
    UsageReported,
)
from mull.neutral.usage import Usage

stream_names = st.sampled_from(sorted(STREAMS))


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
        "toolu_01tideB", "tide", {"port": "Ålesund", "day": 3}, extra={"caller": {"type": "direct"}}
    )
    assert message.usage == Usage(
        input=12 + 300 + 4096,
        output=181,
        reasoning=97,
        total=12 + 300 + 4096 + 181,
        cache_read=4096,
        cache_write=300,
    )


@pytest.mark.parametrize("name", sorted(WHOLES))
def test_a_stream_equals_its_whole_response(name):
    assert decode(STREAMS[name]) == decode(WHOLES[name])


@pytest.mark.parametrize("name", sorted(STREAMS))
@pytest.mark.parametrize("size", [1, 2, 7, 64])
def test_any_even_cut_gives_the_same_events(name, size):
    assert events_of(STREAMS[name], size) == events_of(STREAMS[name])


@given(stream_names, st.lists(st.integers(0, 5000), max_size=8))
def test_any_cut_gives_the_same_events(name, cuts):
    data = STREAMS[name]
    edges = sorted({0, len(data), *(cut % len(data) for cut in cuts)})
    one = decoder(HERE)
    found = [e for a, b in itertools.pairwise(edges) for e in one.feed(data[a:b])]
    assert found + one.close() == events_of(data)


@given(answers, st.integers(0, 2**16))
def test_a_rendered_answer_comes_back_as_it_was(message, seed):
    assert decode(render_stream(message, seed)) == message
    assert decode(render_whole(message)) == message


@tried(2)
@given(stream_names, st.integers(0, 2**32), st.binary(max_size=6))
def test_damage_never_raises_and_keeps_what_came_before(name, seed, noise):
    data, rng = STREAMS[name], random.Random(seed)
    at, lost = rng.randrange(len(data)), rng.randrange(40)
    damaged = data[:at] + noise + data[at + lost :]
    whole_lines = data[: data.rfind(b"\n\n", 0, at) + 2] if b"\n\n" in data[:at] else b""
    before = decoder(HERE).feed(whole_lines)
    after = events_of(damaged)
    assert after[: len(before)] == before
    assert isinstance(after[-1], Finished | Failed)


@given(stream_names, st.integers(0, 10_000))
def test_a_cut_stream_is_a_beginning_of_the_whole(name, at):
    data = STREAMS[name]
    cut, full = decode(data[: at % len(data)]), decode(data)
    assert full.text.startswith(cut.text)
    for part, whole in zip(cut.blocks, full.blocks, strict=False):
        if isinstance(part, ThinkingBlock) and isinstance(whole, ThinkingBlock):
            assert whole.thought.startswith(part.thought)
            assert part.signature in (None, whole.signature)
            assert part.redacted == whole.redacted
        elif isinstance(part, OpaqueBlock):
            assert part == whole


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "text", "thinking"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["type", "index", "delta", "content_block", "message", "text", "usage"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
KINDS = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "error",
    "ping",
    "new",
]
dirty = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(
            [
                "message_start",
                "content_block_start",
                "content_block_delta",
                "content_block_stop",
                "message_delta",
                "message_stop",
                "error",
                "ping",
                "new",
            ]
        )
        | json_values,
        "index": st.integers(0, 2) | json_values,
        "delta": st.fixed_dictionaries(
            {"type": st.sampled_from(["text_delta", "thinking_delta", "signature_delta", "x"])},
            optional={"text": json_values, "thinking": json_values, "signature": json_values},
        )
        | json_values,
        "content_block": st.fixed_dictionaries(
            {"type": st.sampled_from(["text", "thinking", "tool_use", "redacted_thinking", "x"])},
            optional={"text": json_values, "data": json_values, "input": json_values},
        )
        | json_values,
        "message": json_values,
        "usage": json_values,
        "error": json_values,
    },
)


@tried(2)
@given(st.lists(dirty | json_values, max_size=8), st.booleans())
def test_no_shape_raises(values, done):
    one = ChunkInterpreter(HERE)
    found = [event for value in values for event in one.take(None, value)]
    found += one.end(done)
    msgspec.json.encode(found)
    for value in values:
        msgspec.json.encode(ChunkInterpreter(HERE).whole(value))
