"""A request that is too long is told in the words that the client shortens it by."""

from __future__ import annotations

import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from mull.gateway.failures import refusal_of
from mull.neutral.errors import RefusedError
from mull.store.serve import ServedModel
from mull.testing import Reply, ScriptedServer

LLAMA = "request (20013 tokens) exceeds the available context size (8192 tokens), try increasing it"
BESIDE = (
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens "
    "(7000 in the messages, 2000 in the completion). Please reduce the length."
)
UNCLEAR = "Your input exceeds the context window of this model."


def told(text, dialect, code=None):
    body = json.loads(
        refusal_of(RefusedError(text, status=400, text=text, code=code), dialect).body
    )
    return body["error"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (LLAMA, "prompt is too long: 20013 tokens > 8192 maximum"),
        (
            BESIDE,
            "input length and `max_tokens` exceed context limit: 7000 + 2000 > 8192, decrease "
            "input length or `max_tokens` and try again",
        ),
        (UNCLEAR, f"prompt is too long: {UNCLEAR}"),
    ],
)
def test_a_messages_client_reads_the_sentence_it_compacts_by(text, sentence):
    error = told(text, "anthropic")
    assert (error["type"], error["message"]) == ("invalid_request_error", sentence)


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize("text", [LLAMA, BESIDE, UNCLEAR])
def test_a_client_of_openai_reads_the_code(dialect, text):
    assert told(text, dialect)["code"] == "context_length_exceeded"


def test_a_client_of_gemini_reads_its_sentence():
    assert told(LLAMA, "gemini")["message"].startswith("The input token count (20013) exceeds")


@pytest.mark.parametrize("dialect", ["anthropic", "openai-chat", "openai-responses", "gemini"])
def test_other_refusals_keep_their_words(dialect):
    assert told("adaptive thinking is not supported", dialect)["message"] == (
        "adaptive thinking is not supported"
    )


BODIES = {
    "/v1/messages": {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}]},
    "/v1/responses": {"input": "hi"},
    "/v1beta/models/m:generateContent": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
}


@pytest.mark.parametrize("path", BODIES)
def test_a_refusal_of_little_makes_no_client_compact(path, gateway):
    refusal = Reply.json({"error": {"message": "Payload too large"}}, 413)
    with ScriptedServer([refusal]) as server:
        served = ServedModel("moonshotai/kimi-k2.5", base_url=server.url)
        body = json.dumps({"model": "m", **BODIES[path]}).encode()
        with gateway({"m": served}) as url, pytest.raises(HTTPError) as raised:
            urlopen(Request(url + path, body, {"content-type": "application/json"}))
        assert len(server.requests) == 1
    assert raised.value.code == 413
    told = raised.value.read().decode()
    assert "Payload too large" in told
    assert "prompt is too long" not in told
    assert "context_length_exceeded" not in told
    assert "token count" not in told
