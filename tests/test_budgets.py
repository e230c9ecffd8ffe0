"""The hot paths stay within their recorded budgets, counted in instructions and not in time."""

import sys

import pytest
from bench.budgets import PATHS, STARTS, VERSION, budgets, cost, instructions

ALLOWED = 1.1
"""How much of its budget a path may use."""


@pytest.mark.skipif(not budgets(), reason=f"no budgets are recorded for Python {VERSION}")
@pytest.mark.skipif(sys.gettrace() is not None, reason="something else traces the instructions")
@pytest.mark.parametrize("name", [*PATHS, *STARTS])
def test_a_hot_path_stays_within_its_budget(name):
    counted, budget = cost(name), budgets()[name]
    assert counted <= budget * ALLOWED, (
        f"{name}: {counted:,.0f} counted, {counted / budget - 1:.0%} more than recorded; "
        "make it cheaper, or record it with `python -m bench.budgets --write` and say why"
    )


def test_every_path_has_a_budget():
    assert budgets().keys() in ({*PATHS, *STARTS}, set())


def test_instructions_are_counted_alike_each_time_and_grow_with_the_work():
    def work(times):
        return sum(number * number for number in range(times))

    once = instructions(lambda: work(100))
    assert once == instructions(lambda: work(100))
    assert instructions(lambda: work(200)) > 1.9 * once
