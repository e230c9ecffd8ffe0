"""Refusals for length: recognised in whatever words, and read for the numbers that they name."""

from __future__ import annotations

import pytest

from conversations import target
from healing import ASK, body, mended, prepared
from mull.client.retry import Stop, decide
from mull.policy.failure import Failure, meaning_of, overflow_of
from mull.policy.heal.lessons import apply_lesson
from mull.policy.heal.overflow import overflow_lesson, overflowed
from mull.policy.lengths import Overflow

SAID = [
    (
        "request (2326 tokens) exceeds the available context size (2048 tokens), try increasing it",
        Overflow(window=2048, held=2326),
    ),
    ("the request exceeds the available context size. try increasing the context", Overflow()),
    (
        "This model's maximum context length is 2048 tokens. However, you requested 2500 tokens"
        " (2300 in the messages, 200 in the completion). Please reduce the length of the messages"
        " or completion.",
        Overflow(window=2048, held=2300, asked=200),
    ),
    (
        "This model's maximum context length is 2048 tokens. However, your request has 2300 input"
        " tokens. Please reduce the length of the input messages.",
        Overflow(window=2048, held=2300),
    ),
    (
        "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context"
        " length is 2048 tokens and your request has 100 input tokens (8192 > 2048 - 100).",
        Overflow(window=2048, held=100, asked=8192),
    ),
    (
        "This model's maximum context length is 2048 tokens. However, you requested 500 output"
        " tokens and your prompt contains at least 1549 input tokens, for a total of at least 2049"
        " tokens. Please reduce the length of the input prompt or the number of requested output"
        " tokens.",
        Overflow(window=2048, held=1549, asked=500),
    ),
    (
        "max_completion_tokens=8192 cannot be greater than max_model_len=2048. Please request"
        " fewer output tokens.",
        Overflow(window=2048, asked=8192),
    ),
    (
        "The decoder prompt (length 2300) is longer than the maximum model length of 2048.",
        Overflow(window=2048, held=2300),
    ),
    (
        "This model's maximum context length is 128000 tokens. However, your messages resulted in"
        " 130001 tokens. Please reduce the length of the messages.",
        Overflow(window=128_000, held=130_001),
    ),
    (
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in"
        " 300123 tokens. Please reduce the length of the messages.",
        Overflow(input=272_000, held=300_123),
    ),
    (
        "Your input exceeds the context window of this model. Please adjust your input and try"
        " again.",
        Overflow(),
    ),
    ("prompt is too long: 213462 tokens > 200000 maximum", Overflow(window=200_000, held=213_462)),
    (
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease"
        " input length or `max_tokens` and try again",
        Overflow(window=200_000, held=190_000, asked=20_000),
    ),
    (
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        Overflow(input=1_048_575, held=1_196_265),
    ),
    (
        "The input token count of 1196265 exceeds the maximum number of tokens allowed 1048575.",
        Overflow(input=1_048_575, held=1_196_265),
    ),
    (
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum"
        " context length",
        Overflow(window=32_768, held=40_000),
    ),
    (
        "This model's maximum context length is 131072 tokens. However, you requested 140000 tokens"
        " (138000 in the messages, 2000 in the completion). Please reduce the length of the"
        " messages or completion.",
        Overflow(window=131_072, held=138_000, asked=2_000),
    ),
    (
        "This endpoint's maximum context length is 128000 tokens. However, you requested about"
        " 140000 tokens (138000 of text input, 2000 in the output). Please reduce the length of"
        ' either one, or use the "middle-out" transform to compress your prompt automatically.',
        Overflow(window=128_000, held=138_000, asked=2_000),
    ),
    ("prompt too long; exceeded max context length by 123 tokens", Overflow()),
    (
        "input length (5000 tokens) exceeds the maximum context length (4096 tokens)",
        Overflow(window=4096, held=5000),
    ),
    ("the input length exceeds the context length", Overflow()),
    (
        "The model returned the following errors: Input is too long for requested model.",
        Overflow(),
    ),
    (
        "This model's maximum prompt length is 131072 but the request contains 540000 tokens.",
        Overflow(input=131_072, held=540_000),
    ),
    (
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)",
        Overflow(window=262_144, held=300_000),
    ),
    (
        "prompt token count of 140000 exceeds the limit of 128000",
        Overflow(input=128_000, held=140_000),
    ),
    (
        "Please reduce the length of the messages or completion. Current length is 9000 while limit"
        " is 8192",
        Overflow(window=8192, held=9000),
    ),
    (
        "Requested token count exceeds the model's maximum context length of 4096 tokens. You"
        " requested a total of 5000 tokens: 3000 tokens from the input messages and 2000 tokens for"
        " the completion. Please reduce the number of tokens.",
        Overflow(window=4096, held=3000, asked=2000),
    ),
    (
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
        Overflow(window=4096, held=5000),
    ),
    (
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000"
        " `inputs` tokens and 100 `max_new_tokens`",
        Overflow(window=4096, held=5000, asked=100),
    ),
    ("Range of input length should be [1, 98304]", Overflow(input=98_304)),
    ("Cannot truncate prompt with n_keep (5000) >= n_ctx (4096)", Overflow(window=4096, held=5000)),
    ("Prompt exceeds max length", Overflow()),
]


