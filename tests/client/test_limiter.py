"""The limiter: what it lets out, told the time; and that all who share it pause together."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import target
from loops import FakeClock
from mull.auth.secret import Secret
from mull.client.access import Access
from mull.client.limiter import LONGEST_PAUSE, WINDOW, Gate, Limiter, limiter_of
from mull.neutral.rate_limit import RateLimit, RateWindow
from mull.policy.failure import Failure


def admitted(limiter, count, tokens=10):
    return [limiter.admit(tokens) for _ in range(count)]


def test_nothing_is_held_back_before_the_endpoint_says_anything():
    limiter = Limiter()
    admitted(limiter, 500)
    assert limiter.wait(10_000_000, 0.0) == 0.0


def test_all_wait_for_the_moment_that_one_was_told():
    limiter = Limiter()
    (number, _), *_ = admitted(limiter, 8)
    limiter.leave(answered=False)
    limiter.crowded(number, 12.0, 100.0)
    assert limiter.wait(1, 100.0) == 12.0
    assert limiter.wait(1, 111.0) == 1.0
    assert limiter.width == 3.5
    assert limiter.wait(1, 112.0) is None  # seven are still under way
    for _ in range(4):
        limiter.leave(answered=True)
    assert limiter.wait(1, 112.0) == 0.0


def test_those_that_were_under_way_together_count_once():
    limiter = Limiter()
    numbers = [number for number, _ in admitted(limiter, 8)]
    for number in numbers:
        limiter.leave(answered=False)
        limiter.crowded(number, None, 0.0)
    assert limiter.width == 3.5
    assert limiter.wait(1, 0.0) == 1.0


def test_pauses_grow_until_something_is_answered():
    limiter, now, pauses = Limiter(), 0.0, []
    for _ in range(9):
        number, _ = limiter.admit(1)
        limiter.leave(answered=False)
        limiter.crowded(number, None, now)
        pauses.append(limiter.wait(1, now))
        now += pauses[-1]
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, LONGEST_PAUSE, LONGEST_PAUSE, LONGEST_PAUSE]
    limiter.admit(1)
    limiter.leave(answered=True)
    number, _ = limiter.admit(1)
    limiter.crowded(number, None, now)
    assert limiter.wait(1, now) == 1.0


def test_each_answer_widens_it_a_little():
    limiter = Limiter()
    (number, _), *_ = admitted(limiter, 5)
    limiter.leave(answered=False)
    limiter.crowded(number, 0.0, 0.0)
    assert limiter.width == 2.0
    for _ in range(4):
        limiter.leave(answered=True)
    assert 3.0 < limiter.width < 4.0


@pytest.mark.parametrize(
    ("limit", "waits"),
    [
        (RateLimit(requests=RateWindow(60, 3, 20.0)), [0, 0, 0, 20.0]),
        (RateLimit(tokens=RateWindow(1000, 25, 7.0)), [0, 0, 7.0]),
        (RateLimit(input_tokens=RateWindow(1000, 10, 7.0)), [0, 7.0]),
        (RateLimit(requests=RateWindow(remaining=1)), [0, WINDOW]),
        (RateLimit(requests=RateWindow(60, 60, 0.0)), [0] * 50),
    ],
)
def test_what_is_left_is_not_exceeded(limit, waits):
    limiter = Limiter()
    limiter.heard(*limiter.admit(10), limit, 0.0)
    for wait in waits:
        assert limiter.wait(10, 0.0) == wait
        limiter.admit(10)


def test_what_went_out_after_a_response_was_asked_for_is_not_in_its_count():
    limiter = Limiter()
    first = limiter.admit(10)
    admitted(limiter, 4)
    limiter.heard(*first, RateLimit(requests=RateWindow(60, 5, 20.0)), 0.0)
    assert limiter.wait(10, 0.0) == 0.0
    limiter.admit(10)
    assert limiter.wait(10, 0.0) == 20.0


def test_an_older_response_says_nothing_new():
    limiter = Limiter()
    old, new = limiter.admit(1), limiter.admit(1)
    limiter.heard(*new, RateLimit(requests=RateWindow(60, 0, 20.0)), 0.0)
    limiter.heard(*old, RateLimit(requests=RateWindow(60, 50, 20.0)), 0.0)
    assert limiter.wait(1, 0.0) == 20.0


def test_after_the_reset_there_is_a_whole_limit_again():
    limiter = Limiter()
    limiter.heard(*limiter.admit(1), RateLimit(requests=RateWindow(3, 0, 20.0)), 0.0)
    assert limiter.wait(1, 19.0) == 1.0
    waits = []
    for _ in range(4):
        waits.append(limiter.wait(1, 20.0))
        limiter.admit(1)
    assert waits == [0, 0, 0, WINDOW]


def test_a_daily_limit_is_not_waited_for_a_day():
    limiter = Limiter()
    limiter.heard(*limiter.admit(1), RateLimit(requests=RateWindow(1440, 0, 86400.0)), 0.0)
    assert limiter.wait(1, 0.0) == WINDOW
    assert limiter.wait(1, WINDOW) == 0.0
    limiter.admit(1)
    assert limiter.wait(1, WINDOW) == WINDOW  # one a minute


def test_the_tokens_of_answers_are_learnt():
    limiter = Limiter()
    limiter.used(100)
    limiter.heard(*limiter.admit(10), RateLimit(tokens=RateWindow(1000, 150, 7.0)), 0.0)
    assert limiter.wait(10, 0.0) == 0.0
    limiter.admit(10)
    assert limiter.wait(10, 0.0) == 7.0


def test_one_that_is_larger_than_the_limit_goes_out_alone():
    limiter = Limiter()
    limiter.heard(*limiter.admit(10), RateLimit(tokens=RateWindow(100, 100, 7.0)), 0.0)
    assert limiter.wait(5000, 0.0) == 7.0
    limiter.leave(answered=True)
    assert limiter.wait(5000, 0.0) == 0.0


steps = st.lists(
    st.tuples(
        st.sampled_from(["admit", "answered", "failed", "crowded", "heard"]),
        st.floats(0, 100),
        st.none() | st.integers(0, 50),
        st.none() | st.floats(0, 100_000),
    ),
    max_size=40,
)


@given(steps)
def test_it_never_stands_still(steps):
    """Whatever it is told: with nothing under way, waiting as long as it says leads out of it."""
    limiter, now, under_way = Limiter(), 0.0, []
    for what, later, count, seconds in steps:
        now += later
        match what:
            case "admit":
                under_way.append(limiter.admit(10))
            case "heard" if under_way:
                window = RateWindow(50, count, seconds)
                limiter.heard(*under_way[-1], RateLimit(window, window), now)
            case "crowded" if under_way:
                limiter.crowded(under_way[-1][0], seconds, now)
            case "answered" | "failed" if under_way:
                under_way.pop()
                limiter.leave(answered=what == "answered")
    for _ in under_way:
        limiter.leave(answered=False)
    for _ in range(20):
        wait = limiter.wait(10, now)
        assert wait is not None
        if wait == 0.0:
            return
        now += wait
    raise AssertionError("it never lets anything out")


def test_one_limiter_for_a_key_at_a_model():
    way, same, other = (Access("https://a", Secret(f"k{key}-secret")) for key in (1, 1, 2))
    assert limiter_of(way, target()) is limiter_of(same, target())
    assert limiter_of(way, target()) is not limiter_of(other, target())
    assert limiter_of(way, target()) is not limiter_of(Access("https://b", way.key), target())
    assert "k1" not in repr(limiter_of.__globals__["_limiters"])


class Asked:
    """What a gate needs of a request."""

    def __init__(self, tokens=10):
        self.target, self.estimate = target(), tokens


def test_the_gate_sleeps_as_long_as_the_limiter_says():
    async def go():
        clock = FakeClock()
        gate, way = Gate(clock), Access("https://gate", Secret("k1-secret"))
        async with await gate.wait(Asked(), way) as ticket:
            ticket.heard(429, {"x-ratelimit-remaining-requests": "0"})
        ticket.failed(Failure("slow down", 429, headers={"retry-after": "3"}))
        assert gate.pause == 3.0
        ticket.failed(Failure("bad request", 400))
        async with await gate.wait(Asked(), way) as ticket:
            ticket.heard(200, {})
        return clock.slept

    slept = asyncio.run(go())
    assert slept[0] == 3.0
    assert sum(slept) == pytest.approx(WINDOW)


def test_a_waiting_request_goes_out_when_another_is_over():
    async def go():
        gate, way = Gate(FakeClock()), Access("https://narrow", Secret("k1-secret"))
        limiter, order = limiter_of(way, target()), []
        number, _ = limiter.admit(1)
        limiter.crowded(number, 0.0, 0.0)
        limiter.leave(answered=False)
        assert limiter.width == 1.0

        async def request(name):
            async with await gate.wait(Asked(), way):
                order.append(name)
                await asyncio.sleep(0)
                order.append(name)

        await asyncio.gather(*(request(name) for name in "abc"))
        return order

    assert asyncio.run(go()) == list("aabbcc")
