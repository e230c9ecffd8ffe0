"""A long session on windows of 2,048 and 4,096 tokens, with tools, compression and switches of
models. What it took is printed (`pytest -s`). MULL_SOAK asks for more turns, or fewer."""

from __future__ import annotations

import os
import sys

import pytest

from soaking import soak

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("inspected_servers"),
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc"),
]
TURNS = int(os.environ.get("MULL_SOAK", "2500"))
GROWTH = 6.0
"""kB that a turn may add to the process: what was said in it, which is kept."""


def test_a_session_of_thousands_of_turns_leaves_nothing_behind():
    done = soak(TURNS)
    print(done.figures())
    assert done.refused == []
    assert done.longest["small"] < 2048
    assert done.longest["other"] < 4096
    assert done.failed == 0
    assert done.tasks == 0
    assert done.descriptors[1] <= done.descriptors[0]
    assert done.threads[1] <= done.threads[0]
    grown = (done.size[1] - done.size[0]) * 1000 / (done.turns * 0.9)
    assert grown < GROWTH
