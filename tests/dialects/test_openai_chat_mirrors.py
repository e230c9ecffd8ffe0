"""One thought in several fields is one thought; blanks beat nothing; what is new is never lost."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import listed, target, wired
from effort import tried
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolCallBlock
from openai_chat_wire import decode, deltas, whole

FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "thinking", "reasoning_details")
PAIRS = list(itertools.permutations(FIELDS[:4], 2))


def says(field, text, **more):
    """A delta, or a part of one, in which a field says a text."""
    if field != "reasoning_details":
        return {field: text}
    return {field: [{"type": "reasoning.text", "text": text, "index": 0, **more}]}


def thought(*parts, **options):
    """The thoughts of a stream, joined; the answer must come whole beside them."""
    message = decode(deltas(*parts, {"content": "Answer"}), **options)
    assert message.text == "Answer"
    return "".join(block.thought for block in message.thinking)


# Blank fields


@pytest.mark.sweep
@pytest.mark.parametrize("blank", [" ", "\n", "\n\n", "\t \r\n", "\u3000"])
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_blank_field_does_not_beat_one_that_says_something(first, second, blank):
    both = {first: blank, second: "The real thought"}
    expected = (ThinkingBlock("The real thought", second), TextBlock("Answer"))
    assert decode(deltas(both, {"content": "Answer"})).blocks == expected
    assert decode(whole({**both, "content": "Answer"})).blocks == expected
    one_by_one = deltas({first: blank}, {second: "The real"}, both | {second: " thought"})
    assert decode(one_by_one).blocks == expected[:1]


def test_a_blank_field_goes_on_beside_the_real_one():
    parts = [{"reasoning_content": " "}, {"reasoning_content": "\n"}]
    for piece in ("The", " real", "\n\n", "thought"):
        parts += [{"reasoning_content": " ", "reasoning": piece}, {"reasoning_content": "\n"}]
    message = decode(deltas(*parts, {"content": "Answer"}))
    assert message.blocks == (
        ThinkingBlock("The real\n\nthought", "reasoning"),
        TextBlock("Answer"),
    )


def test_another_field_goes_on_where_the_first_falls_blank():
    parts = [
        says("reasoning_content", "Hello"),
        {"reasoning_content": " ", "reasoning": " wor"},
        {"reasoning_content": "\n", "reasoning": "ld"},
    ]
    assert thought(*parts) == "Hello world"


def test_blanks_of_the_field_that_speaks_are_kept():
    pieces = ["\n", "Hi", " ", "\n\n", "again", "\r", "\n"]
    expected = (ThinkingBlock("\nHi \n\nagain\r\n", "reasoning"), TextBlock("Answer"))
    parts = [{"reasoning": piece} for piece in pieces]
    assert decode(deltas(*parts, {"content": "Answer"})).blocks == expected
    assert decode(whole({"reasoning": "".join(pieces), "content": "Answer"})).blocks == expected


def test_a_thought_of_blanks_is_kept_if_nothing_better_comes():
    expected = (ThinkingBlock(" \n", "reasoning"), TextBlock("Answer"))
    for body in (
        deltas({"reasoning": " "}, {"reasoning": "\n"}, {"content": "Answer"}),
        whole({"reasoning": " \n", "content": "Answer"}),
        whole({"reasoning_content": "", "reasoning": " \n", "content": "Answer"}),
    ):
        assert decode(body).blocks == expected
    assert decode(deltas({"reasoning": " "})).blocks == (ThinkingBlock(" ", "reasoning"),)


def test_blanks_do_not_tear_the_answer():
    parts = [{"content": part, "reasoning": " "} for part in ("An", "sw", "er")]
    message = decode(deltas({"reasoning": " "}, *parts))
    assert message.text == "Answer"
    assert [type(block) for block in message.blocks] == [ThinkingBlock, TextBlock]
    message = decode(deltas({"reasoning": "Tea."}, *parts))
    assert message.blocks == (ThinkingBlock("Tea.   ", "reasoning"), TextBlock("Answer"))
    late = decode(deltas({"reasoning": "Tea."}, *parts[:2], {"reasoning": "Hot."}, parts[2]))
    assert [block.thought for block in late.thinking] == ["Tea. ", " Hot. "]
    assert late.text == "Answer"


def test_a_blank_field_does_not_beat_a_thought_in_the_text():
    expected = (ThinkingBlock("real", "think_tags"), TextBlock("Answer"))
    both = {"reasoning_content": "\n", "content": "<think>real</think>Answer"}
    assert decode(whole(both)).blocks == expected
    assert decode(deltas(both)).blocks == expected


def test_the_field_that_the_user_named_is_the_only_one_even_if_blank():
    both = {"reasoning_content": " ", "reasoning": "real", "content": "Answer"}
    expected = (ThinkingBlock(" ", "reasoning_content"), TextBlock("Answer"))
    for body in (deltas(both), whole(both)):
        assert decode(body, field="reasoning_content").blocks == expected
    named = deltas({"reasoning": "real"}, {"mine": " "}, {"mine": "own"}, {"reasoning": "more"})
    assert decode(named, field="mine").blocks == (ThinkingBlock(" own", "mine"),)


def test_a_blank_thought_stands_before_the_call_it_came_with():
    call = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": "{}"}}
    for body in (
        whole({"reasoning_content": " ", "tool_calls": [call]}),
        deltas({"reasoning_content": " ", "tool_calls": [call]}),
        deltas({"reasoning_content": " "}, {"tool_calls": [call]}),
    ):
        expected = (ThinkingBlock(" ", "reasoning_content"), ToolCallBlock("c1", "f"))
        assert decode(body).blocks == expected


def test_blanks_and_carriers_are_one_thought():
    signed = {"reasoning_text": " ", "reasoning_opaque": "sealed"}
    expected = (ThinkingBlock(" ", "reasoning_text", signature="sealed"), TextBlock("A"))
    assert decode(whole({**signed, "content": "A"})).blocks == expected
    assert decode(deltas(signed, {"content": "A"})).blocks == expected


# Mirrors


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_thought_told_again_in_another_field_is_one_thought(first, second):
    halves = [("The user asks", " for tea.\n")]
    for one, two in halves:
        for parts in (
            [{first: one}, {second: one}, {first: two}, {second: two}],
            [{first: one}, {first: two}, {second: one + two}],
            [{first: one}, {first: two}, {second: one}, {second: two}],
            [{first: one + two}, {second: one}, {second: two}],
            [{first: one}, {first: two, second: one}, {second: two}],
            [{first: one[:4], second: one}, {first: one[4:] + two, second: two}],
            [{first: one, second: one + two}, {first: two}],
            [{first: one}, {second: one + two}, {first: two}],
        ):
            assert thought(*parts) == one + two
        assert thought({first: one + two, second: one + two}) == one + two


def test_a_thought_told_again_after_the_answer_does_not_tear_it():
    entry = {"type": "reasoning.text", "text": "Tea, so hot.", "signature": "s", "index": 0}
    first = [{"reasoning": "Tea, "}, {"reasoning": "so hot."}, {"content": "An"}]
    for again in ({"thinking": "Tea, so hot."}, {"reasoning_details": [entry]}):
        message = decode(deltas(*first, again, {"content": "swer"}))
        details = [entry] if "reasoning_details" in again else None
        expected = ThinkingBlock("Tea, so hot.", "reasoning", wire=listed(details))
        assert message.blocks == (expected, TextBlock("Answer"))


def test_each_of_several_thoughts_may_be_mirrored():
    def block(text):
        return ThinkingBlock(text, "reasoning")

    expected = (block("one"), TextBlock("A"), block("two"), TextBlock("B"))
    first, second = [{"reasoning": "one"}, {"content": "A"}], [{"reasoning": "two"}]
    last = {"content": "B"}
    for parts in (
        [*first, *second, {"thinking": "two"}, last],
        [*first, *second, {"thinking": "t"}, {"thinking": "wo"}, last],
        [*first, *second, last, {"thinking": "onetwo"}],
        [*first, *second, last, {"thinking": "one\n\ntwo"}],
        [first[0], {"thinking": "one"}, first[1], *second, {"thinking": "two"}, last],
    ):
        assert decode(deltas(*parts)).blocks == expected


def test_carriers_of_a_mirror_are_kept():
    sealed = {"type": "reasoning.encrypted", "data": "EqQB", "index": 1}
    parts = [
        says("reasoning", "Let me see."),
        says("reasoning_details", "Let me", format="anthropic-claude-v1"),
        says("reasoning_details", " see.", signature="Et8B"),
        {"reasoning_details": [sealed]},
    ]
    (block,) = decode(deltas(*parts, {"content": "Answer"})).thinking
    signed = {
        "type": "reasoning.text",
        "text": "Let me see.",
        "index": 0,
        "format": "anthropic-claude-v1",
        "signature": "Et8B",
    }
    assert (block.thought, block.source_field) == ("Let me see.", "reasoning")
    assert wired(block)["reasoning_details"] == [signed, sealed]


def test_a_mirror_may_differ_in_blanks():
    for again in ("Tea. So hot.", "\nTea.\n\nSo hot.\n", "Tea.So hot.", "Tea.\r\nSo hot."):
        assert thought({"reasoning": "\nTea.\nSo hot."}, {"thinking": again}) == "\nTea.\nSo hot."
    parts = [{"reasoning": "Tea"}, {"reasoning": " "}, {"reasoning": "hot"}]
    assert thought(parts[0], {"thinking": "Tea"}, *parts[1:], {"thinking": "hot"}) == "Tea hot"


def test_a_mirror_may_begin_late():
    parts = [{"reasoning": "One. "}, {"reasoning": "Two. "}, {"thinking": "Two. "}]
    more = [{"reasoning": "Three."}, {"thinking": "Three."}]
    assert thought(*parts, *more) == "One. Two. Three."


def test_thoughts_in_tags_are_mirrored_too():
    expected = (ThinkingBlock("Tea, hot.", "think_tags"), TextBlock("Answer"))
    for parts in (
        [{"content": "<think>Tea"}, {"reasoning": "Tea"}, {"content": ", hot.</think>Answer"}],
        [
            {"content": "<think>Tea, hot.</think>An"},
            {"reasoning": "Tea, hot."},
            {"content": "swer"},
        ],
    ):
        assert decode(deltas(*parts)).blocks == expected


def test_tags_around_what_a_field_told_are_left_out():
    expected = (ThinkingBlock("Tea, hot.", "reasoning"), TextBlock("Answer"))
    content = "<think>Tea, hot.</think></think>Answer"
    both = {"reasoning": "Tea, hot.", "content": content}
    assert decode(whole(both)).blocks == expected
    assert decode(deltas(both)).blocks == expected
    for at in range(1, len(content)):
        parts = [{"content": content[:at]}, {"content": content[at:]}]
        assert decode(deltas({"reasoning": "Tea, hot."}, *parts)).blocks == expected
    beside = [
        {"reasoning": "Tea", "content": "<think>Tea"},
        {"reasoning": ", hot.", "content": ", hot."},
        {"content": "</think>Answer"},
    ]
    assert decode(deltas(*beside)).blocks == expected


def test_a_thought_in_a_content_list_is_mirrored_too():
    member = {"type": "thinking", "thinking": [{"type": "text", "text": "Tea."}]}
    again = {"content": [member, {"type": "text", "text": "Answer"}]}
    for body in (
        deltas({"reasoning": "Tea."}, again),
        deltas({"reasoning": "Te"}, {"reasoning": "a."}, again),
        deltas({"content": [member]}, {"reasoning": "Tea."}, {"content": "Answer"}),
        whole({"reasoning": "Tea.", **again}),
    ):
        message = decode(body)
        assert [block.thought for block in message.thinking] == ["Tea."]
        assert message.text == "Answer"
    signed = {"content": [{**member, "signature": "s"}]}
    (block,) = decode(deltas({"reasoning": "Tea."}, signed)).thinking
    assert (block.thought, block.signature) == ("Tea.", "s")


def test_a_stream_that_repeats_itself_may_have_mirrors():
    repeats = target(compat={"cumulative": True})
    parts = []
    for text in ("Tea", "Tea, ", "Tea, hot"):
        parts += [{"reasoning": text, "thinking": text}, {"reasoning_text": text}]
    assert thought(*parts, to=repeats) == "Tea, hot"


# What is no mirror


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_thought_may_go_on_in_another_field(first, second):
    assert thought({first: "First, "}, {second: "second."}) == "First, second."
    assert thought({first: "a"}, {second: "b"}, {first: "c"}, {second: "d"}) == "abcd"
    begun = [{first: "The cat. "}, {second: "The "}]
    assert thought(*begun, {second: "dog."}) == "The cat. The dog."
    assert thought(*begun, {second: "cat"}, {second: "alogue."}) == "The cat. The catalogue."
    assert thought({first: "Tea."}, {second: "Tea. Hot."}, {second: " Now."}) == "Tea. Hot. Now."


def test_a_long_mirror_that_ends_otherwise_adds_only_that():
    text = " ".join(f"word{number}" for number in range(100))
    for parts in (
        [{"thinking": text[:-9] + "… [cut]"}],
        [{"thinking": part} for part in (text[:300], text[300:-9], "… [cut]")],
    ):
        assert thought({"reasoning": text}, *parts) == text + "… [cut]"


def test_of_different_words_in_one_delta_one_is_heard():
    first = {"reasoning": "a"}
    assert thought(first, {"thinking": "X", "reasoning": "b"}, {"thinking": "c"}) == "abc"
    assert thought({"reasoning": "a", "thinking": "X"}) == "a"


# Any stream of these kinds


def cut(draw, text):
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True) if b > a]


def interleave(draw, queues):
    """Deltas in which each field keeps the order of its own pieces; some share a delta."""
    queues = {field: list(pieces) for field, pieces in queues.items() if pieces}
    made = []
    while queues:
        names = sorted(queues)
        chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
        delta = {}
        for field in chosen:
            delta |= says(field, queues[field].pop(0))
            if not queues[field]:
                del queues[field]
        made.append(delta)
    return made


words = st.lists(st.sampled_from(["a", "b", "ab", "é", "😀", " ", "\n\n", "tea"]), max_size=12)
texts = words.map("".join).filter(str.strip)


@tried(2)
@given(st.data(), texts, st.sets(st.sampled_from(FIELDS), min_size=1, max_size=3))
def test_mirrors_are_read_once_however_they_are_cut_and_mixed(data, text, fields):
    parts = interleave(data.draw, {field: cut(data.draw, text) for field in sorted(fields)})
    body = deltas(*parts, {"content": "Answer"})
    message = decode(body)
    assert "".join(block.thought for block in message.thinking) == text
    assert decode(body, cuts=list(range(0, len(body), 7))) == message
    whole_one = {field: says(field, text)[field] for field in fields}
    thoughts = decode(whole({**whole_one, "content": "Answer"})).thinking
    assert [block.thought for block in thoughts] == [text]


@tried(2)
@given(st.data(), st.integers(2, 8), st.sets(st.sampled_from(FIELDS[:4]), min_size=2))
def test_a_thought_that_moves_from_field_to_field_is_whole(data, count, fields):
    """Blanks of fields that never speak change nothing, wherever they come."""
    silent, *speaking = sorted(fields)
    parts = []
    for number in range(count):
        piece = f"{number} tea " + "\n" * (number % 3)
        delta = {data.draw(st.sampled_from(speaking)): piece}
        if data.draw(st.booleans()):
            delta[silent] = " "
        blanks = data.draw(st.sampled_from(["", "", " ", "\n"]))
        parts += [{silent: blanks}, delta] if blanks else [delta]
    expected = "".join(delta[field] for delta in parts for field in speaking if field in delta)
    assert thought(*parts) == expected


@given(st.lists(st.sampled_from(["a", " ", "\n", "tea", ""]), min_size=1, max_size=8))
def test_one_field_is_kept_byte_for_byte(pieces):
    body = deltas(*({"reasoning": piece} for piece in pieces), {"content": "Answer"})
    message = decode(body)
    assert [block.thought for block in message.thinking] == ["".join(pieces)]
    assert decode(whole({"reasoning": "".join(pieces), "content": "Answer"})) == message
