"""Whole conversations of every kind of client, on every upstream and from one to another."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from effort import tried
from gateway.talking import conversations, hold, manners, world
from mull.gateway.memory import InProcess
from talks import TALKS


@pytest.fixture(scope="module")
def everything():
    with world(InProcess()) as made:
        yield made


@pytest.mark.parametrize("dialect", TALKS)
@settings(suppress_health_check=list(HealthCheck), deadline=None, max_examples=200)
@given(data=st.data())
def test_no_conversation_loses_a_thought(everything, dialect, data):
    manner = data.draw(manners)
    hold(everything, TALKS[dialect](manner), data.draw(conversations(1)))
