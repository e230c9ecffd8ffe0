"""Servers on this machine are found where config.toml says they are; others are passed over."""

from __future__ import annotations

import asyncio
import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from loops import run_moved, until
from mull.agent import discover as discovering
from mull.agent.discover import LOCAL_PROVIDERS, Found, discover
from mull.agent.engine import Engine
from mull.testing.server import CUT, STALL, Gate, Reply, ScriptedServer


def models(*names):
    return Reply.json({"object": "list", "data": [{"id": name} for name in names]})


@pytest.fixture
def closed():
    """An address on loopback where nobody listens."""
    with ScriptedServer([]) as server:
        url = server.url
    return url


@pytest.fixture
def engine_with(closed):
    """An engine whose local providers are at these addresses, the others nowhere."""

    def make(**addresses):
        places = {**dict.fromkeys(LOCAL_PROVIDERS, closed), **addresses}
        config = Path(os.environ["MULL_CONFIG_DIR"]) / "config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        rows = (f'[providers."{name}"]\nbase_url = "{url}"\n' for name, url in places.items())
        config.write_text("".join(rows))
        return Engine()

    return make


def test_nobody_there(engine_with):
    assert asyncio.run(discover(engine_with())) == []


def test_what_answers_is_found_with_its_models(engine_with):
    with (
        ScriptedServer([models("qwen3:8b", "org/deep")]) as one,
        ScriptedServer([models("m")]) as two,
    ):
        found = asyncio.run(discover(engine_with(ollama=f"{one.url}/v1/", vllm=two.url)))
        assert found == [
            Found("ollama", f"{one.url}/v1", ("qwen3:8b", "org/deep")),
            Found("vllm", two.url, ("m",)),
        ]
        assert found[0].names == ("ollama/qwen3:8b", "ollama/org/deep")
        (request,) = one.requests
        assert (request.method, request.path) == ("GET", "/v1/models")
        assert "authorization" not in request.headers


def test_what_was_found_can_be_asked_by_its_name(engine_with):
    with ScriptedServer([models("qwen3:8b")]) as server:
        engine = engine_with(ollama=server.url)
        (found,) = asyncio.run(discover(engine))
        target = engine.target(found.names[0])
    assert (target.provider, target.model) == ("ollama", "qwen3:8b")
    assert engine.way_to(target).base_url == server.url


@pytest.mark.parametrize(
    "reply",
    [
        Reply.json({"error": "no"}, 404),
        Reply.json({"data": []}, 401),
        Reply(200, {"content-type": "text/html"}, (b"<html>a router</html>",)),
        Reply.json({"models": ["x"]}),
        Reply.json([1, 2]),
        Reply.json({"data": ["x"]}),
        Reply.json({"data": None}),
        Reply(200, {}, (b'{"data": [{"id": "\xff"}]}',)),
        Reply(200, {"content-length": "99"}, (b'{"data"', CUT)),
        Reply.hang_up(),
    ],
    ids=["404", "401", "page", "other", "list", "words", "null", "bytes", "cut", "gone"],
)
def test_what_is_no_model_server_is_passed_over(engine_with, reply):
    with ScriptedServer([reply]) as odd, ScriptedServer([models("m")]) as good:
        found = asyncio.run(discover(engine_with(lmstudio=odd.url, sglang=good.url)))
        assert [one.provider for one in found] == ["sglang"]
        assert len(odd.requests) == 1


def test_a_server_without_models_is_there_all_the_same(engine_with):
    with ScriptedServer([models()]) as server:
        assert asyncio.run(discover(engine_with(vllm=server.url))) == [
            Found("vllm", server.url, ())
        ]


@pytest.mark.parametrize(
    "reply", [Reply(before=(STALL,)), Reply(200, {}, (b'{"da', STALL))], ids=["silent", "slow"]
)
def test_one_that_says_nothing_is_left_and_holds_nobody_up(engine_with, monkeypatch, reply):
    asked, ask = [], discovering._ask

    async def noted(engine, provider, transport):
        found = await ask(engine, provider, transport)
        asked.append(provider)
        return found

    async def main(loop):
        task = asyncio.create_task(discover(engine_with(ollama=silent.url, vllm=good.url)))
        await asyncio.to_thread(silent.wait_requests)
        await until(lambda: len(asked) == len(LOCAL_PROVIDERS) - 1)
        await loop.advance(discovering._PATIENCE + 0.1)
        return await task

    monkeypatch.setattr(discovering, "_ask", noted)
    with ScriptedServer([reply]) as silent, ScriptedServer([models("m")]) as good:
        found = run_moved(main)
        assert [one.provider for one in found] == ["vllm"]
        assert silent.requests[0].wait_left()


def test_all_are_asked_at_once(engine_with):
    """Nobody answers before everybody was asked."""
    asked, gate = [], Gate()

    def script(recorded):
        asked.append(recorded)
        if len(asked) == len(LOCAL_PROVIDERS):
            gate.open()
        return replace(models("m"), before=(gate,))

    with ExitStack() as stack:
        servers = [stack.enter_context(ScriptedServer(script)) for _ in LOCAL_PROVIDERS]
        urls = dict(zip(LOCAL_PROVIDERS, (server.url for server in servers), strict=True))
        found = asyncio.run(discover(engine_with(**urls)))
    assert [one.provider for one in found] == list(LOCAL_PROVIDERS)