@pytest.mark.parametrize(("said", "numbers"), SAID, ids=lambda value: str(value)[:40])
def test_a_refusal_for_length_is_known_by_its_words(said, numbers):
    failure = Failure(said, 400)
    assert meaning_of(failure).name == "length"
    assert overflow_of(failure) == numbers
    assert overflow_of(Failure(f"upstream error: {said}", 400)) == numbers


def test_numbers_beside_the_words_count():
    error = {"code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 9, "n_ctx": 8}
    failure = Failure("too much", 400, kind=error["type"], body={"error": error})
    assert overflow_of(failure) == Overflow(window=8, held=9)


@pytest.mark.parametrize(
    "failure",
    [
        Failure("Rate limit reached: maximum context length of the day", 429),
        Failure("Request too large for you: come back in 3 s", 429, "rate_limit_exceeded"),
        Failure("temperature is not allowed with a long context window", 400),
        Failure("invalid_api_key", 401),
        Failure("the connection broke"),
        Failure("prompt is fine", 400),
    ],
    ids=lambda failure: failure.text[:24],
)
def test_other_refusals_are_not_for_length(failure):
    assert overflow_of(failure) is None


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (
            "Request too large for model `llama-3.1-8b-instant` in organization `org_01` service"
            " tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 9043, please"
            " reduce your message size and try again.",
            413,
        ),
        (
            "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit"
            " 30000, Requested 40112. The input or output tokens must be reduced in order to run"
            " successfully.",
            429,
        ),
    ],
)
def test_a_request_beyond_a_minutes_share_is_made_shorter_and_not_repeated(said, status):
    """The numbers are the account's: they say nothing of the model's window."""
    failure = Failure(said, status, "rate_limit_exceeded", "tokens")
    share = 6000 if status == 413 else 30_000
    assert overflow_of(failure) == Overflow(share=share)
    assert decide(failure, 1, 0.0, 0.5) == Stop()


def test_a_request_that_is_too_large_in_bytes_is_too_long_as_well():
    assert overflow_of(Failure("413 Request Entity Too Large", 413)) == Overflow()


def claude(context=None, output=None):
    return target("none", dialect="anthropic", reasoning=False, context=context, output=output)


def test_an_answer_that_does_not_fit_beside_its_request_is_limited():
    said = "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease"
    asked = prepared(claude(output=64_000), ASK)
    repaired = mended(asked, said)
    assert body(repaired)["max_tokens"] == 200_000 - 178_959
    assert repaired.learn.facts["limit"]["context"] == 200_000


def test_a_window_that_only_the_answers_limit_tells_of_holds_from_now_on():
    said = "max_completion_tokens=8192 cannot be greater than max_model_len=2048"
    repaired = mended(prepared(claude(), ASK), said)
    used = repaired.prepared.estimate
    assert body(repaired)["max_tokens"] == 2048 - used
    learnt = apply_lesson(claude(), repaired.learn)
    assert learnt.facts.limit.context == 2048
    assert body(prepared(learnt, ASK))["max_tokens"] == 2048 - used


def test_no_default_limit_is_larger_than_its_window():
    for window in (600, 2048, 4096, 9000):
        asked = prepared(claude(context=window), ASK)
        assert body(asked)["max_tokens"] + asked.estimate <= window


def test_what_is_learnt_is_the_window_and_how_its_tokens_compare():
    one = target("none", reasoning=False, context=32_000, output=16_000)
    lesson = overflow_lesson(one, Overflow(window=2048, held=4000), counted=2000)
    assert lesson.facts == {"limit": {"context": 2048}, "tokenizer_scale": 2.0}
    assert apply_lesson(one, lesson).facts.limit.output is None
    assert overflow_lesson(one, Overflow()).facts == {}
    fewer = overflow_lesson(one, Overflow(held=1000), counted=2000)
    assert fewer.facts == {}  # a high estimate does no harm


def test_a_limit_on_the_request_alone_leaves_the_window_as_it_is():
    one = target("none", reasoning=False, context=400_000)
    learnt = apply_lesson(one, overflow_lesson(one, Overflow(input=272_000, held=300_000)))
    assert (learnt.facts.limit.input, learnt.facts.limit.context) == (272_000, 400_000)


def test_the_true_count_of_a_refused_request_is_the_next_estimate():
    one = target("none", reasoning=False, context=2048)
    asked = prepared(one, ASK)
    again = asked.anew(one, overflowed(asked, Overflow(window=2048, held=2326)))
    assert (again.estimate, again.reported) == (2326, 2326)
    assert again.too_long
    unnamed = asked.anew(one, overflowed(asked, Overflow()))
    assert unnamed.estimate > 2048
