"""What holds for any Gemini answer and any history, however cut, damaged or generated."""

from itertools import pairwise

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from gemini_wire import (
    ABSENT,
    BUDGET,
    LEVEL,
    answers,
    decode,
    part_of,
    request,
    stream_of,
    whole,
    without_made_up_ids,
)
from mull.dialects.registry import encode_request
from mull.neutral.blocks import TextBlock, ToolResultBlock
from mull.neutral.messages import Message, assistant, user
from mull.neutral.thinking import UNSIGNED_CALL, ThinkingPlan
from mull.neutral.usage import Usage


@given(answers, st.lists(st.integers(0, 100), max_size=4))
@settings(max_examples=100)
def test_any_answer_streamed_or_whole_is_itself(blocks, places):
    streamed = decode(stream_of(blocks, places))
    at_once = decode(whole(*map(part_of, blocks)))
    assert streamed.message == at_once.message
    assert without_made_up_ids(streamed.blocks) == without_made_up_ids(blocks)
    assert at_once.message.usage == Usage(input=10, output=25, reasoning=5, total=35)


def contents_of(*messages, to=LEVEL, **more):
    return msgspec.json.decode(encode_request(request(*messages, **more), to).body)["contents"]


def results(*blocks):
    return Message(role="tool", blocks=blocks)


ON = ThinkingPlan("on", "gemini-level", effort="high")
OFF = ThinkingPlan("off", "gemini-budget", budget=0, thinks=False)


@given(answers)
@settings(max_examples=100)
def test_an_answer_goes_back_part_for_part(blocks):
    answer = decode(whole(*map(part_of, blocks))).message
    given = results(*(ToolResultBlock(call.id, "r") for call in answer.tool_calls))
    sent = contents_of(user("u"), answer, given, user("v"), to=BUDGET)
    parts = [part for content in sent if content["role"] == "model" for part in content["parts"]]
    expected = list(map(part_of, blocks))
    assert parts == list(filter(goes_back, expected))
    answered = [p["functionResponse"] for p in sent[-1]["parts"] if "functionResponse" in p]
    asked = [part["functionCall"] for part in expected if "functionCall" in part]
    assert [(r["name"], r.get("id")) for r in answered] == [
        (call["name"], call.get("id")) for call in asked
    ]


def goes_back(part):
    """All but a blank thought without a signature, which says nothing."""
    return "thoughtSignature" in part or not part.get("thought") or bool(part["text"].strip())


def carriers(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "thoughtSignature":
                yield inner
            else:
                yield from carriers(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from carriers(inner)


messages = st.lists(
    st.one_of(
        st.text(max_size=3).map(user),
        answers.map(lambda blocks: assistant(*blocks)),
        st.text(max_size=3).map(lambda text: results(ToolResultBlock("fc-0", text))),
        st.just(Message(role="system", blocks=(TextBlock("rule"),))),
    ),
    max_size=7,
)


@given(messages, st.sampled_from([LEVEL, BUDGET]))
@settings(max_examples=50)
def test_every_carrier_goes_back_byte_for_byte(history, to):
    sent = [*carriers(contents_of(*history, to=to))]
    held = [
        *carriers([part_of(b) for m in history if m.role == "assistant" for b in m.blocks]),
    ]
    assert [carrier for carrier in sent if carrier != UNSIGNED_CALL] == held


@given(messages, st.sampled_from([LEVEL, BUDGET]), st.sampled_from([ABSENT, ON, OFF]))
@settings(max_examples=50)
def test_a_longer_history_only_adds_at_the_end(history, to, plan):
    def flat(contents):
        return [(content["role"], part) for content in contents for part in content["parts"]]

    history = [user("first"), *history]
    everything = contents_of(*history, to=to, thinking=plan)
    for length in range(1, len(history)):
        before = contents_of(*history[:length], to=to, thinking=plan)
        assert everything[: len(before) - 1] == before[:-1]
        assert flat(everything)[: len(flat(before))] == flat(before)
    roles = [content["role"] for content in everything]
    assert all(one != other for one, other in pairwise(roles))
