"""Requests to clouds: addresses from their files, signatures per request, tokens that are kept."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import parse_qs

import pytest
from msgspec.structs import replace

from conversations import snapshot
from loops import FakeClock
from mull.auth.google import Grant
from mull.auth.secret import Secret
from mull.auth.sigv4 import AwsKeys
from mull.catalog.resolve import resolve
from mull.client.access import Access, access, missing_key, request_headers, signed
from mull.client.exchange import ExchangeOptions, exchange
from mull.client.grants import Tokens
from mull.client.http import HttpClient
from mull.client.retry import RetryRules
from mull.client.transport import HttpRequest
from mull.dialects.registry import encode_request
from mull.history.log import Log
from mull.neutral.assemble import assemble
from mull.neutral.errors import ConfigError, NetworkError, RefusedError
from mull.neutral.messages import user
from mull.policy.failure import Failure, meaning_of
from mull.policy.heal.causes import causes_of
from mull.policy.prepare import prepare
from mull.store.config import Config
from mull.store.keys import GivenKeys, Keys
from mull.testing.server import Reply, ScriptedServer

CLAUDE = resolve("amazon-bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0")
MANTLE = resolve("amazon-bedrock/openai.gpt-5.5")
GEMINI = resolve("google-vertex/gemini-2.5-pro")
ON_VERTEX = resolve("google-vertex/claude-sonnet-4-5@20250929")
SECRET = "canary-cloud-secret"
PERSON = {
    "type": "authorized_user",
    "client_id": "c",
    "client_secret": "canary-client-secret",
    "refresh_token": "canary-refresh-token",
}


@pytest.fixture
def way(tmp_path):
    def way(target, *, given=None, files=None, **environ):
        for name, text in (files or {}).items():
            (tmp_path / name).write_text(text)
        places = {
            "AWS_CONFIG_FILE": str(tmp_path / "config"),
            "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
            "CLOUDSDK_CONFIG": str(tmp_path),
        }
        return access(target, Config(), Keys(tmp_path, {**places, **environ}), **(given or {}))

    return way


KEYS = {
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_REGION": "eu-west-1",
}
LOGIN = {"application_default_credentials.json": json.dumps(PERSON)}


def test_keys_and_a_region_in_the_environment(way):
    found = way(CLAUDE, **KEYS)
    assert found.base_url == "https://bedrock-runtime.eu-west-1.amazonaws.com"
    assert isinstance(found.cloud, AwsKeys)
    assert found.key is None
    assert missing_key(CLAUDE, found) is None
    assert SECRET not in repr(found)


def test_the_files_of_the_command_line(way):
    files = {
        "config": "[profile x]\nregion = us-west-2\n",
        "credentials": f"[x]\naws_access_key_id = AKID\naws_secret_access_key = {SECRET}\n",
    }
    found = way(CLAUDE, files=files, AWS_PROFILE="x")
    assert found.base_url == "https://bedrock-runtime.us-west-2.amazonaws.com"
    assert found.cloud.place.startswith("profile x in ")


def test_a_bearer_token_goes_before_keys(way):
    found = way(CLAUDE, AWS_BEARER_TOKEN_BEDROCK="bedrock-api-key", **KEYS)
    assert (found.key, found.cloud) == (Secret("bedrock-api-key"), None)
    wire = encode_request(prepare(Log([user("hi")]), snapshot(), CLAUDE).request, CLAUDE)
    headers = request_headers(found, CLAUDE, wire)
    assert headers["authorization"] == "Bearer bedrock-api-key"
    request = HttpRequest("POST", found.base_url, headers)
    assert signed(found, request, 0) is request


def test_a_header_of_ones_own_is_left_alone(way):
    found = way(CLAUDE, given={"headers": {"Authorization": "Mine"}}, **KEYS)
    assert found.cloud is None
    assert missing_key(CLAUDE, found) is None


def test_what_is_missing_is_one_line(way):
    with pytest.raises(ConfigError, match="needs AWS_REGION in the environment"):
        way(CLAUDE)
    found = way(CLAUDE, AWS_REGION="us-east-1")
    assert missing_key(CLAUDE, found) == (
        "no credentials for Amazon Bedrock: set AWS_BEARER_TOKEN_BEDROCK, or"
        " AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile of `aws configure` with"
        " AWS_PROFILE"
    )
    with pytest.raises(ConfigError, match="needs GOOGLE_VERTEX_PROJECT in the environment"):
        way(GEMINI)
    told = missing_key(GEMINI, way(GEMINI, GOOGLE_CLOUD_PROJECT="p")) or ""
    assert told.startswith("no credentials for Vertex: run `gcloud auth")
    assert "\n" not in told


def test_vertex_addresses(way):
    found = way(GEMINI, files=LOGIN, GOOGLE_CLOUD_PROJECT="p", GOOGLE_CLOUD_LOCATION="us-east5")
    base = "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5"
    assert found.base_url == base
    assert isinstance(found.cloud, Grant)
    request = prepare(Log([user("hi")]), snapshot(), GEMINI).request
    assert encode_request(request, GEMINI).path == (
        "/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
    )


def test_claude_on_vertex_has_the_model_in_the_path():
    request = prepare(Log([user("hi")]), snapshot(), ON_VERTEX).request
    wire = encode_request(request, ON_VERTEX)
    model = "/publishers/anthropic/models/claude-sonnet-4-5@20250929"
    assert wire.path == f"{model}:streamRawPredict"
    body = json.loads(wire.body)
    assert (body["anthropic_version"], body["stream"]) == ("vertex-2023-10-16", True)
    assert "model" not in body
    whole = encode_request(replace(request, stream=False), ON_VERTEX)
    assert whole.path == f"{model}:rawPredict"


def test_an_isolated_engine_finds_nothing():
    found = access(CLAUDE, Config(), GivenKeys(), base_url="http://127.0.0.1:1")
    assert (found.cloud, found.key) == (None, None)


def test_other_services_are_signed_by_their_own_names(way):
    found = way(MANTLE, **KEYS)
    request = signed(found, HttpRequest("POST", found.base_url + "/responses"), 0)
    assert "/19700101/eu-west-1/bedrock-mantle/aws4_request" in request.headers["authorization"]


def test_a_signature_without_a_region_is_refused(way):
    nowhere = {k: v for k, v in KEYS.items() if k != "AWS_REGION"}
    found = way(CLAUDE, given={"base_url": "http://127.0.0.1:1"}, **nowhere)
    with pytest.raises(ConfigError, match="none is named: set AWS_REGION"):
        signed(found, HttpRequest("POST", found.base_url), 0)


# Over sockets.


def asked(target, script, found, **more):
    async def run():
        with ScriptedServer(script) as server:
            here = replace(found, base_url=server.url)
            transport = HttpClient()
            events = []
            try:
                stream = exchange(
                    prepare(Log([user("hi")]), snapshot(), target),
                    here,
                    transport=transport,
                    options=ExchangeOptions(retry=RetryRules()),
                    clock=FakeClock(),
                    **more,
                )
                async for batch in stream:
                    events += batch
            finally:
                await transport.close()
            return events, server.requests

    return asyncio.run(run())


def converse(name):
    from answers import FIXTURES

    body = FIXTURES["bedrock-converse", name]
    pieces = tuple(body[at : at + 50] for at in range(0, len(body), 50))
    return Reply(200, {"content-type": "application/vnd.amazon.eventstream"}, pieces)


def test_an_answer_comes_over_the_wire(way):
    found = way(CLAUDE, given={"base_url": "http://127.0.0.1:1"}, **KEYS)
    events, requests = asked(CLAUDE, [converse("thinking_then_tools.eventstream")], found)
    message = assemble(events)
    assert [call.name for call in message.tool_calls] == ["read_file", "list_files"]
    (request,) = requests
    assert request.path.endswith("v1%3A0/converse-stream")
    assert request.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert SECRET not in json.dumps(request.headers)


def test_each_attempt_has_a_signature_of_its_own(way):
    found = way(CLAUDE, given={"base_url": "http://127.0.0.1:1"}, **KEYS)
    busy = Reply.json({"message": "slow down"}, 429, {"retry-after": "9"})
    events, requests = asked(CLAUDE, [busy, converse("redacted.eventstream")], found)
    assert assemble(events).text == "Done."
    first, second = [request.headers["authorization"] for request in requests]
    assert first != second


def test_a_throttled_stream_is_tried_again(way):
    found = way(CLAUDE, given={"base_url": "http://127.0.0.1:1"}, **KEYS)
    script = [converse("throttled_at_once.eventstream"), converse("redacted.eventstream")]
    events, requests = asked(CLAUDE, script, found)
    assert len(requests) == 2
    assert assemble(events).text == "Done."


def test_an_endpoint_that_echoes_secrets_is_not_repeated(way):
    token = "canary-session-token"
    found = way(CLAUDE, given={"base_url": "http://127.0.0.1:1"}, AWS_SESSION_TOKEN=token, **KEYS)
    reply = Reply.json({"message": f"bad {SECRET} {token} AKIDEXAMPLE"}, 403)
    with pytest.raises(RefusedError) as caught:
        asked(CLAUDE, [reply], found)
    assert SECRET not in str(caught.value)
    assert token not in str(caught.value)


# Tokens.


def granted(script, times=(0.0,)):
    """Enter the same way at several times; what each got, and what the server was asked."""

    async def run():
        now = [0.0]
        with ScriptedServer(script) as server:
            tokens, transport = Tokens(clock=lambda: now[0]), HttpClient()
            held = Grant("authorized_user", Secret("r"), "c", f"{server.url}/token", Secret("s"))
            way = Access("https://v.example", cloud=held)
            found = []
            try:
                for moment in times:
                    now[0] = moment
                    found.append((await tokens.enter(way, transport)).key)
            finally:
                await transport.close()
            return found, server.requests

    return asyncio.run(run())


def test_a_token_is_fetched_once_and_again_when_it_ages():
    script = [
        Reply.json({"access_token": "one", "expires_in": 3600}),
        Reply.json({"access_token": "two", "expires_in": 3600}),
    ]
    found, requests = granted(script, (0.0, 3000.0, 3400.0))
    assert found == [Secret("one"), Secret("one"), Secret("two")]
    assert [request.path for request in requests] == ["/token", "/token"]
    assert parse_qs(requests[0].body.decode())["refresh_token"] == ["r"]


def test_no_token_is_a_refusal_and_no_answer_a_network_error():
    with pytest.raises(RefusedError, match="Google issued no token"):
        granted([Reply.json({"error": "invalid_grant"}, 400)])
    with pytest.raises(NetworkError):
        granted([Reply.hang_up()])


def test_ways_without_such_a_login_are_as_they_were():
    async def run(way):
        return await Tokens().enter(way, HttpClient())

    for way in (Access("x"), Access("x", key=Secret("k"))):
        assert asyncio.run(run(way)) is way


# What Bedrock refuses.


@pytest.mark.parametrize(
    ("text", "named", "value"),
    [
        (
            "The maximum tokens you requested exceeds the model limit of 4096. Try again with a"
            " maximum tokens value that is lower than 4096.",
            "limit",
            "4096",
        ),
        (
            "The model returned the following errors: Malformed input request: #: extraneous key"
            " [thinking] is not permitted, please reformat your input and try again.",
            "name",
            "thinking",
        ),
    ],
)
def test_its_refusals_are_known(text, named, value):
    _, found = next(causes_of(Failure(text, 400)))
    assert found[named] == value


def test_its_failures_mean_what_they_say():
    for text, code, meaning in (
        ("Input is too long for requested model.", None, "length"),
        ("slow", "ThrottlingException", "rate"),
        ("soon", "ModelNotReadyException", "overload"),
        ("oops", "ModelStreamErrorException", "server"),
    ):
        assert meaning_of(Failure(text, 400, code, streamed=True)).name == meaning
