"""Counting: exact where the vocabulary is known, high where it is not, never a crash."""

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import blocks, listed, snapshot, target
from mull import resolve, tokenizers
from mull.history.log import Log
from mull.neutral.blocks import (
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from mull.neutral.messages import user
from mull.neutral.request import RequestOptions, Tool
from mull.policy.prepare import prepare
from mull.policy.tokens import (
    CHARACTERS,
    MEDIA_TOKENS,
    SafeCounter,
    count_block,
    count_blocks,
    count_tools,
)
from mull.tokenizers import counter_for, counter_named


@pytest.mark.parametrize(
    ("vocabulary", "text", "tokens"),
    [
        ("o200k_base", "hello world", 2),
        ("cl100k_base", "hello world", 2),
        ("o200k_base", "", 0),
        ("o200k_base", "antidisestablishmentarianism", 6),
    ],
)
def test_known_counts_of_real_vocabularies(vocabulary, text, tokens):
    assert counter_named(vocabulary).count(text) == tokens


def test_text_that_spells_a_special_token_is_text():
    assert counter_named("o200k_base").count("<|endoftext|>") > 1


@given(st.text(alphabet="ab \n好", max_size=200), st.integers(2, 20))
def test_a_long_text_is_counted_in_pieces_of_bounded_size(text, size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokenizers, "PIECE", size)
        pieces = list(tokenizers._pieces(text))
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= size


def test_pieces_hardly_change_the_count():
    sentence = " The survey of the northern line found bridge 17 sound."
    counter = counter_named("o200k_base")
    assert counter.count(sentence * 20_000) == 20_000 * counter.count(sentence)


def test_the_counter_is_the_models_own_where_known():
    own = counter_for(target(tokenizer="cl100k_base", tokenizer_exact=True))
    assert (own.name, own.exact) == ("cl100k_base", True)
    stand_in = counter_for(target())
    assert (stand_in.name, stand_in.exact) == ("o200k_base", False)


def test_a_stand_in_is_scaled_to_the_models_own_tokens():
    text = "The quick brown fox jumps over the lazy dog. " * 10
    plain, scaled = counter_for(target()), counter_for(target(tokenizer_scale=1.5))
    assert scaled.count(text) == round(plain.count(text) * 1.5)
    assert (scaled.name, scaled.exact) == ("o200k_base × 1.5", False)
    assert counter_for(target(tokenizer_scale=1.5)) is scaled


CLAUDE = json.loads(Path("tests/fixtures/claude_tokens.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("generation", "name"),
    [
        ("4.6", "anthropic/claude-3-haiku-20240307"),
        ("4.6", "anthropic/claude-sonnet-4-20250514"),
        ("4.6", "anthropic/claude-opus-4-6"),
        ("4.6", "amazon-bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0"),
        ("4.6", "openrouter/anthropic/claude-sonnet-4"),
        ("4.6", "gitlab/duo-chat-haiku-4-5"),
        ("4.6", "openai-compatible/team-claude-sonnet-4-5"),
        ("4.8", "anthropic/claude-opus-4-7"),
        ("4.8", "anthropic/claude-opus-4-8"),
        ("4.8", "anthropic/claude-sonnet-5-5"),
        ("4.8", "anthropic/claude-opus-6"),
        ("4.8", "anthropic/claude-fable-5-1"),
        ("4.8", "amazon-bedrock/us.anthropic.claude-opus-4-8"),
        ("4.8", "openrouter/anthropic/claude-opus-4.8"),
        ("4.8", "github-copilot/claude-opus-4.7"),
        ("4.8", "gitlab/duo-chat-opus-4-7"),
        ("4.8", "openai-compatible/team-claude-opus-4-8"),
        ("4.8", "openai-compatible/opus-5"),
    ],
)
def test_claudes_tokens_are_counted_by_vocabulary_and_script(generation, name):
    counter = counter_for(resolve(name))
    for kind, told in CLAUDE["texts"].items():
        ratio = counter.count(told["text"]) / told[generation]
        assert 0.85 < ratio < 1.18, (kind, ratio)


def test_a_script_changes_the_count_of_its_own_characters_only():
    plain, more = counter_for(target()), counter_for(target(tokenizer_scripts={"greek": 1}))
    for text, extra in (("", 0), ("plain text", 0), ("λόγος", 5), ("été и λ", 1), ("愛 🙂", 0)):
        assert more.count(text) == plain.count(text) + extra


@given(st.text(max_size=60))
def test_no_text_counts_as_nothing(text):
    assert (counter_for(resolve("anthropic/claude-opus-4-8")).count(text) > 0) is bool(text)


def test_the_frame_of_a_request_counts_and_that_of_tools_only_with_tools():
    where = target(frame_tokens=7, tool_frame_tokens=100)
    alone = prepare(Log(), snapshot(), where)
    tools = prepare(Log(), snapshot(), where, RequestOptions(tools=(Tool("f"),)))
    assert (alone.parts.frame, tools.parts.frame) == (7, 107)
    assert tools.tokens == 107 + tools.parts.tools


def test_err_002_a_failing_tokenizer_leaves_a_higher_estimate_and_one_warning():
    def load():
        raise OSError("no vocabulary")

    counter = SafeCounter("broken", True, load)
    text = "The quick brown fox jumps over the lazy dog. " * 20
    assert counter.count(text) == CHARACTERS.count(text)
    assert counter.count(text) > counter_named("o200k_base").count(text)
    assert (counter.name, counter.exact) == ("characters", False)
    note = counter.take_note()
    assert note is not None
    assert note.warning
    assert note.text == (
        "the tokenizer broken failed (no vocabulary): token counts are now estimated"
        " from characters, on the high side"
    )
    assert counter.take_note() is None


def test_err_002_a_tokenizer_that_fails_in_the_middle():
    seen = []

    def count(text):
        seen.append(text)
        if len(seen) > 1:
            raise ValueError("gone")
        return 1

    counter = SafeCounter("brittle", True, lambda: count)
    assert [counter.count("abc" * 4), counter.count("abc" * 4), counter.count("a")] == [1, 6, 1]
    assert len(seen) == 2


def test_half_a_character_is_that_texts_fault_alone():
    counter = SafeCounter("o200k_base", True, counter_named("o200k_base")._load)
    assert counter.count("a\ud800b") == 3
    assert (counter.name, counter.count("hello world"), counter.take_note()) == (
        "o200k_base",
        2,
        None,
    )


def test_an_unknown_vocabulary_is_survived():
    counter = SafeCounter("nope", False, counter_named("no-such-vocabulary")._load)
    assert counter.count("abcdef") == 3
    assert counter.take_note() is not None


@pytest.fixture
def without_library(monkeypatch):
    """A process in which the tokenizer library cannot be found."""
    caches = (tokenizers.counter_named, tokenizers._estimate)
    monkeypatch.setitem(sys.modules, "splintr", None)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


def test_err_002_without_the_library_all_models_share_one_estimate_and_one_note(without_library):
    talk = Log([user("How many tokens is this?")])
    first = prepare(talk, snapshot(), target(), counter=counter_for(target()))
    scaled = target(tokenizer="cl100k_base", tokenizer_exact=True, tokenizer_scale=1.5)
    second = prepare(talk, snapshot(), scaled, counter=counter_for(scaled))
    assert first.tokens == second.tokens == prepare(talk, snapshot(), target()).tokens
    assert not counter_for(scaled).exact
    told = [note for made in (first, second) for note in made.notes if note.about == "tokens"]
    assert [note.warning for note in told] == [False]
    assert told[0].text.endswith("'mull-reasoning[tokens]'")


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    return [y ** 2 for y in range(x) if y % 3]\n" * 5,
        "Reasoning models each emit their reasoning in another shape. " * 5,
        "思考模型各自以不同的形式输出其推理内容。" * 5,
        "Рассуждающие модели выводят рассуждения по-разному. " * 5,
    ],
)
def test_the_estimate_is_on_the_high_side_for_prose_and_code(text):
    assert CHARACTERS.count(text) >= counter_named("o200k_base").count(text)


