"""A sample of the matrix of broken answers; the judges run more of it (`tools/faults.py`)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tools.faults import ALTERING, MODELS, PHASES, SPOKEN, Case, Field, Outcome, page, sampled

from mull.testing import Fault
from mull.testing.faults import KINDS

QUICK = tuple(kind for kind in KINDS if kind != "stall")
"""Silence takes its time: one provider waits it out here, the judges let all of them."""
SINGLE = ("cut", "reset", "throttle")
"""What is tried on single bytes here. Altering them is for the judges: it has many positions."""


@pytest.mark.parametrize("provider", MODELS)
def test_broken_answers_lose_nothing_and_the_session_goes_on(provider, tmp_path):
    """Together the providers try every fault in every phase, each of them a third."""
    with Field(provider, tmp_path) as field:
        kinds = KINDS if provider == "anthropic" else QUICK
        events = [*sampled(field.cases(["event"], kinds), 1)][[*MODELS].index(provider) % 3 :: 3]
        single = [*sampled(field.cases(["byte"], SINGLE, every=97), 1)][::3]
        cases = [*events, *single]
        broken = [outcome for case in cases if (outcome := field.run(case)).problems]
        assert broken == []
        assert field.check_store() is None
    assert {case.phase for case in cases} == set(PHASES)
    assert {case.fault.kind for case in cases} > ALTERING


def without_calls(answer):
    return replace(answer, blocks=tuple(b for b in answer.blocks if b not in answer.tool_calls))


def with_other_arguments(answer):
    *rest, call = answer.blocks
    return replace(answer, blocks=(*rest, replace(call, arguments='{"at":"a window"}')))


LIES = {
    "a lost call": without_calls,
    "other arguments": with_other_arguments,
    "a call that came once": lambda one: replace(one, blocks=(*one.blocks, one.blocks[-1])),
    "a lost thought": lambda one: replace(one, blocks=one.blocks[1:]),
    "no usage": lambda one: replace(one, usage=None),
    "other usage": lambda one: replace(one, usage=replace(one.usage, output=1)),
    "another ending": lambda one: replace(one, stop_reason="length"),
    "no ending": lambda one: replace(one, status="interrupted"),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    with Field("kimi", tmp_path_factory.mktemp("field")) as field:
        yield field


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_what_is_stored_is_held_against_what_came(whole, lie):
    steps = [b"".join(whole.response.pieces("byte"))]
    answer = whole.read(whole.response.body)
    assert (answer.status, len(answer.tool_calls)) == ("complete", 1)
    assert [*whole.misread(steps, [answer])] == []
    assert len([*whole.misread(steps, [lie(answer)])]) == 1
    assert [*whole.misread(steps, [])] != []


def test_the_page_tells_what_broke():
    held = Outcome("kimi", Case(Fault("cut", 3, "event"), "text"), ())
    broken = Outcome("kimi", Case(Fault("cut", 4, "event"), "text"), ("lost: x",))
    text = page([held, broken], 5)
    assert "**2 cases, 1 broken.**" in text
    assert "| cut | 0 | 0 | 1 of 2 | 0 | 0 | 1 of 2 |" in text
    assert f"| {SPOKEN['kimi']} | 0 | 0 | 1 of 2 |" in text
