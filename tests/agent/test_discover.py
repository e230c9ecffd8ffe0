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
from mull.agent.discover import Found, Served, discover
from mull.agent.engine import LOCAL_PROVIDERS, Engine
from mull.testing.server import CUT, STALL, Gate, Reply, ScriptedServer
from ports import closed_port

pytestmark = pytest.mark.usefixtures("inspected_servers")


def models(*names):
    return Reply.json({"object": "list", "data": [{"id": name} for name in names]})


def unloaded(name):
    return Served(name, settled=False)


@pytest.fixture
def closed():
    """An address on loopback where nobody listens."""
    return f"http://127.0.0.1:{closed_port()}/v1"


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
            Found("ollama", f"{one.url}/v1", tuple(map(unloaded, ("qwen3:8b", "org/deep")))),
            Found("vllm", two.url, (Served("m", tokenizes="vllm"),)),
        ]
        assert found[0].names == ("ollama/qwen3:8b", "ollama/org/deep")
        request = one.requests[0]
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
        Reply(200, {"content-type": "text/html"}, (b"<html>a router</html>",)),
        Reply.json({"models": ["x"]}),
        Reply.json([1, 2]),
        Reply.json({"data": ["x"]}),
        Reply.json({"data": None}),
        Reply(200, {}, (b'{"data": [{"id": "\xff"}]}',)),
        Reply(200, {"content-length": "99"}, (b'{"data"', CUT)),
        Reply.hang_up(),
        Reply(200, {}, (b'{"data":' * 100_000,)),
    ],
    ids=["404", "page", "other", "list", "words", "null", "bytes", "cut", "gone", "deep"],
)
def test_what_is_no_model_server_is_passed_over(engine_with, reply):
    with ScriptedServer([reply]) as odd, ScriptedServer([models("m")]) as good:
        found = asyncio.run(discover(engine_with(lmstudio=odd.url, sglang=good.url)))
        assert [one.provider for one in found] == ["sglang"]
        assert len(odd.requests) == 1


def test_a_server_without_models_is_there_all_the_same(engine_with):
    with ScriptedServer([models()]) as server:
        assert asyncio.run(discover(engine_with(vllm=server.url))) == [Found("vllm", server.url)]


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


LLAMA = {
    "/v1/models": {
        "models": [{"name": "smol.gguf", "capabilities": ["completion"]}],
        "data": [
            {"id": "smol", "owned_by": "llamacpp", "meta": {"n_ctx": 4096, "n_ctx_train": 8192}}
        ],
    },
    "/props": {
        "default_generation_settings": {"n_ctx": 2048, "params": {}},
        "total_slots": 2,
        "chat_template": "{% if tools %}{{ tools }}{% endif %}<think>",
        "modalities": {"vision": False, "audio": False},
    },
}
VLLM = {
    "/v1/models": {
        "object": "list",
        "data": [
            {
                "id": "Qwen/Qwen3-0.6B",
                "object": "model",
                "owned_by": "vllm",
                "root": "Qwen/Qwen3-0.6B",
                "max_model_len": 2048,
                "permission": [{"id": "modelperm-1", "allow_sampling": True}],
            }
        ],
    }
}
OLLAMA = {
    "/v1/models": {"data": [{"id": "qwen3:8b", "object": "model", "owned_by": "library"}]},
    "/api/ps": {"models": []},
    "/api/show": {
        "parameters": 'stop                           "<|im_end|>"\ntemperature 0.6',
        "template": "{{ .Prompt }}",
        "details": {"family": "qwen3", "parameter_size": "8.2B"},
        "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40960},
        "capabilities": ["completion", "tools", "thinking"],
    },
}
RUNNING = {"models": [{"name": "qwen3:8b", "model": "qwen3:8b", "context_length": 4096}]}
LMSTUDIO = {
    "/v1/models": {"data": [{"id": "qwen2-vl", "owned_by": "organization_owner"}]},
    "/api/v0/models": {
        "data": [
            {
                "id": "qwen2-vl",
                "type": "vlm",
                "state": "loaded",
                "max_context_length": 32768,
                "loaded_context_length": 8192,
                "capabilities": ["tool_use"],
            }
        ]
    },
}
TOLD = [
    ("llama.cpp", LLAMA, Served("smol", 2048, True, False, True, tokenizes="llama")),
    ("llama.cpp", {"/v1/models": LLAMA["/v1/models"]}, Served("smol", 4096, tokenizes="llama")),
    ("vllm", VLLM, Served("Qwen/Qwen3-0.6B", 2048, tokenizes="vllm")),
    ("ollama", OLLAMA, Served("qwen3:8b", 40960, True, False, True, settled=False)),
    ("ollama", {**OLLAMA, "/api/ps": RUNNING}, Served("qwen3:8b", 4096, True, False, True)),
    (
        "ollama",
        {**OLLAMA, "/api/show": {"parameters": "num_ctx   16384"}},
        Served("qwen3:8b", 16384),
    ),
    ("lmstudio", LMSTUDIO, Served("qwen2-vl", 8192, True, True)),
    ("sglang", {"/v1/models": {"data": [{"id": "m", "max_model_len": 9}]}}, Served("m", 9)),
    ("vllm", LLAMA, Served("smol", 2048, True, False, True, tokenizes="llama")),
]


