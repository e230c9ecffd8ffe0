"""What an answer costs: output once, cached input at its own price, unknown never as nothing."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import target
from every_model import every_target
from mull import resolve
from mull.dialects.registry import decode_response
from mull.neutral.assemble import assemble
from mull.neutral.usage import Usage
from mull.policy.cost import add_costs, cost_of, format_cost, is_free

PRICES = {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75}


def million(**counts):
    return Usage(**{"input": 0, "output": 0} | {k: n * 1_000_000 for k, n in counts.items()})


def test_f01_reasoning_is_part_of_the_output_and_is_paid_once():
    answer = {
        "choices": [{"message": {"content": "4"}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": 2008,
            "completion_tokens": 266,
            "total_tokens": 2274,
            "completion_tokens_details": {"reasoning_tokens": 261},
        },
    }
    where = target()
    message = assemble(decode_response(json.dumps(answer).encode(), where), where.origin)
    assert message.usage.reasoning == 261
    assert cost_of(message.usage, {"input": 1, "output": 10}) == (2008 * 1 + 266 * 10) / 1e6


def test_f01_anthropic_counts_thinking_inside_the_output_too():
    usage = Usage(input=51, output=136, reasoning=31, total=187)
    assert cost_of(usage, {"input": 1, "output": 10}) == (51 + 1360) / 1e6


def test_cached_input_has_its_own_price():
    usage = million(input=10, output=1, cache_read=6, cache_write=3)
    assert cost_of(usage, PRICES) == pytest.approx(1 * 3 + 6 * 0.3 + 3 * 3.75 + 15)


@pytest.mark.parametrize("prices", [{}, {"cache_read": 0, "cache_write": 0}])
def test_without_a_price_of_its_own_cached_input_costs_what_input_does(prices):
    usage = million(input=10, cache_read=6, cache_write=3)
    assert cost_of(usage, {"input": 3, "output": 15, **prices}) == 30


@pytest.mark.parametrize("name", ["cached_input", "cache_input"])
def test_the_catalogs_other_spellings_are_understood(name):
    prices = {"input": 3, "output": 15, name: 1, "cached_write": 5}
    assert cost_of(million(input=3, cache_read=1, cache_write=1), prices) == 3 + 1 + 5


def test_a_long_input_is_in_a_dearer_tier():
    tiers = [
        {"tier": {"size": 500_000}, "input": 9, "output": 45},
        {"tier": {"type": "context", "size": 200_000}, "input": 6, "output": 30},
    ]
    prices = {**PRICES, "tiers": tiers}
    costs = [cost_of(Usage(n, 1_000_000), prices) for n in (200_000, 200_001, 500_001)]
    assert costs == pytest.approx([15 + 0.6, 30 + 1.200006, 45 + 4.500009])


def test_reasoning_with_a_price_of_its_own():
    prices = {"input": 0, "output": 1, "reasoning": 4}
    assert cost_of(million(output=3, reasoning=2), prices) == 1 + 8
    assert cost_of(million(output=3), prices) is None


@pytest.mark.parametrize(
    ("usage", "prices"),
    [
        (None, PRICES),
        (Usage(), PRICES),
        (Usage(input=5), PRICES),
        (Usage(output=5), PRICES),
        (Usage(5, 5), None),
        (Usage(5, 5), {}),
        (Usage(5, 5), {"input": 3}),
        (Usage(5, 5), {"output": 3}),
    ],
)
def test_unknown_stays_unknown(usage, prices):
    assert cost_of(usage, prices) is None


def test_what_has_no_price_per_token_costs_nothing():
    assert cost_of(Usage(5, 5), {"input": 0, "output": 0}) == 0
    subscribed = resolve("zai-coding-plan/glm-4.7").facts.cost
    assert cost_of(Usage(5, 5), subscribed) == 0
    assert [is_free(p) for p in (subscribed, {}, None, PRICES)] == [True, False, False, False]


@pytest.mark.sweep
def test_every_price_of_the_catalog_can_be_used():
    usage = Usage(300_000, 2000, reasoning=1500, cache_read=1000, cache_write=1000)
    known = 0
    for to in every_target().values():
        prices = to.facts.cost
        cost = cost_of(usage, prices)
        assert cost is None if not prices else cost >= 0
        known += cost is not None
    assert known > 4000


counts = st.integers(0, 10**9)


@given(counts, counts, st.floats(0, 1), st.floats(0, 1))
def test_a_cost_is_never_more_than_all_input_and_output_at_full_price(input, output, read, thought):
    usage = Usage(input, output, reasoning=int(output * thought), cache_read=int(input * read))
    most = (input * 3 + output * 15) / 1e6
    cost = cost_of(usage, {"input": 3, "output": 15, "cache_read": 0.3})
    assert output * 15 / 1e6 <= cost <= most * (1 + 1e-12)


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (None, "unknown"),
        (0.0, "$0"),
        (0.0123, "$0.0123"),
        (0.01234, "$0.0123"),
        (0.12, "$0.12"),
        (0.1, "$0.10"),
        (0.000045, "$0.000045"),
        (1.0, "$1.00"),
        (1234.567, "$1,234.57"),
    ],
)
def test_how_a_cost_is_written(cost, text):
    assert format_cost(cost) == text


@pytest.mark.parametrize(
    ("costs", "text"),
    [
        ([0.1, 0.02], "$0.12"),
        ([0.1, None, 0.02], "≥ $0.12"),
        ([None, None], "unknown"),
        ([0.0, 0.0], "$0"),
        ([0.0, None], "≥ $0"),
        ([], "$0"),
    ],
)
def test_a_sum_with_an_unknown_in_it_is_a_least(costs, text):
    assert str(add_costs(costs)) == text
