"""The vendors' SDKs as judges of batches: their types read what mull submits, and their clients use
the servers that its tests are played against."""

from __future__ import annotations

import io
import json

import pytest

import mull
from batch_servers import KEY, PlayedAnthropic, PlayedOpenAI
from mull.agent.batch import provider

pydantic = pytest.importorskip("pydantic")
openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(provider, "FIRST_LOOK", 0.001)


def submitted(played, model, **options):
    given = {"base_url": played.url, "key": KEY, "progress": False, **options}
    results = mull.batch(["a", "b"], model, provider_batch=True, **given).results()
    assert [one.result.text for one in results] == ["A", "B"]


def fits(kind, value):
    return pydantic.TypeAdapter(kind).validate_python(value)


@pytest.mark.parametrize(
    ("model", "dialect", "module", "name"),
    [
        (
            "openai/gpt-4.1",
            "openai-chat",
            "openai.types.chat.completion_create_params",
            "Completion",
        ),
        (
            "openai/gpt-5",
            "openai-responses",
            "openai.types.responses.response_create_params",
            "Response",
        ),
    ],
)
def test_openai_takes_what_is_submitted(model, dialect, module, name):
    from openai.types import batch_create_params

    params = pytest.importorskip(module)
    body_kind = getattr(params, f"{name}CreateParamsNonStreaming")
    with PlayedOpenAI() as played:
        submitted(played, model, dialect=dialect, max_tokens=100, system="be brief")
        (created,) = played.sent("POST", "/batches")
        read = fits(batch_create_params.BatchCreateParams, created.json)
        assert set(read) == set(created.json)
        for line in played.files["file-0"].splitlines():
            value = json.loads(line)
            assert set(value) == {"custom_id", "method", "url", "body"}
            assert value["url"] == created.json["endpoint"]
            assert set(fits(body_kind, value["body"])) == set(value["body"])


def test_anthropic_takes_what_is_submitted():
    from anthropic.types.messages import batch_create_params

    with PlayedAnthropic() as played:
        submitted(played, "anthropic/claude-sonnet-4-5", max_tokens=2000, system="be brief")
        (created,) = played.sent("POST", "/messages/batches")
        read = fits(batch_create_params.BatchCreateParams, created.json)
        for given, request in zip(created.json["requests"], read["requests"], strict=True):
            assert set(request["params"]) == set(given["params"])


def test_openais_client_sends_the_same_requests_and_reads_the_played_server():
    line = {"custom_id": "x-0", "method": "POST", "url": "/v1/chat/completions"}
    line["body"] = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "a"}]}
    with PlayedOpenAI() as played:
        client = openai.OpenAI(api_key=KEY, base_url=played.url)
        content = ("batch.jsonl", io.BytesIO(json.dumps(line).encode()))
        file = client.files.create(file=content, purpose="batch")
        batch = client.batches.create(
            input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
        )
        batch = client.batches.retrieve(batch.id)
        assert (batch.status, batch.request_counts.total) == ("completed", 1)
        text = client.files.content(batch.output_file_id).text
        assert json.loads(text)["response"]["status_code"] == 200
        theirs = [(one.method, one.path) for one in played.server.requests]
    with PlayedOpenAI() as played:
        options = {"base_url": played.url, "key": KEY, "dialect": "openai-chat", "progress": False}
        mull.batch(["a"], "openai/gpt-4.1", provider_batch=True, **options).results()
        assert [(one.method, one.path) for one in played.server.requests] == theirs


def test_anthropics_client_sends_the_same_requests_and_reads_the_played_server():
    params = {"model": "claude-sonnet-4-5", "max_tokens": 9}
    params["messages"] = [{"role": "user", "content": "a"}]
    with PlayedAnthropic() as played:
        client = anthropic.Anthropic(api_key=KEY, base_url=played.server.url)
        made = client.messages.batches.create(requests=[{"custom_id": "x-0", "params": params}])
        batch = client.messages.batches.retrieve(made.id)
        assert (batch.processing_status, batch.request_counts.succeeded) == ("ended", 1)
        (row,) = client.messages.batches.results(batch.id)
        assert row.result.type == "succeeded"
        assert row.result.message.content[0].signature == "sig-a"
        theirs = {(one.method, one.path) for one in played.server.requests}
    with PlayedAnthropic() as played:
        options = {"base_url": played.url, "key": KEY, "progress": False}
        mull.batch(["a"], "anthropic/claude-sonnet-4-5", provider_batch=True, **options).results()
        assert {(one.method, one.path) for one in played.server.requests} == theirs
