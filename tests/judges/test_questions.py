"""A task of 40 tool calls at a real terminal: how often mull asks, what it writes. Needs `tmux`."""

import shutil

import pytest
from tools.questions import measure

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed"),
]


def test_forty_calls_cost_two_questions_and_write_nothing_outside(tmp_path):
    outcome = measure("mull", tmp_path)
    asked = [step for step, times in enumerate(outcome.asked, 1) for _ in range(times)]
    assert len(asked) <= 2, asked
    # the sandbox gives commands a temporary folder of their own, with a home in it
    assert [one for one in outcome.outside if not one.startswith("tmp/mull-sandbox-")] == []
