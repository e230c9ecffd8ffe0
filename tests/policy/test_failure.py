"""What a failure means: one table, read by retry, by healing and by whoever tells a person."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import target
from healing import prepared
from mull.client.refusal import failure_in_stream
from mull.client.retry import Retry, RetryRules, Stop, decide
from mull.neutral.events import Failed
from mull.policy.failure import (
    Failure,
    is_damage,
    meaning_of,
    plain,
    stated,
    worded,
)
from mull.policy.heal.advice import advise
from mull.policy.heal.causes import CAUSES, causes_of
from mull.policy.heal.healing import heal
from refusals import ROWS

NOW = 1_800_000_000.0
CHAT = target("openai-effort", options=[{"type": "effort", "values": ("low", "high")}])
ABOUT_REASONING = "Unsupported parameter: 'reasoning_effort'"

MEANINGS = [
    (Failure("connection reset"), "network", True),
    (Failure("x", 402), "quota", False),
    (Failure("x", 429, "insufficient_quota"), "quota", False),
    (Failure("Your credit balance is too low", 500), "quota", False),
    (Failure("x", 400, kind="billing_error"), "quota", False),
    (Failure("x", 429), "rate", True),
    (Failure("x", 400, "rate_limit_exceeded"), "rate", True),
    (Failure("x", 401), "auth", False),
    (Failure("x", 400, "invalid_api_key"), "auth", False),
    (Failure("x", 403), "auth", False),
    (Failure("x", 407), "auth", False),
    (Failure("x", 413), "length", False),
    (Failure("x", 400, "context_length_exceeded"), "length", False),
    (Failure("prompt is too long: 9 tokens > 8 maximum", 400), "length", False),
    (Failure("The response was filtered", 400, "content_filter"), "safety", False),
    (Failure("flagged by our systems", 400), "safety", False),
    (Failure("x", 503, "model_not_found"), "model", False),
    (Failure("The model `x` does not exist", 404), "model", False),
    (Failure("x", 404), "address", False),
    (Failure("x", 409), "busy", True),
    (Failure("x", 502), "overload", True),
    (Failure("x", 504), "overload", True),
    (Failure("x", 408), "overload", True),
    (Failure("x", 529, kind="overloaded_error"), "overload", True),
    (Failure("x", 500), "server", True),
    (Failure("x", 599), "server", True),
    (Failure("x", 400), "refused", False),
    (Failure("x", 200), "refused", False),
]


@pytest.mark.parametrize(("failure", "name", "passes"), MEANINGS)
def test_what_a_failure_means(failure, name, passes):
    assert (meaning_of(failure).name, meaning_of(failure).passes) == (name, passes)
    assert isinstance(decide(failure, 1, NOW, 0.5), Retry) == passes


@pytest.mark.parametrize(
    ("code", "kind", "name"),
    [
        ("invalid_request_error", None, "refused"),
        ("INVALID_ARGUMENT", None, "refused"),
        (None, "authentication_error", "auth"),
        ("UNAUTHENTICATED", None, "auth"),
        ("PERMISSION_DENIED", None, "auth"),
        (None, "not_found_error", "address"),
        ("rate_limit_exceeded", None, "rate"),
        ("RESOURCE_EXHAUSTED", None, "rate"),
        ("server_error", None, "server"),
        (None, "api_error", "server"),
        ("INTERNAL", None, "server"),
        ("UNAVAILABLE", None, "overload"),
        ("server_is_overloaded", None, "overload"),
        ("slow_down", None, "overload"),
        (None, "overloaded_error", "overload"),
        ("DEADLINE_EXCEEDED", None, "overload"),
        ("timeout_error", None, "overload"),
        ("insufficient_quota", None, "quota"),
        ("503", None, "overload"),
        ("5030", None, "refused"),
        (None, None, "refused"),
    ],
)
def test_inside_a_stream_the_code_says_what_the_status_would(code, kind, name):
    error = {"error": {"type": kind}} if kind else None
    failure = failure_in_stream(Failed("x", code, body=error))
    assert meaning_of(failure).name == name
    assert failure.streamed


def test_our_own_decoders_are_not_the_endpoint():
    assert is_damage("damaged")
    assert not is_damage("invalid_request_error")
    assert not is_damage(None)


@pytest.mark.parametrize(("failure", "name", "passes"), MEANINGS)
def test_only_what_states_nothing_else_may_be_about_reasoning(failure, name, passes):
    said = Failure(ABOUT_REASONING, failure.status, failure.code, failure.kind)
    refused = prepared(CHAT, settings={"effort": "high"})
    assert (heal(refused, said) is None) == (stated(said) is not None)
    assert bool(list(causes_of(said))) == (stated(said) is None)


def test_no_known_refusal_of_reasoning_states_another_subject():
    """Nor is one told as something else, where its words could be read so."""
    for row in ROWS:
        assert stated(row.refusal) is None, row.text
        whys = [
            cause.why
            for cause in CAUSES
            for text in cause.texts
            if text.pattern.search(plain(row.refusal))
        ]
        told = advise(row.refusal, row.target)
        assert any(told.lower().startswith(why.lower()) for why in whys), row.text


words = st.none() | st.sampled_from(["insufficient_quota", "internal", "overloaded", "7", "x"])


@given(st.text(max_size=80), st.none() | st.integers(100, 599), words, words, st.booleans())
def test_the_three_readers_agree(text, status, code, kind, streamed):
    failure = Failure(text, status, code, kind, streamed=streamed)
    meaning = meaning_of(failure)
    decision = decide(failure, 1, NOW, 0.5, RetryRules(attempts=2))
    assert isinstance(decision, Retry if meaning.passes else Stop)
    assert stated(failure) in (None, meaning)
    if stated(failure) is None and worded(failure) is not None:
        assert worded(failure) is meaning
    assert bool(advise(failure, CHAT)) == bool(meaning.why) or list(causes_of(failure))
