"""The matrix of broken answers: every fault at every chunk and event, and at some bytes.

MULL_FAULTS=29 looks at every 29th byte, which takes an hour.
"""

from __future__ import annotations

import os

import pytest
from tools.faults import MODELS, run_all

EVERY = int(os.environ.get("MULL_FAULTS", "997"))
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("provider", MODELS)
def test_nothing_breaks(provider):
    outcomes = [*run_all(provider, every=EVERY)]
    assert len(outcomes) > 100
    assert [outcome for outcome in outcomes if outcome.problems] == []
