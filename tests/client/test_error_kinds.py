"""Errors by kind: what a caller can catch, for every dialect, before a stream and inside it."""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import pytest

import mull
from conversations import snapshot, target
from loops import FakeClock
from mull.auth.secret import Secret
from mull.client.access import Access
from mull.client.exchange import ExchangeOptions, exchange
from mull.client.http import HttpClient
from mull.client.refusal import error_of
from mull.client.retry import RetryRules
from mull.history.log import Log
from mull.neutral.events import Failed, Started
from mull.neutral.messages import user
from mull.policy.lengths import Overflow
from mull.policy.prepare import prepare
from mull.testing.server import Reply, ScriptedServer

ONCE = ExchangeOptions(retry=RetryRules(attempts=1))


def openai(text, code=None, kind=None):
    return {"error": {"message": text, "code": code, "type": kind}}


def anthropic(kind, text):
    return {"type": "error", "error": {"type": kind, "message": text}}


def google(text, status, reason=None):
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}]
    return {"error": {"message": text, "status": status, "details": details if reason else []}}


def aws(text, kind):
    return {"message": text, "__type": kind}


# dialect, status, body, error
REFUSALS = [
    ("openai-chat", 429, openai("Rate limit reached", "rate_limit_exceeded"), "RateLimit"),
    ("openai-chat", 429, openai("You exceeded your quota", "insufficient_quota"), "Quota"),
    ("openai-chat", 401, openai("Incorrect API key provided", "invalid_api_key"), "Authentication"),
    ("openai-chat", 403, openai("Country not supported"), "Authentication"),
    ("openai-chat", 400, openai("Too long", "context_length_exceeded"), "TooLong"),
    ("openai-chat", 413, openai("Payload too large"), "TooLong"),
    ("openai-chat", 400, openai("The response was filtered", "content_filter"), "ContentFilter"),
    ("openai-chat", 403, openai("deepseek requires moderation. Your input was flagged"),
     "ContentFilter"),
    ("openai-chat", 403, openai("Content violates usage guidelines."), "ContentFilter"),
    ("openai-chat", 400, openai("Content Exists Risk", kind="invalid_request_error"),
     "ContentFilter"),
    ("openai-chat", 400, openai("bad input", "data_inspection_failed"), "ContentFilter"),
    ("openai-chat", 402, openai("Insufficient Balance"), "Quota"),
    ("openai-chat", 500, openai("The server had an error", kind="server_error"), "Server"),
    ("openai-chat", 503, openai("The engine is overloaded"), "Overloaded"),
    ("openai-chat", 400, openai("Unknown parameter: foo"), "Refused"),
    ("openai-responses", 429, openai("Slow down", "rate_limit_exceeded"), "RateLimit"),
    ("openai-responses", 400, openai("flagged as violating our usage policy", "invalid_prompt"),
     "ContentFilter"),
    ("openai-responses", 503, openai("Try later", "server_is_overloaded"), "Overloaded"),
    ("anthropic", 429, anthropic("rate_limit_error", "per-minute limit"), "RateLimit"),
    ("anthropic", 401, anthropic("authentication_error", "invalid x-api-key"), "Authentication"),
    ("anthropic", 403, anthropic("permission_error", "no access"), "Authentication"),
    ("anthropic", 400,
     anthropic("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"), "TooLong"),
    ("anthropic", 400, anthropic("invalid_request_error", "Your credit balance is too low"),
     "Quota"),
    ("anthropic", 529, anthropic("overloaded_error", "Overloaded"), "Overloaded"),
    ("anthropic", 500, anthropic("api_error", "Internal server error"), "Server"),
    ("anthropic", 504, anthropic("timeout_error", "took too long"), "Overloaded"),
    ("gemini", 429, google("Resource has been exhausted", "RESOURCE_EXHAUSTED"), "RateLimit"),
    ("gemini", 400, google("API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT",
                           "API_KEY_INVALID"), "Authentication"),
    ("gemini", 403, google("denied", "PERMISSION_DENIED"), "Authentication"),
    ("gemini", 400, google("The input token count (9) exceeds the maximum number of tokens allowed"
                           " (8).", "INVALID_ARGUMENT"), "TooLong"),
    ("gemini", 503, google("The model is overloaded", "UNAVAILABLE"), "Overloaded"),
    ("gemini", 500, google("An internal error", "INTERNAL"), "Server"),
    ("bedrock-converse", 429, aws("Too many requests", "ThrottlingException"), "RateLimit"),
    ("bedrock-converse", 400, aws("quota", "ServiceQuotaExceededException"), "RateLimit"),
    ("bedrock-converse", 403, aws("token expired", "ExpiredTokenException"), "Authentication"),
    ("bedrock-converse", 403, aws("no access to the model", "AccessDeniedException"),
     "Authentication"),
    ("bedrock-converse", 400, aws("Input is too long for requested model.", "ValidationException"),
     "TooLong"),
    ("bedrock-converse", 503, aws("busy", "ServiceUnavailableException"), "Overloaded"),
    ("bedrock-converse", 429, aws("starting", "ModelNotReadyException"), "RateLimit"),
]  # fmt: skip


