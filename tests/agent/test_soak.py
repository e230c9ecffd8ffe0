"""A session of 200 turns on windows of 2,048 and 4,096 tokens; `make judges` holds a long one."""

from __future__ import annotations

import sys

import pytest

from soaking import soak

pytestmark = [
    pytest.mark.usefixtures("inspected_servers"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc"),
]


def test_a_long_session_on_small_windows_leaves_nothing_behind():
    done = soak(200)
    print(done.figures())
    assert done.refused == []
    assert done.compressions > 20
    assert done.failed == 0
    assert done.tasks == 0
    assert done.descriptors[1] <= done.descriptors[0]
    assert done.threads[1] <= done.threads[0]
