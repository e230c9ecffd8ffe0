"""Whether to ask again, and when: a table of what servers say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.client.retry import PATIENT, Retry, RetryRules, Stop, decide, wait_asked
from mull.policy.failure import Failure

NOW = 1_800_000_000.0  # 2027-01-15 08:00:00 UTC


def google(delay: str | None, *quotas: str) -> dict:
    details: list[dict] = [{"@type": "type.googleapis.com/google.rpc.Help", "links": []}]
    if quotas:
        violations = [{"quotaId": quota} for quota in quotas]
        details.append({"@type": "…/google.rpc.QuotaFailure", "violations": violations})
    if delay:
        details.append({"@type": "…/google.rpc.RetryInfo", "retryDelay": delay})
    return {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": details}}


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 520, 524, 529, None])
def test_what_may_pass_is_tried_again(status):
    assert isinstance(decide(Failure("x", status), 1, NOW, 0.5), Retry)


@pytest.mark.parametrize("status", [200, 307, 400, 401, 403, 404, 413, 422])
def test_what_will_not_pass_is_not(status):
    assert decide(Failure("x", status), 1, NOW, 0.5) == Stop()


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}, 30),
        ({"retry-after": "Fri, 15 Jan 2027 07:00:00 GMT"}, 0),
        ({"retry-after": "2027-01-15T08:00:05Z"}, 5),
        ({"retry-after": "6m0s"}, 360),
        ({"retry-after": "1800000012"}, 12),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"x-ratelimit-reset-requests": "6m0s"}, 360),
        ({"x-ratelimit-reset-tokens": "20ms"}, 0.02),
        ({"x-ratelimit-reset-tokens": "1m12.5s"}, 72.5),
        ({"x-ratelimit-reset": "1800000010000"}, 10),
        ({"x-ratelimit-reset": "1800000010"}, 10),
        ({"x-ratelimit-reset": "10"}, 10),
        ({"x-ratelimit-reset-requests": "2s", "x-ratelimit-reset-tokens": "9s"}, 9),
        (
            {
                "x-ratelimit-reset-requests": "2s",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "9h",
                "x-ratelimit-remaining-tokens": "5000",
            },
            2,
        ),
        ({"x-ratelimit-reset-tokens": "9s", "x-ratelimit-remaining-tokens": "5000"}, None),
        ({"anthropic-ratelimit-requests-reset": "2027-01-15T08:00:20Z"}, 20),
        (
            {
                "anthropic-ratelimit-input-tokens-reset": "2027-01-15T08:00:45Z",
                "anthropic-ratelimit-input-tokens-remaining": "0",
                "anthropic-ratelimit-requests-reset": "2027-01-15T09:00:00Z",
                "anthropic-ratelimit-requests-remaining": "49",
            },
            45,
        ),
        ({"anthropic-ratelimit-unified-reset": "1800000060"}, 60),
        ({}, None),
    ],
)
def test_when_servers_ask_to_come_back(headers, seconds):
    asked = wait_asked(Failure("x", 429, headers=headers), NOW)
    assert asked == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("body", "text", "seconds"),
    [
        (google("13s"), "x", 13),
        ([google("13.5s")], "x", 13.5),
        (google("13s")["error"], "x", 13),
        (None, "Rate limit reached. Please try again in 6m0s.", 360),
        (None, "Please try again in 20ms. Visit …", 0.02),
        (None, "Please try again in 7m12.96s", 432.96),
        (None, "Please retry after 30 seconds.", 30),
        (None, "try again in 5 months", None),
        (None, "try again later", None),
        ({"error": {"details": "none"}}, "x", None),
        ({"error": None}, "x", None),
    ],
)
def test_when_bodies_say_it(body, text, seconds):
    asked = wait_asked(Failure(text, 429, body=body), NOW)
    assert asked == (None if seconds is None else pytest.approx(seconds))


def test_resets_concern_only_too_many_requests():
    headers = {"anthropic-ratelimit-requests-reset": "2027-01-15T08:00:20Z"}
    assert wait_asked(Failure("overloaded", 529, headers=headers), NOW) is None


def test_the_servers_word_goes_before_arithmetic():
    failure = Failure("slow down", 429, headers={"retry-after": "20"})
    assert decide(failure, 1, NOW, 0.0) == Retry(20, "429: slow down")
    later = decide(failure, 1, NOW, 1.0)
    assert isinstance(later, Retry)
    assert 20 < later.seconds <= 21


def test_backing_off():
    waits = [
        decide(Failure("x", 503), attempt, NOW, 1.0, RetryRules(20)) for attempt in range(1, 9)
    ]
    assert [w.seconds for w in waits if isinstance(w, Retry)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    least = decide(Failure("x", 503), 3, NOW, 0.0)
    assert least == Retry(1.0, "503: x")


def test_four_attempts_are_enough():
    assert isinstance(decide(Failure("x", 503), 3, NOW, 0.5), Retry)
    assert decide(Failure("x", 503), 4, NOW, 0.5) == Stop("Tried 4 times")
    assert decide(Failure("x", None), 1, NOW, 0.5, RetryRules(attempts=1)) == Stop()


def test_a_wait_too_long_is_told_not_done():
    failure = Failure("x", 429, headers={"retry-after": "380"})
    assert decide(failure, 1, NOW, 0.5) == Stop("It asks to wait 6 min 20 s: try again after that")
    patient = RetryRules(longest_wait=400)
    assert isinstance(decide(failure, 1, NOW, 0.5, patient), Retry)


@pytest.mark.parametrize(
    "failure",
    [
        Failure("x", 402),
        Failure("You exceeded your current quota", 429, "insufficient_quota"),
        Failure("x", 429, "billing_hard_limit_reached"),
        Failure("x", 429, "exceeded_current_quota_error"),
        Failure("Insufficient balance or no resource package. Please recharge.", 429, "1113"),
        Failure("Your credit balance is too low to access the API", 500),
        Failure("x", 429, body=google("30s", "GenerateRequestsPerDayPerProjectPerModel-FreeTier")),
    ],
)
def test_an_empty_purse_is_not_asked_again(failure):
    assert decide(failure, 1, NOW, 0.5) == Stop("Retrying does not help")


def test_a_minutes_share_is_no_empty_purse():
    text = "You exceeded your current quota, please check your plan and billing details."
    body = google("13s", "GenerateRequestsPerMinutePerProjectPerModel-FreeTier")
    failure = Failure(text, 429, "RESOURCE_EXHAUSTED", body=body)
    assert decide(failure, 1, NOW, 0.0) == Retry(13, f"429: {text}")


def test_servers_may_say_outright_whether_to_retry():
    assert decide(Failure("x", 503, headers={"x-should-retry": "false"}), 1, NOW, 0.5) == Stop()
    told = decide(Failure("x", 400, headers={"x-should-retry": "true"}), 1, NOW, 0.5)
    assert isinstance(told, Retry)


json = st.recursive(
    st.none() | st.integers() | st.text(max_size=8) | st.sampled_from(["13s", "details"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "details", "retryDelay", "violations", "quotaId"]), inner
        )
    ),
    max_leaves=8,
)
names = st.sampled_from(
    ["retry-after", "retry-after-ms", "x-ratelimit-reset", "a-ratelimit-b-reset"]
)


@given(
    st.text(max_size=60),
    st.none() | st.integers(100, 600),
    st.dictionaries(names, st.text(max_size=20) | st.floats().map(str) | st.integers().map(str)),
    json,
    st.integers(1, 10),
    st.floats(0, 1),
)
def test_no_answer_of_a_server_breaks_it(text, status, headers, body, attempt, rand):
    failure = Failure(text, status, headers=headers, body=body)
    decision = decide(failure, attempt, NOW, rand)
    if isinstance(decision, Retry):
        assert attempt < 4
        assert 0 <= decision.seconds <= 121


@pytest.mark.parametrize("status", [500, 503, 529, None])
def test_who_watches_is_given_ten_tries_within_some_minutes(status):
    failure = Failure("connection refused" if status is None else "overloaded", status)
    decided = [decide(failure, attempt, NOW, 1.0, PATIENT) for attempt in range(1, 11)]
    waits = [one.seconds for one in decided if isinstance(one, Retry)]
    assert waits == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert decided[-1] == Stop("Tried 10 times")
