"""Limits of time as arithmetic: nothing here waits."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import target
from mull.client.clock import (
    IDLE,
    IDLE_OUT_OF_SIGHT,
    IDLE_SPARSE,
    Patience,
    Verdict,
    idle_limit,
    say_seconds,
    upload_seconds,
)
from mull.neutral.request import Request
from mull.neutral.thinking import ThinkingPlan


def limit(dialect="openai-chat", state="on", *, stream=True, endpoint=None, plan=None, **facts):
    where = target(dialect=dialect, **facts)
    if endpoint:
        import msgspec

        where = msgspec.structs.replace(where, endpoint=endpoint)
    request = Request(messages=(), thinking=ThinkingPlan(state, **(plan or {})), stream=stream)
    return idle_limit(request, where)


@pytest.mark.parametrize(
    ("expected", "asked"),
    [
        (IDLE, {"plan": {"writer": "thinking-type"}}),
        (IDLE, {"dialect": "anthropic", "plan": {"writer": "anthropic-adaptive"}}),
        (IDLE, {"dialect": "gemini", "state": "off"}),
        (IDLE, {"dialect": "openai-responses", "reasoning": False, "state": "absent"}),
        (IDLE_SPARSE, {"plan": {"writer": "openai-effort"}}),
        (IDLE_SPARSE, {"dialect": "gemini", "plan": {"writer": "gemini-level"}}),
        (IDLE_SPARSE, {"dialect": "openai-responses", "plan": {"summary": "auto"}}),
        (IDLE_OUT_OF_SIGHT, {"dialect": "openai-responses", "plan": {"summary": None}}),
        (IDLE_OUT_OF_SIGHT, {"dialect": "openai-responses", "state": "absent"}),
        (IDLE_OUT_OF_SIGHT, {"dialect": "gemini", "state": "absent"}),
        (IDLE_OUT_OF_SIGHT, {"stream": False, "state": "off"}),
        (IDLE_OUT_OF_SIGHT, {"endpoint": "http://127.0.0.1:8080/v1", "state": "off"}),
        (IDLE_OUT_OF_SIGHT, {"endpoint": "http://[::1]:8080/v1", "state": "off"}),
        (IDLE, {"endpoint": "http://[broken", "plan": {"writer": "thinking-type"}}),
    ],
)
def test_how_long_a_model_may_be_silent(expected, asked):
    assert limit(**asked) == expected


def test_the_numbers_that_are_documented():
    assert (IDLE, IDLE_SPARSE, IDLE_OUT_OF_SIGHT) == (120, 300, 600)


def test_c07_two_hundred_deltas_do_not_trip_it_and_silence_does():
    patience, now = Patience(120, None, 0.0), 0.0
    for _ in range(200):
        patience.since = now
        now += 119.9
        assert patience.judge(now) is None
    patience.since = now
    assert patience.judge(now + 119.999) is None
    assert patience.due() == now + 120
    assert patience.judge(now + 120) == Verdict("idle", pytest.approx(120))


@given(
    idle=st.floats(0.1, 1000),
    gaps=st.lists(st.floats(0, 0.999), max_size=20),
    silence=st.floats(1, 5),
)
def test_only_the_last_silence_counts(idle, gaps, silence):
    patience, now = Patience(idle, None, 0.0), 0.0
    for gap in gaps:
        patience.since = now
        now += gap * idle
        assert patience.judge(now) is None
    patience.since = now
    verdict = patience.judge(now + silence * idle * 1.001)
    assert verdict is not None
    assert verdict.limit == "idle"


def test_the_total_counts_from_the_beginning():
    patience = Patience(120, 300, 1000.0)
    patience.since = 1290.0
    assert patience.due() == 1300
    assert patience.judge(1299.9) is None
    assert patience.judge(1300.0) == Verdict("total", 300)


def test_what_is_to_end_by_a_moment_ends_then_whatever_comes():
    patience = Patience(120, 300, 1000.0)
    patience.ends = 1005.0
    assert patience.due() == 1005
    assert patience.judge(1004.9) is None
    assert patience.judge(1005.0) == Verdict("closing", 5.0)


def test_time_that_nobody_waits_is_not_counted():
    patience = Patience(120, None, 0.0)
    assert patience.judge(1e9) is None
    patience = Patience(None, None, 0.0)
    patience.since = 0.0
    assert patience.judge(1e9) is None
    assert patience.due() == math.inf


def test_uploads():
    assert upload_seconds(60_000) == 0
    assert upload_seconds(20 * 1024 * 1024) == 320


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.52, "0.5 s"),
        (2, "2 s"),
        (120, "120 s"),
        (119.6, "120 s"),
        (180, "3 min"),
        (380, "6 min 20 s"),
        (3600, "1 h"),
        (11_100, "3 h 5 min"),
    ],
)
def test_spans_for_people(seconds, text):
    assert say_seconds(seconds) == text
