"""Whatever events a writer is fed, its stream can be read and ends as they did."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from answers import DIALECTS, read, target_of, written
from effort import tried
from mull.neutral.blocks import Wire
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
from mull.neutral.usage import Usage

texts = st.text(max_size=5)
maybe = st.none() | texts
keys = st.none() | st.integers(0, 2) | st.sampled_from(["a", "a/1", "a/content", "b"])
kinds = st.sampled_from(["raw", "summary"])
parts = st.sampled_from([{}, {"type": "refusal"}, {"type": "output_text", "annotations": [1]}])
lists = st.lists(st.fixed_dictionaries({"type": texts, "text": texts}), max_size=2)
kept = st.fixed_dictionaries(
    {},
    optional={
        "id": texts,
        "part": parts,
        "refusal": st.booleans(),
        "citations": st.lists(st.integers(), max_size=2),
        "self": texts,
        "item": st.dictionaries(texts, texts, max_size=1),
        **dict.fromkeys(("parts", "thinking", "reasoning_details"), lists),
    },
)
wires = st.none() | st.builds(Wire, st.none() | st.sampled_from(DIALECTS), kept)
fields = st.none() | st.sampled_from(["reasoning", "think_tags", "content_list", "summary"])
ids = st.none() | st.sampled_from(["x", "y"])
events = st.one_of(
    st.builds(Started, maybe, maybe),
    st.builds(TextDelta, texts, keys, maybe, wires),
    st.builds(ThinkingDelta, texts, keys, fields, kinds),
    st.builds(ThinkingCarrier, keys, maybe, maybe, maybe, maybe, maybe, st.none() | kinds, wires),
    st.builds(ToolCallDelta, keys, ids, st.none() | st.just("f"), texts, maybe, wires),
    st.builds(OpaqueReceived, st.fixed_dictionaries({"type": texts}), keys),
    st.builds(BlockEnded, keys),
    st.builds(Reclassified, keys),
    st.just(UsageReported(Usage(1, 2, 1, 3))),
)
ends = st.sampled_from([[Finished("stop")], [Finished(None)], [Failed("no")], []])


@tried(5)
@given(
    st.sampled_from(DIALECTS),
    st.none() | st.sampled_from(DIALECTS),
    st.lists(events, max_size=12),
    ends,
)
def test_any_events_can_be_written(dialect, source, told, end):
    found = read(written(dialect, [*told, *end], source=source), target_of(dialect))
    assert not [
        event for event in found if isinstance(event, Warned) and event.code == "unreadable"
    ]
    assert isinstance(found[-1], Finished) == any(isinstance(one, Finished) for one in end)
