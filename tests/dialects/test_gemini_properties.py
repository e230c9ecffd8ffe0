"""What holds for any Gemini answer and any history, however cut, damaged or generated."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import tried
from gemini_wire import (
    ABSENT,
    BUDGET,
    LEVEL,
    answers,
    cut,
    decode,
    fixture,
    fixture_names,
    part_of,
    request,
    response,
    sse,
    stream_of,
    whole,
    without_made_up_ids,
)
from mull.dialects.registry import encode_request
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolResultBlock
from mull.neutral.messages import Message, assistant, user
from mull.neutral.thinking import UNSIGNED_CALL, ThinkingPlan
from mull.neutral.usage import Usage

BODIES = [fixture(name) for name in fixture_names("sse") + fixture_names("json")]


@given(st.sampled_from(BODIES), st.lists(st.integers(0, 10_000), max_size=12))
@settings(max_examples=100)
def test_any_cut_gives_the_same_message(body, places):
    got, expected = decode(*cut(body, places)), decode(body)
    assert got.events == expected.events


@pytest.mark.parametrize("body", BODIES)
def test_byte_by_byte_gives_the_same_message(body):
    assert decode(*(body[at : at + 1] for at in range(len(body)))).events == decode(body).events


@given(answers, st.lists(st.integers(0, 100), max_size=4))
@settings(max_examples=100)
def test_any_answer_streamed_or_whole_is_itself(blocks, places):
    streamed = decode(stream_of(blocks, places))
    at_once = decode(whole(*map(part_of, blocks)))
    assert streamed.message == at_once.message
    assert without_made_up_ids(streamed.blocks) == without_made_up_ids(blocks)
    assert at_once.message.usage == Usage(input=10, output=25, reasoning=5, total=35)


def spoken(blocks):
    text = "".join(block.text for block in blocks if isinstance(block, TextBlock))
    return text, "".join(block.thought for block in blocks if isinstance(block, ThinkingBlock))


STREAMS = [fixture(name) for name in fixture_names("sse")]


@given(st.sampled_from(STREAMS), st.integers(0, 10_000))
def test_a_truncated_stream_keeps_what_came(body, at):
    got = decode(body[: at % (len(body) + 1)])
    for part, all_of_it in zip(spoken(got.blocks), spoken(decode(body).blocks), strict=True):
        assert all_of_it.startswith(part)


@given(st.sampled_from(STREAMS), st.integers(0, 10_000), st.binary(min_size=1, max_size=6))
@tried(2)
def test_damage_never_raises_and_keeps_what_came_before(body, at, junk):
    at %= len(body)
    got = decode(body[:at] + junk + body[at + len(junk) :])
    whole_frames = body[:at].rpartition(b"\n\r\n")[0]
    for part, all_of_it in zip(
        spoken(decode(whole_frames).blocks), spoken(got.blocks), strict=True
    ):
        assert all_of_it.startswith(part)


WORDS = (
    *("candidates", "content", "parts", "text", "thought", "thoughtSignature", "index"),
    *("functionCall", "name", "args", "id", "partialArgs", "willContinue", "jsonPath"),
    *("stringValue", "finishReason", "usageMetadata", "error", "promptFeedback", "blockReason"),
    *("responseId", "response"),
)
json_anything = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(WORDS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=25,
)


@given(st.lists(json_anything, max_size=4))
@tried(2)
def test_nonsense_of_the_right_words_is_never_an_unexpected_shape(values):
    got = decode(sse(*values, response([{"text": "kept"}])))
    assert "kept" in got.message.text
    assert not [text for _, text in got.warnings if "unexpected shape" in text]


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
