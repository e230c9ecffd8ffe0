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


def answer(pace, clock, seconds):
    clock.now += seconds
    pace.answered()


def test_on_a_fast_line_few_drawings_ask():
    clock = Clock()
    pace = Pace(clock)
    pace.sent(100)
    answer(pace, clock, 0.001)
    assert [pace.sent(1500) for _ in range(3)] == [False, False, True]
    assert pace.is_waiting
    answer(pace, clock, 0.001)
    assert not pace.is_waiting


def test_on_a_slow_line_every_drawing_asks_and_is_small():
    clock = Clock()
    pace = Pace(clock)
    assert pace.sent(2000)
    answer(pace, clock, 2.0)
    assert pace.most == 200
    assert pace.sent(10)
    assert pace.is_waiting
    answer(pace, clock, 0.0001)  # it is fast again
    assert pace.most > 10_000
    assert not pace.sent(10)


def test_few_bytes_do_not_make_a_slow_line_look_fast():
    clock = Clock()
    pace = Pace(clock)
    for size in (700, 60, 90, 50):  # as fast as a kilobyte a second lets them
        assert pace.sent(size)
        answer(pace, clock, size / 1000)
        assert pace.most == 200


def test_few_bytes_on_a_long_way_do_not_make_a_fast_line_look_slow():
    clock = Clock()
    pace = Pace(clock)
    for _ in range(9):
        pace.sent(pace.most)
        answer(pace, clock, 0.1)
    most = pace.most
    assert most > 10_000
    for _ in range(200):
        if pace.sent(90):
            answer(pace, clock, 0.1)
    assert pace.most == most


def test_an_answer_that_is_lost_holds_nothing_up_for_ever():
    clock = Clock()
    pace = Pace(clock)
    pace.sent(10)
    answer(pace, clock, 0.0001)
    assert pace.sent(5000)
    clock.now = 9
    assert pace.is_waiting
    clock.now = 11
    assert not pace.is_waiting
    assert pace.sent(5000)
