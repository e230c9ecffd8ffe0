"""Budget arithmetic: thirds of a range, and what fits beside the answer."""

from fractions import Fraction
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.neutral.errors import BudgetError
from mull.neutral.target import ReasoningOption
from mull.policy.thinking.budget import (
    ANSWER_ROOM,
    LEAST_ANSWER,
    Window,
    budget_for_level,
    check_range,
    fit_budget,
    level_for_budget,
    shrink_for_context,
)

LEVELS = ("minimal", "low", "medium", "high", "xhigh", "max")


def option(low, high):
    return ReasoningOption("budget_tokens", min=low, max=high)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1024, 64_000, (1024, 22_016, 43_008, 64_000)),
        (1024, 32_000, (1024, 11_349, 21_674, 32_000)),
        (128, 32_768, (128, 11_008, 21_888, 32_768)),
        (0, 24_576, (0, 8192, 16_384, 24_576)),
        (512, 24_576, (512, 8533, 16_554, 24_576)),
    ],
)
def test_document_004_ranges(low, high, expected):
    got = tuple(budget_for_level(option(low, high), level) for level in LEVELS[:4])
    assert got == expected
    assert budget_for_level(option(low, high), "xhigh") == high
    assert budget_for_level(option(low, high), "max") == high


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 10, (0, 3, 6, 10)),
        (0, 11, (0, 3, 7, 11)),
        (1, 12, (1, 4, 8, 12)),
        (1024, 32_001, (1024, 11_349, 21_675, 32_001)),
        (1000, 1001, (1000, 1000, 1000, 1001)),
        (7, 7, (7, 7, 7, 7)),
    ],
)
def test_thirds_of_a_range_that_three_does_not_divide_are_cut_once(low, high, expected):
    """Document 004: min + (max − min) / 3 and min + 2 (max − min) / 3, in whole numbers."""
    got = tuple(budget_for_level(option(low, high), level) for level in LEVELS[:4])
    assert got == expected


@given(low=st.integers(0, 5_000), span=st.integers(0, 200_000))
def test_levels_are_the_whole_part_of_their_thirds(low, span):
    worth = [budget_for_level(option(low, low + span), level) for level in LEVELS]
    assert worth == [low + floor(Fraction(third * span, 3)) for third in (0, 1, 2, 3, 3, 3)]


@given(low=st.integers(0, 5_000), span=st.integers(1, 200_000), budget=st.integers(1, 300_000))
def test_a_number_stands_for_the_lowest_level_that_is_worth_as_much(low, span, budget):
    steer = option(low, low + span)
    level = level_for_budget(steer, budget)
    assert level == "high" or budget_for_level(steer, level) >= budget
    if level != "low":
        below = "low" if level == "medium" else "medium"
        assert budget_for_level(steer, below) < budget


def test_an_open_range_starts_at_the_floor_and_stays_modest():
    assert budget_for_level(ReasoningOption("budget_tokens"), "minimal") == 1024
    assert budget_for_level(ReasoningOption("budget_tokens"), "max") == 32_000


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (100, "a thinking budget of 100 is below 1,024, the minimum of m"),
        (64_001, "a thinking budget of 64,001 is above 64,000, the maximum of m"),
    ],
)
def test_a_users_budget_outside_the_range_names_both_numbers(budget, said):
    with pytest.raises(BudgetError) as caught:
        check_range(option(1024, 64_000), budget, "m")
    assert str(caught.value) == said


def test_max_tokens_is_the_models_own_limit_and_the_budget_stays_under_it():
    limits = option(1024, 64_000)
    fit = fit_budget(10_000, explicit=False, option=limits, window=Window(output=64_000))
    assert (fit.budget, fit.max_tokens, fit.notes) == (10_000, 64_000, ())
    fit = fit_budget(10_000, explicit=False, option=limits, window=Window())
    assert (fit.budget, fit.max_tokens, fit.notes) == (10_000, 10_000 + ANSWER_ROOM, ())


def test_a_derived_budget_is_lowered_to_leave_room():
    fit = fit_budget(
        64_000, explicit=False, option=option(1024, 64_000), window=Window(output=64_000)
    )
    assert (fit.budget, fit.max_tokens) == (64_000 - LEAST_ANSWER, 64_000)
    assert fit.notes[0].text == (
        "budget 64,000 → 62,976, to leave room for the answer in"
        " the 64,000 tokens an answer can have here"
    )


def test_no_room_for_the_smallest_budget_means_none():
    window = Window(max_tokens=1500, output=64_000)
    fit = fit_budget(10_000, explicit=False, option=option(1024, 64_000), window=window)
    assert fit.budget is None
    assert fit.max_tokens == 1500
    assert fit.notes[0].text == (
        "max_tokens 1,500 leave no room for the smallest budget of 1,024 tokens"
    )


@pytest.mark.parametrize(
    ("window", "limit"),
    [
        (Window(max_tokens=2048, output=64_000), "max_tokens 2,048"),
        (Window(output=3000), "the 3,000 tokens an answer can have here"),
    ],
)
def test_a_users_budget_that_cannot_hold_names_both_numbers(window, limit):
    with pytest.raises(BudgetError) as caught:
        fit_budget(4096, explicit=True, option=option(1024, 64_000), window=window)
    assert str(caught.value).startswith(f"a thinking budget of 4,096 does not fit {limit}")


def test_the_window_leaves_what_the_context_does_not_use():
    assert Window(output=64_000, context=200_000, used=190_000).ceiling == 10_000
    assert Window(output=64_000, context=200_000, used=300_000).ceiling == LEAST_ANSWER
    assert Window(context=200_000).ceiling == 200_000
    assert Window().ceiling is None
    assert Window(output=64_000, context=200_000, used=190_000).answer(5_000) == 10_000
    assert Window(context=200_000).answer(5_000) == 5_000 + ANSWER_ROOM
    assert Window(context=9_000).answer(5_000) == 9_000
    assert Window().answer() == ANSWER_ROOM


def test_dynamic_budget_caps_long_contexts_only():
    assert shrink_for_context(30_000, 150_000, 150_000, 10_000) == (30_000, None)
    budget, note = shrink_for_context(30_000, 150_001, 150_000, 10_000)
    assert budget == 10_000
    assert note is not None
    assert note.text == "the context holds 150,001 tokens, over 150,000: budget 30,000 → 10,000"
    assert shrink_for_context(9000, 150_001, 150_000, 10_000) == (9000, None)


@given(
    low=st.integers(0, 4096),
    span=st.integers(1, 100_000),
    level=st.sampled_from(LEVELS),
    output=st.none() | st.integers(1, 200_000),
    asked=st.none() | st.integers(1, 200_000),
    used=st.integers(0, 250_000),
)
def test_a_derived_budget_always_fits_under_max_tokens(low, span, level, output, asked, used):
    steer = option(low, low + span)
    window = Window(max_tokens=asked, output=output, context=200_000, used=used)
    budget = budget_for_level(steer, level)
    fit = fit_budget(budget, explicit=False, option=steer, window=window)
    assert asked is None or fit.max_tokens == asked
    if fit.budget is not None:
        assert low <= fit.budget <= budget
        assert fit.budget < fit.max_tokens
    if asked is None and window.ceiling:
        assert fit.max_tokens <= window.ceiling
