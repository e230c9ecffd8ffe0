"""The matrix of broken answers: every fault at every chunk and event, and at many bytes."""

from __future__ import annotations

import pytest
from tools.faults import MODELS, run_all

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("provider", MODELS)
def test_nothing_breaks(provider):
    outcomes = [*run_all(provider, every=29)]
    assert len(outcomes) > 500
    assert [outcome for outcome in outcomes if outcome.problems] == []
