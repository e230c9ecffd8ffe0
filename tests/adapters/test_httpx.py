"""The transport without any SDK: what it answers, streams, refuses and gives up."""

from __future__ import annotations

import asyncio
import json

import pytest

from mull.adapters.httpx import MullTransport
from mull.neutral.errors import LocalError
from mull.testing import Call, Gate, Reply, Say, ScriptedServer, StrictServer, Think

httpx2 = pytest.importorskip("httpx2")

MODEL = "moonshotai/kimi-k2-thinking"
TASK = [
    [Think("I must look."), Call("price", {"item": "milk"})],
    [Think("So."), Say("It costs 1.")],
]
PARAMETERS = {"type": "object", "properties": {"item": {"type": "string"}}}
TOOL = {"type": "function", "function": {"name": "price", "parameters": PARAMETERS}}
ASKED = {"model": "any", "messages": [{"role": "user", "content": "What?"}], "tools": [TOOL]}
PATH = "https://api.openai.com/v1/chat/completions"


@pytest.fixture
def transport(tmp_path):
    def on(server):
        file = tmp_path / "config.toml"
        file.write_text(
            f'[serve]\nstore = "none"\n[providers.moonshotai]\nbase_url = "{server.url}"\n'
        )
        return MullTransport(MODEL, config=file)

    return on


def without_reasoning(body):
    """The next request of a client that keeps no reasoning."""
    answer = body["choices"][0]["message"]
    (call,) = answer["tool_calls"]
    kept = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": call["id"], "content": "1"}
    return {**ASKED, "messages": [*ASKED["messages"], kept, result]}


def test_dropped_reasoning_is_put_back_for_a_synchronous_client(transport):
    with StrictServer("kimi", TASK) as server:
        with httpx2.Client(transport=transport(server)) as client:
            first = client.post(PATH, json=ASKED)
            second = client.post(PATH, json=without_reasoning(first.json()))
        assert second.json()["choices"][0]["message"]["content"] == "It costs 1."
    assert not server.refusals
    assert server.returned == [(), ("I must look.",)]


def test_dropped_reasoning_is_put_back_for_an_asynchronous_client(transport):
    async def talk(server):
        async with httpx2.AsyncClient(transport=transport(server)) as client:
            first = await client.post(PATH, json=ASKED)
            return await client.post(PATH, json=without_reasoning(first.json()))

    with StrictServer("kimi", TASK) as server:
        second = asyncio.run(talk(server))
        assert second.json()["choices"][0]["message"]["content"] == "It costs 1."
    assert server.returned == [(), ("I must look.",)]


def chunk(**delta):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def test_a_stream_arrives_while_it_is_sent(transport):
    gate = Gate()
    reply = Reply.events(chunk(content="Mi"), gate, chunk(content="lk"), "[DONE]")
    with (
        ScriptedServer(lambda _: reply) as server,
        httpx2.Client(transport=transport(server)) as client,
        client.stream("POST", PATH, json={**ASKED, "stream": True}) as response,
    ):
        lines = response.iter_lines()
        said = next(line for line in lines if '"Mi"' in line)  # the server waits at the gate
        gate.open()
        said += "".join(lines)
    assert '"lk"' in said


def test_closing_a_response_ends_the_request(transport):
    gate = Gate()
    with ScriptedServer(lambda _: Reply.events(chunk(content="Mi"), gate, "[DONE]")) as server:
        with httpx2.Client(transport=transport(server)) as client:
            with client.stream("POST", PATH, json={**ASKED, "stream": True}) as response:
                next(response.iter_raw())
            assert client.get("https://mull/health").json()["status"] == "ok"
        gate.open()


def ask(transport):
    with httpx2.Client(transport=transport, timeout=0.2) as client:
        client.post(PATH, json=ASKED)


def ask_async(transport):
    async def post():
        async with httpx2.AsyncClient(transport=transport, timeout=0.2) as client:
            await client.post(PATH, json=ASKED)

    asyncio.run(post())


@pytest.mark.parametrize("ask", [ask, ask_async])
def test_a_silent_model_meets_the_read_timeout_of_the_client(transport, ask):
    gate = Gate()
    with ScriptedServer(lambda _: Reply.events(gate, "[DONE]")) as server:
        with pytest.raises(httpx2.ReadTimeout, match="within the client's read timeout"):
            ask(transport(server))
        gate.open()


def test_errors_are_responses_in_the_words_of_the_api(transport):
    with (
        ScriptedServer(lambda _: Reply.json({"error": {"message": "no"}}, 400)) as server,
        httpx2.Client(transport=transport(server)) as client,
    ):
        assert client.get("https://mull/nowhere").status_code == 404
        refused = client.post(PATH, json=ASKED)
        assert refused.status_code == 400
        assert "no" in refused.json()["error"]["message"]
        assert client.post(PATH, content=b"{").status_code == 400


def test_a_configuration_that_cannot_be_used_is_an_error_of_mull(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("[serve]\nlisten = 3\n")
    with (
        httpx2.Client(transport=MullTransport(MODEL, config=file)) as client,
        pytest.raises(LocalError, match="listen"),
    ):
        client.post(PATH, json=ASKED)


def test_an_unused_transport_closes():
    unused = MullTransport(MODEL)
    unused.close()
    asyncio.run(unused.aclose())


def test_the_body_goes_through_whole(transport):
    long = "ä" * 300_000
    with StrictServer("kimi", [[Say(long)]]) as server:
        asked = {**ASKED, "messages": [{"role": "user", "content": long}]}
        with httpx2.Client(transport=transport(server)) as client:
            said = client.post(PATH, json=asked)
        assert said.json()["choices"][0]["message"]["content"] == long
        assert long in json.dumps(server.requests[0].json, ensure_ascii=False)
