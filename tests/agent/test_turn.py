"""The table of a turn's states: every way through it ends, and every limit holds."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.agent.turn import FINAL, TABLE, Limits, Progress, Signal, State, advance, meaning
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolCallBlock
from mull.neutral.messages import assistant

STATES = get_args(State)
SIGNALS = get_args(Signal)
THOUGHT = ThinkingBlock("hm")
CALL = ToolCallBlock("c1", "look")


def test_every_state_is_reached_and_only_the_final_ones_are_left_by_nothing():
    assert set(TABLE.values()) == set(STATES) - {"idle"}
    assert {state for state, _ in TABLE} == set(STATES) - FINAL


def test_a_turn_can_be_stopped_and_can_fail_wherever_it_waits():
    for state in set(STATES) - FINAL - {"idle"}:
        assert TABLE[state, "stopped"] == "done"
        assert TABLE[state, "failed"] == "failed"


def test_a_way_that_is_not_in_the_table_is_refused():
    with pytest.raises(ValueError, match="a turn that is idle cannot be results"):
        advance(Progress(), "results")


@given(st.lists(st.sampled_from(SIGNALS), max_size=60))
def test_counts_only_ever_grow(signals):
    progress = Progress()
    for signal in signals:
        if (progress.state, signal) not in TABLE:
            continue
        after = advance(progress, signal)
        assert after.round - progress.round == (signal in ("begin", "results"))
        assert after.nudges - progress.nudges == (signal == "silent")
        progress = after


@pytest.mark.parametrize(
    ("answer", "tools", "said"),
    [
        (assistant(THOUGHT, TextBlock("a")), True, "answered"),
        (assistant(THOUGHT, CALL), True, "called"),
        (assistant(THOUGHT, CALL), False, "answered"),
        (assistant(CALL, status="truncated"), True, "answered"),
        (assistant(CALL, status="interrupted"), True, "failed"),
        (assistant(TextBlock("a"), status="error"), True, "failed"),
        (assistant(THOUGHT, status="no_answer"), True, "silent"),
        (assistant(THOUGHT, status="no_answer"), False, "answered"),
        (assistant(THOUGHT, status="truncated_in_reasoning"), True, "answered"),
    ],
)
def test_what_an_answer_asks_for(answer, tools, said):
    assert meaning(answer, Progress("streaming", 1), Limits(), tools=tools) == said


def test_s03_a_thought_without_an_answer_is_nudged_once_and_then_left():
    answer, progress = assistant(THOUGHT, status="no_answer"), Progress("streaming", 1)
    progress = advance(progress, meaning(answer, progress, Limits(), tools=True))
    assert (progress.state, progress.nudges) == ("sending", 1)
    for signal in ("event", "called", "results", "event"):  # a tool round does not set it back
        progress = advance(progress, signal)
    assert meaning(answer, progress, Limits(), tools=True) == "answered"
