"""What an answer without calls is found by."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from effort import tried
from mull.gateway.attach import keys_of, past_of
from mull.neutral.blocks import TextBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.messages import Message, assistant, user

CALL = assistant(ToolCallBlock("toolu_a1b2c3d4e5f6a7b8", "read", {"path": "a"}))
RESULT = Message(role="tool", blocks=(ToolResultBlock("toolu_a1b2c3d4e5f6a7b8", "milk"),))
DONE = assistant(TextBlock("Done."))


def found(stored: list[Message], sent: list[Message]) -> set[str]:
    """The keys that the last answer has in both conversations."""
    *before, answer = stored
    return {*past_of(before).keys(answer)} & {*keys_of(sent).of_each[-1]}


def test_an_answer_is_found_though_a_reminder_in_the_question_moved():
    stored = [user("The date is Monday."), user("What is to buy?"), CALL, RESULT, DONE]
    sent = [user("What is to buy?"), CALL, RESULT, DONE]
    assert found(stored, sent)


def test_an_answer_after_another_call_is_not_found():
    other = assistant(ToolCallBlock("toolu_ffffffffffffffff0", "read", {"path": "a"}))
    assert not found([user("q"), CALL, RESULT, DONE], [user("p"), other, RESULT, DONE])


def test_without_a_call_before_it_only_the_same_conversation_finds_it():
    assert found([user("q"), DONE], [user(" q\r\n"), DONE])
    assert not found([user("q"), DONE], [user("p"), DONE])


def test_the_same_words_said_twice_after_a_call_are_two_answers():
    once = [user("q"), CALL, RESULT, DONE]
    assert not found(once, [user("p"), CALL, RESULT, DONE, user("again"), DONE])


@given(st.lists(st.sampled_from([user("q"), CALL, RESULT, DONE]), max_size=8))
@tried(1)
def test_a_conversation_that_comes_back_unchanged_is_found_by_every_key(messages):
    stored = [*messages, DONE]
    assert {*past_of(messages).keys(DONE)} <= {*keys_of(stored).of_each[-1]}