def told(dialect, reply):
    """The error that an exchange raises, or its events."""

    async def talk(server):
        way = Access(server.url + "/v1", Secret("canary-0123456789"))
        request = prepare(Log([user("hi")]), snapshot(), target(dialect=dialect))
        transport = HttpClient()
        try:
            options = {"transport": transport, "options": ONCE, "clock": FakeClock()}
            return [event async for some in exchange(request, way, **options) for event in some]
        except mull.RemoteError as error:
            return error
        finally:
            await transport.close()

    with ScriptedServer([reply]) as server:
        return asyncio.run(talk(server))


@pytest.mark.parametrize(("dialect", "status", "body", "kind"), REFUSALS)
def test_a_refusal_is_an_error_of_its_kind(dialect, status, body, kind):
    headers = {
        "retry-after": "7",
        "request-id": "req_1",
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "1m0s",
    }
    error = told(dialect, Reply.json(body, status, headers=headers))
    assert type(error) is getattr(mull, f"{kind}Error")
    assert (error.status, error.request_id, error.retry_after) == (status, "req_1", 7.0)
    assert error.rate_limit.requests == mull.RateWindow(60, 0, 60.0)
    assert error.retryable == (kind in ("RateLimit", "Server", "Overloaded"))


@pytest.mark.parametrize(
    ("failed", "kind", "status"),
    [
        (Failed("Overloaded", "overloaded_error"), "Overloaded", 503),
        (Failed("slow down", "rate_limit_exceeded"), "RateLimit", 429),
        (Failed("slow down", "throttlingException"), "RateLimit", 429),
        (Failed("busy", "503"), "Overloaded", 503),
        (Failed("oops", "internalServerException"), "Server", 500),
        (Failed("denied", "PERMISSION_DENIED"), "Authentication", 403),
        (Failed("no", "content_filter"), "ContentFilter", 400),
        (Failed("long", "context_length_exceeded"), "TooLong", 400),
        (Failed("wrong", "invalid_request_error"), "Refused", 400),
        (Failed("cut off", "incomplete", "interrupted"), "Network", None),
        (Failed("not JSON", "unreadable"), "Unusable", None),
    ],
)
def test_a_failure_inside_a_stream_has_the_same_kinds(failed, kind, status):
    error = error_of(failed)
    assert type(error) is getattr(mull, f"{kind}Error")
    assert getattr(error, "status", None) == status
    assert str(error) == failed.text


LIMIT = mull.RateLimit(requests=mull.RateWindow(60, 0, 60.0))
ERRORS = [
    mull.RateLimitError(
        "m", status=429, text="t", code="c", headers={"request-id": "r"}, retry_after=2.5,
        rate_limit=LIMIT, retryable=True,
    ),
    mull.TooLongError("m", status=400, overflow=Overflow(window=8, held=9)),
    mull.OverloadedError("m", status=529),
    mull.SilenceError("m"),
    mull.MisfitError("m"),
    mull.UnknownLevel("m", "model", "word", ["low"]),
]  # fmt: skip


def same(error, other):
    return type(error) is type(other) and error.args == other.args and vars(error) == vars(other)


@pytest.mark.parametrize("error", ERRORS)
def test_errors_survive_pickling(error):
    assert same(pickle.loads(pickle.dumps(error)), error)


def fail():
    raise ERRORS[0]


def test_errors_survive_a_process_pool():
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        error = pool.submit(fail).exception()
    assert (type(error), error.status, error.retry_after) == (mull.RateLimitError, 429, 2.5)
    assert (error.request_id, error.rate_limit) == ("r", LIMIT)


STREAMS = {
    "openai-chat": [{"id": "c", "choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}],
    "anthropic": [
        {"type": "message_start", "message": {"id": "m", "content": []}},
        {"type": "message_stop"},
    ],
    "gemini": [{"responseId": "r", "candidates": [{"content": {"parts": [{"text": "a"}]}}]}],
    "openai-responses": [{"type": "response.created", "response": {"id": "r"}}],
}


@pytest.mark.parametrize("dialect", STREAMS)
def test_an_answer_says_at_its_start_what_is_left(dialect):
    headers = {"x-request-id": "r1", "anthropic-ratelimit-input-tokens-remaining": "1000"}
    stream = Reply.events(*STREAMS[dialect])
    events = told(dialect, replace(stream, headers={**stream.headers, **headers}))
    started = next(event for event in events if isinstance(event, Started))
    limit = mull.RateLimit(input_tokens=mull.RateWindow(remaining=1000))
    assert (started.request_id, started.rate_limit) == ("r1", limit)
