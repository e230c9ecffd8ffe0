"""What a turn waits for, as a person is told."""

from __future__ import annotations

from mull.neutral.events import Retrying, StateChanged, TextDelta
from mull.tui.conversation.waiting import Wait


def test_silence_is_told_when_it_grows_and_forgotten_when_something_comes():
    wait = Wait()
    assert wait.text("Working 3 s", 0.0) == "Working 3 s · Esc interrupts"
    wait.silence = 9.9
    assert wait.text("Working 9 s", 0.0) == "Working 9 s · Esc interrupts"
    wait.silence = 12.7
    assert wait.text("Working 14 s", 0.0) == "Working 14 s · no data for 12 s · Esc interrupts"
    wait.event(TextDelta("x"), 0.0)
    assert wait.text("Working 15 s", 0.0) == "Working 15 s · Esc interrupts"


def test_a_retry_is_counted_down_until_something_comes():
    wait = Wait()
    wait.event(Retrying(4, 8.0, "503: busy", 10), 100.0)
    assert wait.text("", 100.1) == "Retrying in 8 s (attempt 4/10) · Esc cancels"
    assert wait.text("", 107.5) == "Retrying in 1 s (attempt 4/10) · Esc cancels"
    assert wait.text("", 109.0) == "Retrying now (attempt 4/10) · Esc cancels"
    wait.event(StateChanged("sending", 1, 50), 109.0)
    assert wait.text("", 109.0).startswith("Retrying now")
    wait.event(TextDelta("x"), 110.0)
    assert wait.text("Working 2 s", 110.0) == "Working 2 s · Esc interrupts"
    wait.event(Retrying(2, 0.0, "again"), 111.0)
    assert wait.text("", 111.0) == "Retrying now (attempt 2) · Esc cancels"