def playing(pages, key=None):
    """A server that answers these pages, to who has the key."""

    def script(recorded):
        if key is not None and recorded.headers.get("authorization") != f"Bearer {key}":
            return Reply.json({"error": "Unauthorized"}, 401)
        page = pages.get(recorded.path)
        return Reply.json({"error": "not found"}, 404) if page is None else Reply.json(page)

    return ScriptedServer(script)


@pytest.mark.parametrize(("provider", "pages", "told"), TOLD)
def test_what_a_server_says_of_its_models_is_read(engine_with, provider, pages, told):
    with playing(pages) as server:
        engine = engine_with(**{provider: f"{server.url}/v1"})
        (found,) = asyncio.run(discover(engine))
        assert found.served == (told,)
        target = asyncio.run(engine.inspected(engine.target(f"{provider}/{told.id}")))
    assert target.facts.limit.context == told.window
    assert target.facts.tool_call == told.tools
    assert target.facts.input == {True: ("text", "image"), False: ("text",), None: ()}[told.images]


def test_a_server_is_found_with_its_key(engine_with, monkeypatch):
    with playing(VLLM, key="secret-key-1") as server:
        engine = engine_with(vllm=f"{server.url}/v1")
        (found,) = asyncio.run(discover(engine))
        assert found == Found("vllm", f"{server.url}/v1", locked=True)
        monkeypatch.setenv("VLLM_API_KEY", "secret-key-1")
        (found,) = asyncio.run(discover(Engine()))
    assert found.models == ("Qwen/Qwen3-0.6B",)
    assert not found.locked


def test_a_window_that_may_change_is_asked_for_again(engine_with):
    pages = dict(OLLAMA)
    with playing(pages) as server:
        engine = engine_with(ollama=f"{server.url}/v1")
        target = engine.target("ollama/qwen3:8b")
        assert asyncio.run(engine.inspected(target)).facts.limit.context == 40960
        pages["/api/ps"] = RUNNING
        assert asyncio.run(engine.inspected(target)).facts.limit.context == 4096
        asked = len(server.requests)
        asyncio.run(engine.inspected(target))
        assert len(server.requests) == asked


def test_nobody_else_is_asked(engine_with):
    with playing(VLLM) as server:
        engine = engine_with()
        for name in ("openai/gpt-5", "openai-compatible/m", "moonshotai/kimi-k2-thinking"):
            target = engine.target(name, base_url=server.url)
            asyncio.run(engine.inspected(target, base_url=server.url))
        assert server.requests == []


@pytest.mark.parametrize("page", [[], {}, {"n": 1}, "x", None, {"data": [{"id": 3}]}])
def test_odd_answers_say_nothing(engine_with, page):
    pages = {**OLLAMA, "/api/ps": page, "/api/show": page}
    with playing(pages) as server:
        engine = engine_with(ollama=f"{server.url}/v1")
        target = asyncio.run(engine.inspected(engine.target("ollama/qwen3:8b")))
    assert target.facts.limit.context is None
