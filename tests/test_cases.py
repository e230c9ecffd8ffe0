"""Every failure on our list is named by at least one test."""

from pathlib import Path

import pytest
from tools.cases import CASES, named_by

FOUND = named_by(Path(__file__).parent)


@pytest.mark.parametrize("case", CASES)
def test_each_case_has_a_test(case):
    assert FOUND[case], f"no test names {case}: {CASES[case]}"
