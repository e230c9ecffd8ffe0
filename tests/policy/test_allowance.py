"""The results of one round leave the window room, however many calls there are."""

from hypothesis import given
from hypothesis import strategies as st

from mull.policy.allowance import BYTES_PER_TOKEN, LEAST, result_allowance, room


@given(st.integers(1, 2_000_000), st.integers(0, 3_000_000), st.integers(1, 200))
def test_all_results_together_take_half_of_what_is_free(usable, used, calls):
    each = result_allowance(usable, used, calls)
    free = max((usable - used) // 2, usable // 8)
    assert each == LEAST or each * calls <= free
    assert each >= LEAST


def test_where_the_window_is_unknown_only_the_tool_sets_a_limit():
    assert result_allowance(None, 5_000, 3) is None
    assert room(None, 60_000) == 60_000


def test_a_small_window_sets_the_limit_and_a_large_one_does_not():
    small = result_allowance(6_000, 1_000, 1)
    assert (small, room(small, 60_000)) == (2_500, 2_500 * BYTES_PER_TOKEN)
    large = result_allowance(900_000, 1_000, 1)
    assert room(large, 60_000) == 60_000
    assert room(0, 60_000) == LEAST * BYTES_PER_TOKEN
