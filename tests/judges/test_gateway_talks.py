"""Many and long conversations through two gateways that take turns on one store."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import tried
from gateway.talking import Round, Turn, conversations, hold, manners, world
from mull.gateway.sqlite import SqliteMemory
from mull.testing import Call, Say, Think
from talks import TALKS, Manner, Result

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROUNDS = 60


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    file = tmp_path_factory.mktemp("store") / "turns.db"
    with world(SqliteMemory(file), SqliteMemory(file)) as made:
        yield made


@pytest.mark.parametrize("dialect", TALKS)
@tried(8)
@given(data=st.data())
def test_no_conversation_loses_a_thought(two, dialect, data):
    hold(two, TALKS[dialect](data.draw(manners)), data.draw(conversations(gateways=2)))


@pytest.mark.parametrize("dialect", TALKS)
@pytest.mark.parametrize("upstream", ["kimi", "anthropic", "gemini", "openai"])
@pytest.mark.parametrize("drops", [False, True])
def test_sixty_rounds_in_one_turn(two, dialect, upstream, drops):
    rounds = [
        Round(
            [Think(f"thought {at}"), *[Call("look", {"at": str(at)})] * (1 + at % 6)],
            upstream,
            at % 2 == 0,
            at % 2,
            [Result(f"result {at}")] * (1 + at % 6),
            range(at % 6, -1, -1),
        )
        for at in range(ROUNDS)
    ]
    last = Round([Think("enough"), Say("Done.")], upstream, False, 0)
    hold(two, TALKS[dialect](Manner(drops=drops)), [Turn("go", [*rounds, last])])
