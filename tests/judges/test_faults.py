"""The matrix of broken answers: every fault at every chunk and event, and at some bytes.

One provider by default; MULL_FAULTS=29 tries all of them at every 29th byte, which takes an hour.
"""

from __future__ import annotations

import os

import pytest
from tools.faults import MODELS, run_all

EVERY = int(os.environ.get("MULL_FAULTS", "997"))
PROVIDERS = [*MODELS] if "MULL_FAULTS" in os.environ else [*MODELS][:1]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_nothing_breaks(provider):
    outcomes = [*run_all(provider, every=EVERY)]
    assert len(outcomes) > 100
    assert [outcome for outcome in outcomes if outcome.problems] == []
