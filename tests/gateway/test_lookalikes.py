"""A gateway never gives one conversation the thinking of another that looks alike."""

from __future__ import annotations

import pytest

from gateway.lookalikes import LookAlikes
from gateway.talking import world
from mull.gateway.memory import InProcess
from mull.gateway.sqlite import SqliteMemory


@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", [64, pytest.param(1_200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("store", ["memory", "disk"])
def test_no_conversation_gets_the_thinking_of_another(store, number, tmp_path):
    memory = InProcess() if store == "memory" else SqliteMemory(tmp_path / "serve.db")
    with world(memory) as made:
        some = LookAlikes(made, seed=number)
        some.hold(number)
    assert some.seen["judged"] > 2 * number
    assert all(some.seen[kind] for kind in ("restored", "none, and said", "generated anew"))
