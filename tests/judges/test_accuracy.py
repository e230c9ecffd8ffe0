"""The page on accuracy against what it was written from: a real server, and the recordings."""

import pytest
from tools import accuracy
from tools.accuracy_server import ask_server, conversations

from mull.local import weights
from recordings import need_recordings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PAGE = accuracy.PAGE.read_text(encoding="utf-8")


@pytest.mark.skipif(not weights.is_installed(), reason="`mull local install` was not run")
def test_the_server_counts_what_the_page_says():
    samples = list(ask_server())
    assert len(samples) == len(conversations()) >= 12
    assert all(0.5 < sample.ratio < 1.5 for sample in samples)
    assert accuracy.server_table(samples) in PAGE, "run `python -m tools.accuracy`"


def test_the_recordings_say_what_the_page_says():
    need_recordings()
    assert accuracy.recorded_tables() in PAGE, "run `python -m tools.accuracy`"
