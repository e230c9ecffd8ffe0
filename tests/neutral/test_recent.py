import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.neutral.recent import Recent

pytestmark = pytest.mark.core


def test_what_was_put_is_found_and_nothing_else():
    recent = Recent(1_000)
    recent.put("a", [1], 10)

    assert recent.get("a") == [1]
    assert recent.get("b") is None


def test_what_was_not_asked_for_longest_goes_first():
    recent = Recent(160)
    for key in range(16):
        recent.put(key, key, 10)
    recent.get(0)
    recent.put(16, 16, 10)

    assert recent.get(0) == 0
    assert recent.get(1) is None
    assert recent.get(16) == 16


def test_what_would_push_out_nearly_all_the_rest_is_not_kept():
    recent = Recent(160)
    recent.put("small", 1, 10)
    recent.put("large", 2, 11)

    assert recent.get("small") == 1
    assert recent.get("large") is None


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=200))
def test_it_never_holds_more_than_its_room(steps):
    recent, sizes = Recent(160), {}
    for key, size in steps:
        if recent.get(key) is None:
            recent.put(key, key, size)
            sizes[key] = size
        assert sum(sizes[k] for k in sizes if k in recent._kept) <= 160
