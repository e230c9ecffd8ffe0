"""Rate limits, read from the headers of the providers that send any."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.client.rate_limit import rate_limit_of
from mull.neutral.rate_limit import RateLimit, RateWindow

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z

HEADERS = {
    "OpenAI": (
        {
            "x-ratelimit-limit-requests": "500",
            "x-ratelimit-limit-tokens": "30000",
            "x-ratelimit-remaining-requests": "499",
            "x-ratelimit-remaining-tokens": "29976",
            "x-ratelimit-reset-requests": "120ms",
            "x-ratelimit-reset-tokens": "1m12s",
        },
        RateLimit(RateWindow(500, 499, 0.12), RateWindow(30000, 29976, 72.0)),
    ),
    "Anthropic": (
        {
            "anthropic-ratelimit-requests-limit": "50",
            "anthropic-ratelimit-requests-remaining": "49",
            "anthropic-ratelimit-requests-reset": "2027-01-15T08:00:30Z",
            "anthropic-ratelimit-input-tokens-limit": "40000",
            "anthropic-ratelimit-input-tokens-remaining": "39000",
            "anthropic-ratelimit-input-tokens-reset": "2027-01-15T08:00:02Z",
            "anthropic-ratelimit-output-tokens-remaining": "8000",
            "anthropic-ratelimit-unified-status": "allowed",
            "anthropic-priority-input-tokens-limit": "9",
        },
        RateLimit(
            RateWindow(50, 49, 30.0),
            input_tokens=RateWindow(40000, 39000, 2.0),
            output_tokens=RateWindow(remaining=8000),
        ),
    ),
    "Azure": (
        {"x-ratelimit-remaining-requests": "9", "x-ratelimit-remaining-tokens": "900"},
        RateLimit(RateWindow(remaining=9), RateWindow(remaining=900)),
    ),
    "Mistral": (
        {
            "x-ratelimit-limit-req-minute": "60",
            "x-ratelimit-remaining-req-minute": "59",
            "x-ratelimit-limit-tokens-minute": "500000",
            "x-ratelimit-remaining-tokens-minute": "499000",
            "x-ratelimit-limit-tokens-month": "1000000000",
            "x-ratelimit-remaining-tokens-month": "999999000",
            "x-ratelimit-tokens-query-cost": "32000",
        },
        RateLimit(RateWindow(60, 59), RateWindow(500000, 499000)),
    ),
    "Mistral, before": (
        {
            "ratelimitbysize-limit": "2000000",
            "ratelimitbysize-remaining": "1999000",
            "ratelimitbysize-reset": "24",
            "ratelimitbysize-query-cost": "32000",
        },
        RateLimit(tokens=RateWindow(2000000, 1999000, 24.0)),
    ),
    "Cerebras": (
        {
            "x-ratelimit-limit-requests-day": "14400",
            "x-ratelimit-remaining-requests-day": "14399",
            "x-ratelimit-reset-requests-day": "33011.382867",
            "x-ratelimit-limit-tokens-minute": "60000",
            "x-ratelimit-remaining-tokens-minute": "0",
            "x-ratelimit-reset-tokens-minute": "11.38",
        },
        RateLimit(RateWindow(14400, 14399, 33011.382867), RateWindow(60000, 0, 11.38)),
    ),
    "Fireworks": (
        {
            "x-ratelimit-limit-requests": "600",
            "x-ratelimit-remaining-requests": "599",
            "x-ratelimit-limit-tokens-prompt": "60000",
            "x-ratelimit-remaining-tokens-prompt": "59000",
            "x-ratelimit-remaining-tokens-generated": "5000",
            "x-ratelimit-over-limit": "no",
        },
        RateLimit(
            RateWindow(600, 599),
            input_tokens=RateWindow(60000, 59000),
            output_tokens=RateWindow(remaining=5000),
        ),
    ),
    "Together": (
        {
            "x-ratelimit-limit": "10",
            "x-ratelimit-remaining": "9",
            "x-ratelimit-reset": "1",
            "x-tokenlimit-limit": "3000",
            "x-tokenlimit-remaining": "2900",
        },
        RateLimit(RateWindow(10, 9, 1.0), RateWindow(3000, 2900)),
    ),
    "OpenRouter, in milliseconds since 1970": (
        {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1800000060000"},
        RateLimit(RateWindow(remaining=0, reset=60.0)),
    ),
    "DigitalOcean, in seconds since 1970": (
        {
            "x-ratelimit-remaining-tokens-per-minute": "5",
            "x-ratelimit-reset-tokens-per-minute": "1800000007",
        },
        RateLimit(tokens=RateWindow(remaining=5, reset=7.0)),
    ),
    "Nous": (
        {"x-ratelimit-remaining-requests": "7", "x-ratelimit-remaining-requests-1h": "3"},
        RateLimit(RateWindow(remaining=3)),
    ),
    "IETF, older draft": (
        {"ratelimit-limit": "100, 100;w=60", "ratelimit-remaining": "50", "ratelimit-reset": "30"},
        RateLimit(RateWindow(100, 50, 30.0)),
    ),
    "IETF, newer draft": (
        {"ratelimit": '"default";r=50;t=30', "ratelimit-policy": '"default";q=100;w=60'},
        RateLimit(RateWindow(remaining=50, reset=30.0)),
    ),
}


@pytest.mark.parametrize("provider", HEADERS)
def test_the_headers_of_providers(provider):
    headers, limit = HEADERS[provider]
    assert rate_limit_of(headers, NOW) == limit


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "text/event-stream", "x-request-id": "r"},
        {"x-ratelimit-remaining-requests": "many"},
        {"x-ratelimit-remaining-requests": "-1"},
        {"x-ratelimit-limit-remaining": "5"},
        {"x-ratelimit": "5"},
        {"x-ratelimit-remaining-images": "5"},
        {"ratelimit": "nonsense"},
    ],
)
def test_what_says_nothing_is_none(headers):
    assert rate_limit_of(headers, NOW) is None


def test_a_reset_in_the_past_is_now():
    headers = {"anthropic-ratelimit-requests-reset": "2027-01-15T07:59:00Z"}
    assert rate_limit_of(headers, NOW) == RateLimit(RateWindow(reset=0.0))


words = st.sampled_from("x ratelimit limit remaining reset requests tokens input day".split())
names = st.lists(words, max_size=6).map("-".join)
values = st.text(max_size=30) | st.integers().map(str) | st.floats().map(str)


@given(st.dictionaries(names, values, max_size=8))
def test_any_headers_are_read_without_an_error(headers):
    limit = rate_limit_of(headers, NOW)
    for window in () if limit is None else (limit.requests, limit.tokens, limit.input_tokens):
        assert all(value is None or value >= 0 for value in (window.limit, window.remaining))
        assert window.reset is None or window.reset >= 0
