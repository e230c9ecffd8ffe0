"""A table in one test hides no failure."""

from __future__ import annotations

import pytest

from rows import for_each


def test_every_row_that_fails_is_told():
    def is_even(row):
        assert row % 2 == 0

    for_each([2, 4], is_even)
    with pytest.raises(ExceptionGroup, match=r"^2 of 4 rows fail") as raised:
        for_each([1, 2, 3, 4], is_even)
    assert [error.__notes__ for error in raised.value.exceptions] == [["row: 1"], ["row: 3"]]


def test_a_table_without_rows_fails():
    with pytest.raises(AssertionError, match="no rows"):
        for_each([], lambda row: None)
