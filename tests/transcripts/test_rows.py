"""What a turn took: all of its requests together, reasoning once, unknown as unknown."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from conversations import plain_turn, tool_turn
from mull.history.log import Condensed, Entry, Summary
from mull.neutral.blocks import TextBlock
from mull.neutral.messages import Message, assistant, user
from mull.neutral.usage import Usage
from mull.policy.reasoning import starts_turn
from mull.transcripts.transcript import TurnRow, split_turns, turn_rows
from transcript_samples import CLAUDE, RECORDS, price, record_lists


def _unknown(message: Message) -> None:
    return None


def _answer(usage: Usage | None) -> Entry:
    return Entry(assistant(TextBlock("x"), origin=CLAUDE, usage=usage))


def test_f01_reasoning_is_part_of_the_output_and_counted_and_paid_once():
    answer = _answer(Usage(2008, 266, 261, 2274))
    (row,) = turn_rows([Entry(user("q")), answer], price)
    assert (row.output, row.reasoning, row.answer) == (266, 261, 5)
    assert row.cost == pytest.approx((2008 * 3 + 266 * 15) / 1e6)
    assert row.context == 2274


def test_the_rounds_of_a_turn_add_up_and_the_context_is_that_of_the_last():
    row = turn_rows(RECORDS, price)[0]
    assert (row.turn, row.input, row.output, row.reasoning, row.cache_read) == (
        1,
        1820 + 2410,
        96 + 702,
        61 + 448,
        1792,
    )
    assert row.context == 2410 + 702
    assert row.seconds == pytest.approx(16.6)
    assert row.thought_seconds == pytest.approx(12.9)
    assert row.model == "moonshotai/kimi-k2-thinking"


def test_one_answer_without_counts_makes_the_turn_unknown_and_never_zero():
    second = turn_rows(RECORDS, price)[1]
    assert second == TurnRow(
        turn=2, at=second.at, model="anthropic/claude-sonnet-4-5", seconds=pytest.approx(9.3)
    )


def test_what_the_provider_left_out_of_its_counts_stays_unknown():
    (row,) = turn_rows([Entry(user("q")), _answer(Usage(input=5, output=7))], price)
    assert (row.input, row.output, row.reasoning, row.answer, row.cache_read) == (
        5,
        7,
        None,
        None,
        None,
    )


def test_an_unknown_price_leaves_the_tokens_known():
    (row,) = turn_rows([Entry(user("q")), _answer(Usage(5, 7, 1, 12))], _unknown)
    assert (row.input, row.cost) == (5, None)


def test_side_calls_are_paid_in_the_turn_they_stand_in():
    side = Summary(0, 2, "short", by=CLAUDE, usage=Usage(1000, 100, 0, 1100, 0))
    short = Condensed(1, 0, "x", by=CLAUDE, usage=Usage(10, 1, 0, 11, 0))
    (row,) = turn_rows([Entry(user("q")), _answer(Usage(5, 7, 1, 12, 0)), side, short], price)
    assert (row.input, row.output, row.context) == (1015, 108, 12)
    assert row.cost == pytest.approx((1015 * 3 + 108 * 15) / 1e6)


def test_a_summary_that_no_model_made_costs_nothing():
    cut = Summary(0, 2, "left out", strategy="truncate")
    (row,) = turn_rows([Entry(user("q")), _answer(Usage(5, 7, 1, 12, 0)), cut], price)
    assert (row.input, row.output) == (5, 7)


def test_a_question_nobody_answered_has_no_row():
    assert turn_rows([Entry(user("q"))], price) == ()


def test_turns_are_split_where_a_person_speaks():
    talk = [*map(Entry, [*tool_turn("a", 2), *plain_turn("b")])]
    assert split_turns(talk) == [range(0, 6), range(6, 8)]
    assert split_turns([]) == []


def test_a_greeting_before_the_first_question_belongs_to_its_turn():
    talk = [Entry(assistant(TextBlock("hello"))), Entry(user("q")), Entry(user("r"))]
    assert split_turns(talk) == [range(0, 2), range(2, 3)]


@settings(max_examples=15)
@given(record_lists())
def test_every_record_is_in_exactly_one_turn(records):
    turns = split_turns(records)
    assert [at for turn in turns for at in turn] == list(range(len(records)))
    starts = [i for i, r in enumerate(records) if isinstance(r, Entry) and starts_turn(r.message)]
    assert len(turns) == max(len(starts), bool(records))
    assert [turn.start for turn in turns[1:]] == starts[1:]
