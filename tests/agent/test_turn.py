"""The table of a turn's states: every way through it ends, and every limit holds."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.agent.turn import (
    FINAL,
    TABLE,
    Limits,
    Progress,
    Signal,
    State,
    advance,
    allows,
    meaning,
)
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
        advance(Progress(), "results", Limits())


ASKS = ("begin", "results", "silent", "hurried", "overdue")
few = st.integers(0, 3)
limits_of_all_kinds = st.builds(Limits, st.integers(1, 4), few, few, few, few, few)


@given(limits_of_all_kinds, st.data())
def test_whatever_happens_a_turn_comes_to_an_end_and_asks_no_more_than_its_limits_say(limits, data):
    progress, asked, shortened, healed = Progress(), 0, 0, 0
    again = limits.heals * 2 + limits.shortenings * 2 + limits.overflows * 3
    most = limits.requests * (2 + again) + limits.rounds + 1
    for _ in range(most + 1):
        if progress.state in FINAL:
            break
        # what would end the turn is drawn last: the other side is out for as much as it can get
        ways = [signal for signal in SIGNALS if allows(progress, signal, limits)]
        going = [signal for signal in ways if TABLE[progress.state, signal] not in FINAL]
        signal = data.draw(st.sampled_from(going or ways))
        asked += signal in ASKS
        shortened += signal == "full"
        healed += signal == "healed"
        progress = advance(progress, signal, limits)
    assert progress.state in FINAL
    assert asked <= limits.requests
    assert shortened <= limits.shortenings * asked
    assert healed <= limits.heals * asked


def test_a_turn_asks_at_most_102_times():
    assert Limits().requests == 102


@given(limits_of_all_kinds, st.lists(st.sampled_from(SIGNALS), max_size=60))
def test_a_limit_that_is_reached_closes_its_way(limits, signals):
    progress = Progress()
    for signal in signals:
        if not allows(progress, signal, limits):
            with pytest.raises(ValueError, match="cannot be"):
                advance(progress, signal, limits)
            continue
        progress = advance(progress, signal, limits)
        assert progress.round <= limits.rounds
        assert progress.nudges <= limits.nudges
        assert progress.overdue <= limits.overdue
        assert progress.hurries <= limits.hurries
        assert progress.shortenings <= limits.shortenings
        assert progress.heals <= limits.heals


def test_the_clock_ends_one_thought_a_turn_and_a_person_one_a_round():
    walk = ("begin", "event", "overdue", "event")
    progress = Progress()
    for signal in walk:
        progress = advance(progress, signal, Limits())
    assert not allows(progress, "overdue", Limits())
    assert not allows(progress, "hurried", Limits())
    for signal in ("called", "results", "event"):
        progress = advance(progress, signal, Limits())
    assert not allows(progress, "overdue", Limits())
    assert allows(progress, "hurried", Limits())


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
    progress = advance(progress, meaning(answer, progress, Limits(), tools=True), Limits())
    assert (progress.state, progress.nudges) == ("sending", 1)
    for signal in ("event", "called", "results", "event"):  # a tool round does not set it back
        progress = advance(progress, signal, Limits())
    assert meaning(answer, progress, Limits(), tools=True) == "answered"
