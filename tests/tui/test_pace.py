"""What may be sent over a line: no more than one drawing that has not arrived."""

from __future__ import annotations

from mull.tui.screen.pace import Pace


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_terminal_that_never_answers_is_never_waited_for():
    clock = Clock()
    pace = Pace(clock)
    assert pace.sent(100)
    assert not pace.is_waiting
    clock.now = 5
    assert not pace.is_waiting
    assert not pace.is_asked
    assert pace.most > 10_000


def test_on_a_fast_line_few_drawings_ask():
    pace = Pace(Clock())
    pace.sent(10)
    pace.answered()
    assert [pace.sent(1500) for _ in range(3)] == [False, False, True]
    assert pace.is_waiting
    pace.answered()
    assert not pace.is_waiting


def test_on_a_slow_line_every_drawing_asks_and_is_small():
    clock = Clock()
    pace = Pace(clock)
    assert pace.sent(2000)
    clock.now = 6.0  # 4,000 bytes of the start counted with it
    pace.answered()
    assert pace.most == 400
    assert pace.sent(10)
    assert pace.is_waiting
    clock.now += 0.01
    pace.answered()  # it is fast again
    assert pace.most > 10_000


def test_an_answer_that_is_lost_holds_nothing_up_for_ever():
    clock = Clock()
    pace = Pace(clock)
    pace.sent(10)
    pace.answered()
    assert pace.sent(5000)
    clock.now = 9
    assert pace.is_waiting
    clock.now = 11
    assert not pace.is_waiting
    assert pace.sent(5000)
