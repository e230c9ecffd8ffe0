"""Charts of characters: their parts add up, nothing is lost, unknown is not zero."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mull.tui.text.charts import Part, bar, columns, parted, shares
from mull.tui.text.lines import PLAIN, line_width, plain_text

amounts = st.lists(st.floats(0, 1e9, allow_nan=False), max_size=12)


def test_a_bar_is_filled_to_its_share():
    assert bar(0.5, 10) == "█████     "
    assert bar(0.55, 10) == "█████▌    "
    assert bar(0, 4) == "    "
    assert bar(1e-9, 4) == "▏   "
    assert bar(7, 4) == "████"
    assert bar(0.5, 4, plain=True) == "##.."
    assert bar(0.01, 4, plain=True) == "#..."


@given(st.floats(-1, 2, allow_nan=False), st.integers(1, 80), st.booleans())
def test_a_bar_always_has_its_width(share, width, plain):
    assert len(bar(share, width, plain=plain)) == width


@given(amounts, st.integers(12, 100))
def test_shares_fill_all_cells_and_leave_out_nothing(given_amounts, cells):
    found = shares(given_amounts, cells)
    if sum(given_amounts) > 0:
        assert sum(found) == cells
    for amount, count in zip(given_amounts, found, strict=True):
        assert (count > 0) == (amount > 0 and sum(given_amounts) > 0)


@given(amounts, st.integers(12, 100))
def test_a_larger_amount_lacks_at_most_the_one_cell_that_a_little_one_needs(given_amounts, cells):
    found = sorted(zip(given_amounts, shares(given_amounts, cells), strict=True))
    assert all(one[1] <= other[1] + 1 for one, other in pairwise(found))


def test_a_bar_of_parts_is_blocks_or_letters():
    parts = [Part(60, PLAIN, "a"), Part(20, PLAIN, "b"), Part(20, PLAIN, "░"), Part(0, PLAIN, "c")]
    assert plain_text([parted(parts, 10)]) == "████████░░"
    assert plain_text([parted(parts, 10, plain=True)]) == "aaaaaabb░░"
    assert line_width(parted([], 10)) == 0


def test_columns_are_as_high_as_their_values():
    assert columns([0, 1, 4, 8, None], 9) == "▁▂▅█?"
    assert columns([0, 1, 4, 8, None], 9, plain=True) == "0259?"
    assert columns([None, None], 9) == "??"
    assert columns([0, 0], 9) == "▁▁"
    assert columns([], 9) == ""


def test_more_values_than_cells_share_columns_and_the_highest_is_drawn():
    assert columns([1, 9, 1, 1, None, None], 3, plain=True) == "91?"


@given(st.lists(st.none() | st.floats(0, 1e12, allow_nan=False), max_size=200), st.integers(1, 50))
def test_columns_never_take_more_than_the_width(values, width):
    drawn = columns(values, width)
    assert len(drawn) == min(len(values), width)
    assert ("?" in drawn) <= (None in values)
