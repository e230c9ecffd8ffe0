"""REQ-THINK-002: the four public functions on thinking."""

from hypothesis import given
from hypothesis import strategies as st

from conversations import messages as any_message
from conversations import plain_turn, thought, thoughts, tool_turn
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolResultBlock
from mull.neutral.messages import Message, assistant, user
from mull.policy.reasoning import (
    extract_thinking_blocks,
    filter_thinking_for_context,
    starts_turn,
    thinking_to_reasoning_field,
    without_thinking,
)
from mull.policy.tokens import CHARACTERS
from mull.tokenizers import counter_named, estimate_thinking_tokens


def test_req_think_002_1_extracts_from_one_message_or_many():
    a, b = assistant(thought("a"), TextBlock("x"), thought("b")), assistant(thought("c"))
    assert extract_thinking_blocks(a) == (thought("a"), thought("b"))
    assert extract_thinking_blocks([a, user("q"), b]) == (thought("a"), thought("b"), thought("c"))
    assert extract_thinking_blocks(user("q")) == ()


def test_req_think_002_2_filters_by_policy():
    log = plain_turn("1") + plain_turn("2") + plain_turn("3")
    assert thoughts(filter_thinking_for_context(log, "none")) == ["T1", "T2", "T3"]
    assert thoughts(filter_thinking_for_context(log, "allButLast")) == ["T3"]
    assert thoughts(filter_thinking_for_context(log, "all")) == []


def test_the_last_turn_with_thinking_is_a_whole_turn_with_its_tool_rounds():
    log = plain_turn("1") + tool_turn("2", rounds=2) + plain_turn("3", thinks=False)
    kept = thoughts(filter_thinking_for_context(log, "allButLast"))
    assert kept == ["T2.0", "T2.1", "T2"]


def test_blank_thoughts_are_not_the_last_thinking():
    log = [*plain_turn("1"), user("q"), assistant(thought(" "), TextBlock("x"))]
    assert thoughts(filter_thinking_for_context(log, "allButLast")) == ["T1"]


def test_a_history_without_a_user_is_one_turn():
    log = [assistant(thought("a"), TextBlock("x"))]
    assert thoughts(filter_thinking_for_context(log, "allButLast")) == ["a"]
    assert filter_thinking_for_context([], "allButLast") == ()


def test_results_in_a_users_name_do_not_start_a_turn():
    result = Message(role="user", blocks=(ToolResultBlock("c", "r"),))
    assert not starts_turn(result)
    assert starts_turn(Message(role="user"))
    log = [user("q"), assistant(thought("a"), TextBlock("x")), result, assistant(TextBlock("y"))]
    assert thoughts(filter_thinking_for_context(log, "allButLast")) == ["a"]


@given(st.lists(any_message, max_size=6), st.sampled_from(["all", "allButLast", "none"]))
def test_filtering_loses_thinking_and_nothing_else(log, policy):
    seen = filter_thinking_for_context(log, policy)
    assert [without_thinking(m) for m in seen] == [without_thinking(m) for m in log]
    kept, stored = extract_thinking_blocks(seen), extract_thinking_blocks(log)
    assert [b for b in stored if any(b is k for k in kept)] == list(kept)


def test_req_think_002_3_joins_raw_pieces_bare_and_summaries_as_paragraphs():
    assert thinking_to_reasoning_field([thought("a"), thought("b")]) == "ab"
    parts = [ThinkingBlock("**A**", kind="summary"), ThinkingBlock("**B**", kind="summary")]
    assert thinking_to_reasoning_field(parts) == "**A**\n\n**B**"


def test_ec_007_nothing_left_is_none_never_an_empty_string():
    assert thinking_to_reasoning_field([]) is None
    assert thinking_to_reasoning_field([thought("")]) is None
    assert thinking_to_reasoning_field([thought(" ")]) == " "


def test_req_think_002_4_estimates_blocks_and_messages_alike():
    block = thought("x" * 300)
    assert estimate_thinking_tokens([block], CHARACTERS) == 150
    assert estimate_thinking_tokens(assistant(block, TextBlock("y" * 900)), CHARACTERS) == 150
    both = [assistant(block), user("q"), assistant(block)]
    assert estimate_thinking_tokens(both, CHARACTERS) == 300
    assert estimate_thinking_tokens([]) == 0


def test_req_think_002_4_estimates_with_the_tokenizer_by_default():
    sentence = "The survey of the northern line found the bridge sound, so the train may pass. "
    block = thought((sentence * 40)[:3000])
    assert estimate_thinking_tokens([block]) == counter_named("o200k_base").count(block.thought)
    assert 600 < estimate_thinking_tokens(assistant(block)) < 800


def test_err_003_a_huge_thought_is_counted_not_cut():
    block = thought("z" * 3_000_000)
    assert estimate_thinking_tokens([block], CHARACTERS) == 1_500_000
    assert thinking_to_reasoning_field([block]) == block.thought
