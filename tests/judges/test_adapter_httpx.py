"""Unchanged clients of openai and anthropic on the transport, on the strict servers of five
providers.
"""

from __future__ import annotations

import asyncio
import json

import pytest

from adapter_talk import ANSWER, MODELS, TURN, check_returned, price, strict
from mull.adapters.httpx import MullTransport

openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")
httpx2 = pytest.importorskip("httpx2")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

PARAMETERS = {"type": "object", "properties": {"item": {"type": "string"}}}
PRICE = {"name": "price", "description": "The price.", "parameters": PARAMETERS}
QUESTIONS = "What do they cost?", "And today?"


@pytest.fixture
def serve(tmp_path):
    """A transport for a server; the configuration names its address."""

    def made(server):
        file = tmp_path / "serve.toml"
        file.write_text(
            f'[serve.models.m]\nmodel = "{MODELS[server.name]}"\nbase_url = "{server.url}"\n'
        )
        return MullTransport(config=file)

    return made


def whole(client, history):
    said = client.chat.completions.create(
        model="m", messages=history, tools=[{"type": "function", "function": PRICE}]
    )
    return said.choices[0].message


def streamed(client, history):
    with client.chat.completions.stream(
        model="m", messages=history, tools=[{"type": "function", "function": PRICE}]
    ) as stream:
        for _ in stream:
            pass
        return stream.get_final_completion().choices[0].message


def awaited(client, history):
    async def ask():
        said = await client.chat.completions.create(
            model="m", messages=history, tools=[{"type": "function", "function": PRICE}]
        )
        return said.choices[0].message

    return ask()


def without_reasoning(message):
    """What a typical client keeps of an answer."""
    calls = [
        {"id": call.id, "type": "function"}
        | {"function": {"name": call.function.name, "arguments": call.function.arguments}}
        for call in message.tool_calls or ()
    ]
    said = {"role": "assistant", "content": message.content}
    return said | ({"tool_calls": calls} if calls else {})


def results(message):
    return [
        {"role": "tool", "tool_call_id": call.id}
        | {"content": price(**json.loads(call.function.arguments))}
        for call in message.tool_calls or ()
    ]


@pytest.mark.parametrize("ask", [whole, streamed])
@pytest.mark.parametrize("provider", MODELS)
def test_a_synchronous_client_that_drops_reasoning(provider, ask, serve):
    history = []
    with strict(provider, TURN, TURN) as server:
        for question in QUESTIONS:
            # a new client and transport each turn: the history was stored in between
            with httpx2.Client(transport=serve(server)) as http:
                client = openai.OpenAI(api_key="none", http_client=http)
                history.append({"role": "user", "content": question})
                while True:
                    message = ask(client, history)
                    history += [without_reasoning(message), *results(message)]
                    if not message.tool_calls:
                        break
            assert message.content == ANSWER
    check_returned(server)


@pytest.mark.parametrize("provider", MODELS)
def test_an_asynchronous_client_that_drops_reasoning(provider, serve):
    async def talk(server):
        history = []
        async with httpx2.AsyncClient(transport=serve(server)) as http:
            client = openai.AsyncOpenAI(api_key="none", http_client=http)
            for question in QUESTIONS:
                history.append({"role": "user", "content": question})
                while True:
                    message = await awaited(client, history)
                    history += [without_reasoning(message), *results(message)]
                    if not message.tool_calls:
                        break
                assert message.content == ANSWER

    with strict(provider, TURN, TURN) as server:
        asyncio.run(talk(server))
    check_returned(server)


@pytest.mark.parametrize("provider", MODELS)
def test_the_client_of_anthropic(provider, serve):
    tool = {"name": "price", "description": "The price.", "input_schema": PARAMETERS}
    history = []
    with strict(provider, TURN) as server, httpx2.Client(transport=serve(server)) as http:
        client = anthropic.Anthropic(api_key="none", http_client=http)
        history.append({"role": "user", "content": QUESTIONS[0]})
        while True:
            said = client.messages.create(
                model="m", max_tokens=4096, messages=history, tools=[tool]
            )
            kept = [block for block in said.content if block.type in ("text", "tool_use")]
            history.append({"role": "assistant", "content": kept})
            calls = [block for block in kept if block.type == "tool_use"]
            if not calls:
                break
            rows = [
                {"type": "tool_result", "tool_use_id": call.id, "content": price(**call.input)}
                for call in calls
            ]
            history.append({"role": "user", "content": rows})
        assert said.content[-1].text == ANSWER
    check_returned(server)
