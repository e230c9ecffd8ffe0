"""A sample of the matrix of broken answers; the judges run more of it (`tools/faults.py`)."""

from __future__ import annotations

import pytest
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


def test_the_page_tells_what_broke():
    held = Outcome("kimi", Case(Fault("cut", 3, "event"), "text"), ())
    broken = Outcome("kimi", Case(Fault("cut", 4, "event"), "text"), ("lost: x",))
    text = page([held, broken], 5)
    assert "**2 cases, 1 broken.**" in text
    assert "| cut | 0 | 0 | 1 of 2 | 0 | 0 | 1 of 2 |" in text
    assert f"| {SPOKEN['kimi']} | 0 | 0 | 1 of 2 |" in text
