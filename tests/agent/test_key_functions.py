"""Keys from functions, and how they are sent: Azure takes tokens of Microsoft Entra as well."""

from __future__ import annotations

import asyncio
import threading

import pytest

import mull
from mull.testing.server import Reply, ScriptedServer

JWT = "eyJ0eXAiOiJKV1QifQ.eyJhdWQiOiJodHRwczovL2NvZ25pdGl2ZXNlcnZpY2VzIn0.c2lnbmF0dXJl"
WHOLE = {
    "id": "r",
    "object": "response",
    "status": "completed",
    "output": [
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "yes"}],
        }
    ],
}


async def slow_token():
    await asyncio.sleep(0)
    return "token"


class Provider:
    """As azure.identity has it, blocking or not."""

    def __init__(self, value):
        self.value = value

    def __call__(self):
        return self.value


class AsyncProvider:
    async def __call__(self):
        return await slow_token()


def sent(key, model="azure/gpt-5.1", **options):
    """The headers that carry a key."""
    engine = mull.Engine(isolated=True)
    with ScriptedServer(lambda _: Reply.json(WHOLE)) as server:
        talk = mull.Conversation(
            model,
            base_url=server.url,
            key=key,
            engine=engine,
            dialect="openai-responses",
            **options,
        )
        assert talk.ask("hi").text == "yes"
    headers = server.requests[0].headers
    return {name: headers[name] for name in ("authorization", "api-key") if name in headers}


@pytest.mark.parametrize(
    "key", [lambda: "token", slow_token, lambda: slow_token(), Provider("token"), AsyncProvider()]
)
@pytest.mark.parametrize("model", ["azure/gpt-5.1", "azure-cognitive-services/gpt-5.1"])
def test_what_a_function_returns_is_a_token_for_azure(key, model):
    assert sent(key, model) == {"authorization": "Bearer token"}


def test_a_key_for_azure_is_a_key_and_a_token_a_token():
    assert sent("0123456789abcdef") == {"api-key": "0123456789abcdef"}
    assert sent(JWT) == {"authorization": f"Bearer {JWT}"}


def test_a_function_that_returns_keys_of_azure():
    assert sent(lambda: "key-1", compat={"auth": "api-key"}) == {"api-key": "key-1"}


def test_elsewhere_a_function_returns_a_key():
    assert sent(lambda: "key-1", "openai/gpt-5.1") == {"authorization": "Bearer key-1"}


def test_a_function_is_called_for_every_request():
    tokens = iter(["one", "two"])
    engine = mull.Engine(isolated=True)
    with ScriptedServer(lambda _: Reply.json(WHOLE)) as server:
        talk = mull.Conversation(
            "azure/gpt-5.1", base_url=server.url, key=lambda: next(tokens), engine=engine
        )
        talk.ask("hi")
        talk.ask("hi")
    assert [one.headers["authorization"] for one in server.requests] == ["Bearer one", "Bearer two"]


def test_a_function_that_blocks_does_not_hold_up_the_event_loop():
    free = threading.Event()
    heard = []

    def token():
        heard.append(free.wait(30))
        return "token"

    async def main():
        talk = mull.Conversation(
            "azure/gpt-5.1", base_url=server.url, key=token, engine=mull.Engine(isolated=True)
        )
        asyncio.get_running_loop().call_later(0, free.set)
        return await talk.ask_async("hi")

    with ScriptedServer(lambda _: Reply.json(WHOLE)) as server:
        asyncio.run(main())
    assert heard == [True]


@pytest.mark.parametrize("value", [7, "", "two\nlines"])
def test_what_is_no_key_is_said(value):
    with pytest.raises(mull.ConfigError, match="key"):
        sent(lambda: value)