def test_surrogates_are_counted_not_fatal():
    assert CHARACTERS.count("\ud800ab") == 3


def test_blocks_count_what_they_send():
    assert count_block(TextBlock("abcdef"), CHARACTERS) == 3
    assert count_block(ToolCallBlock("i", "abc", {"a": 1}), CHARACTERS) == 2 + 4
    assert count_block(ToolCallBlock("i", "abc", {}, '{"a": 1 }'), CHARACTERS) == 2 + 5
    assert count_block(MediaBlock("image/png", "AAAA"), CHARACTERS) == MEDIA_TOKENS
    assert count_block(OpaqueBlock({"a": 1}), CHARACTERS) == 4
    assert count_blocks([TextBlock("abc"), TextBlock("abc")], CHARACTERS) == 4
    assert count_tools([Tool("f", "d", {"type": "object"})], CHARACTERS) == 35


def test_a_carrier_counts_by_its_size_or_its_text_whichever_is_more():
    assert count_block(ThinkingBlock("", signature="x" * 470), CHARACTERS) == 40
    assert count_block(ThinkingBlock("a" * 300, signature="x" * 470), CHARACTERS) == 150
    assert count_block(TextBlock("a", signature="x" * 470), CHARACTERS) == 40
    assert count_block(ToolCallBlock("i", "f", signature="x" * 470), CHARACTERS) == 1 + 1 + 40
    both = ThinkingBlock("", encrypted="x" * 810, redacted="y" * 360)
    assert count_block(both, CHARACTERS) == 10 + 20
    details = [{"type": "reasoning.encrypted", "data": "x" * 810}, {"signature": None}]
    assert count_block(ThinkingBlock("", wire=listed(details)), CHARACTERS) == 10


@pytest.mark.parametrize("carrier", ["signature", "encrypted", "redacted"])
def test_the_shell_of_a_carrier_is_not_thinking(carrier):
    assert count_block(ThinkingBlock("", **{carrier: "x" * 250}), CHARACTERS) == 0


@pytest.mark.parametrize(
    ("length", "thought"),
    [(776, 10), (1400, 64), (2916, 256), (9676, 1408), (11_896, 1728), (13_668, 2112)],
)
def test_encrypted_reasoning_is_estimated_near_what_was_reported(length, thought):
    """Lengths of encrypted content and reasoning tokens, as recorded from GPT-5 models."""
    estimated = count_block(ThinkingBlock("", encrypted="x" * length), CHARACTERS)
    assert thought - 110 <= estimated <= thought + 151


@given(st.lists(blocks, max_size=5))
def test_any_blocks_can_be_counted_by_the_real_tokenizer(some):
    assert count_blocks(some, counter_named("o200k_base")) >= 0
