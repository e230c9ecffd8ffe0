"""An answer in Harmony: channels become thoughts, text and calls, and no mark is ever seen."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.dialects.harmony import HEADER_LIMIT
from mull.dialects.tags import TagSplitter

THINK = (("<think>", "</think>"),)
CONFIGURED = (
    *THINK,
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
)
TOKENS = ["start", "channel", "message", "constrain", "end", "call", "return"]
MARK = re.compile(r"<\|(?:" + "|".join(TOKENS) + r")\|>")


def fold(pieces):
    blocks = {}
    for piece in pieces:
        kind, text, name = blocks.get(piece.block, (piece.kind, "", None))
        assert kind == piece.kind
        blocks[piece.block] = (kind, text + piece.text, piece.name or name)
    return list(blocks.values())


def feed(parts, pairs=THINK, **options):
    splitter = TagSplitter(pairs, **options)
    pieces = [piece for part in parts for piece in splitter.feed(part)]
    return pieces + splitter.close()


def split(text, pairs=THINK, **options):
    whole = fold(feed([text], pairs, **options))
    assert fold(feed(list(text), pairs, **options)) == whole
    return [block[:2] if block[0] != "tool_call" else block for block in whole]


def test_a12_analysis_is_thinking_and_final_is_text():
    text = (
        "<|channel|>analysis<|message|>think<|end|><|start|>assistant<|channel|>final<|message|>Hi"
    )
    for pairs in (THINK, CONFIGURED, ()):
        assert split(text, pairs) == [("thinking", "think"), ("text", "Hi")]
        assert split(f"\n<|start|>assistant{text}<|return|>\n", pairs) == [
            ("thinking", "think"),
            ("text", "Hi"),
        ]


@pytest.mark.parametrize(
    "header",
    [
        "<|channel|>analysis to=functions.ffgrep code",
        "<|channel|>commentary to=functions.ffgrep <|constrain|>json",
        "<|channel|>commentary to=functions.ffgrep<|constrain|>json",
        "<|start|>assistant to=functions.ffgrep<|channel|>commentary json",
        "<|start|>assistant<|channel|>commentary to=ffgrep",
        "<|start|>assistant to=functions.ffgrep",
    ],
)
def test_a12_a_message_to_a_function_is_a_call(header):
    arguments = '{"path":"","pattern":"X"}'
    text = f"{header}<|message|>{arguments}<|call|>"
    assert split(text) == [("tool_call", arguments, "ffgrep")]
    assert split(text.removesuffix("<|call|>")) == [("tool_call", arguments, "ffgrep")]


def test_a12_a_preamble_is_text_and_calls_follow_it():
    text = (
        "<|channel|>analysis<|message|>a<|end|>"
        "<|start|>assistant<|channel|>commentary<|message|>Let me look.<|end|>"
        "<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}"
        "<|call|>"
        "<|start|>assistant<|channel|>commentary to=functions.g<|message|>{}<|call|>"
    )
    assert split(text) == [
        ("thinking", "a"),
        ("text", "Let me look."),
        ("tool_call", "{}", "f"),
        ("tool_call", "{}", "g"),
    ]


def test_a12_arguments_and_thoughts_come_as_they_are_written():
    splitter = TagSplitter(THINK)
    assert splitter.feed("<|channel|>analysis<|mess") == []
    assert [p.text for p in splitter.feed("age|>I")] == ["I"]
    assert [p.text for p in splitter.feed(" `think` <")] == [" `think` "]
    assert [p.text for p in splitter.feed("3")] == ["<3"]
    splitter.feed("<|end|><|channel|>commentary to=functions.f<|message|>")
    assert [p.text for p in splitter.feed('{"a"')] == ['{"a"']


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        # Marks the model forgot (vllm-project/vllm#35906).
        ("<|channel|>analysis<|message|>a<|channel|>final<|message|>b", ["a", "b"]),
        ("<|channel|>analysis<|message|>a<|end|>assistant<|channel|>final<|message|>b", ["a", "b"]),
        ("<|channel|>analysis<|message|>a<|end|><|channel|>final<|message|>b", ["a", "b"]),
        ("<|channel|>analysis<|message|>a<|end|><|message|>b", ["a", "b"]),
        ("<|channel|>analysis<|message|>a<|end|> so b<|end|>", ["a", " so b"]),
        ("<|channel|>analysis<|message|>a<|end|><|constrain|>b<|message|>c", ["a", "bc"]),
        # Headers without a body.
        ("<|channel|>analysis", []),
        ("<|channel|>analysis<|mess", ["analysis<|mess"]),
        ("<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>js", []),
        ("<|channel|>final<|end|><|start|>assistant<|message|>b", ["b"]),
        ("<|start|><|start|>assistant<|channel|>final<|message|>b", ["b"]),
        ("<|channel|>final Hello to you", ["final Hello to you"]),
        ("<|channel|>final Hello to you<|end|>", ["final Hello to you"]),
    ],
)
def test_a12_what_is_malformed_loses_nothing(text, blocks):
    assert [block[1] for block in split(text)] == blocks


def test_a12_a_header_without_an_end_is_text():
    long = "word " * HEADER_LIMIT
    assert split(f"<|channel|>{long}<|end|>") == [("text", long)]


def test_a12_another_role_or_a_speaker_as_recipient_is_no_call():
    text = "<|start|>functions.f to=assistant<|channel|>commentary<|message|>[1]<|end|>"
    assert split(text) == [("thinking", "[1]")]
    text = "<|start|>assistant to=user<|channel|>final<|message|>Hi<|return|>"
    assert split(text) == [("text", "Hi")]


def test_a12_an_empty_analysis_is_an_empty_thought():
    text = "<|channel|>analysis<|message|><|end|><|channel|>final<|message|>Hi"
    assert split(text) == [("thinking", ""), ("text", "Hi")]


def test_a12_marks_quoted_in_an_answers_code_stay():
    said = "A channel is `<|channel|>final`:\n```\n<|start|>assistant\n```\n"
    assert split(f"<|channel|>final<|message|>{said}<|return|>") == [("text", said)]
    assert split("<|channel|>analysis<|message|>`<|end|>`") == [("thinking", "`"), ("text", "`")]


def test_a_configured_pair_switches_it_on_from_the_first_character():
    assert split("Hi<|return|>", CONFIGURED) == [("text", "Hi")]
    text = "a<|end|><|start|>assistant<|channel|>final<|message|>b"
    assert split(text, CONFIGURED, starts_in_reasoning=True) == [("thinking", "a"), ("text", "b")]
    assert split("<think>a</think>b", CONFIGURED) == [("thinking", "a"), ("text", "b")]
    assert split(" \n", CONFIGURED) == [("text", " \n")]


def test_without_a_pair_only_the_beginning_of_an_answer_switches_it_on():
    text = "Harmony writes <|channel|>final<|message|>."
    assert split(text) == [("text", text)]


def test_it_is_off_where_thoughts_have_their_own_field():
    splitter = TagSplitter(CONFIGURED)
    text = "<|channel|>final<|message|>Hi"
    assert [p.text for p in [*splitter.disable(), *splitter.feed(text)]] == [text]


body = st.text(st.characters(exclude_characters="<`", codec="utf-8"), max_size=10)
name = st.from_regex(r"[a-z_][\w.-]{0,8}", fullmatch=True).filter(lambda n: "functions" not in n)
messages = st.lists(
    st.tuples(st.sampled_from(["analysis", "final", "commentary"]), name | st.none(), body),
    min_size=1,
    max_size=5,
)


@given(messages, st.data())
def test_a12_messages_come_out_as_they_went_in(given_messages, data):
    text, expected = "", []
    for channel, to, said in given_messages:
        to_before, form = data.draw(st.tuples(st.booleans(), st.sampled_from(["", " json"])))
        address = f" to=functions.{to}" if to else ""
        before, after = (address, "") if to_before else ("", address)
        end = "<|call|>" if to else "<|end|>"
        text += f"<|start|>assistant{before}<|channel|>{channel}{after}{form}<|message|>{said}{end}"
        if to and to not in ("assistant", "user", "all"):
            expected.append(("tool_call", said, to))
        elif channel == "analysis":
            expected.append(("thinking", said))
        elif said:
            expected.append(("text", said))
    at = data.draw(st.integers(0, len(text)))
    assert split(text) == expected
    assert fold(feed([text[:at], text[at:]])) == fold(feed([text]))


fragments = st.sampled_from(
    [f"<|{token}|>" for token in TOKENS]
    + ["<|", "|>", "<", "`", "\n", " ", "assistant", "analysis", "final", " to=functions.f", "{}"]
    + ["a" * 100]
)


@given(
    st.lists(fragments, max_size=20).map("".join),
    st.lists(st.integers(0, 200), max_size=8),
    st.sampled_from([THINK, CONFIGURED]),
)
def test_a12_cuts_change_nothing_and_no_mark_is_seen(text, places, pairs):
    text = f"<|channel|>{text}"
    at = sorted({min(p, len(text)) for p in places})
    parts = [text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)]
    blocks = fold(feed([text], pairs))
    assert fold(feed(parts, pairs)) == blocks
    assert fold(feed(list(text), pairs)) == blocks
    for kind, said, _ in blocks:
        if len(text) < HEADER_LIMIT and (kind != "text" or "`" not in text):
            assert not MARK.search(said), (text, blocks)
