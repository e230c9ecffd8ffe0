"""Local servers are served with the context window that they report, and requests fit into it."""

from __future__ import annotations

import asyncio
import json
import os
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from gateway.conftest import serving
from mull.agent import discover
from mull.agent.engine import LOCAL_PROVIDERS, Engine
from mull.gateway import servers
from mull.gateway.listing import listing
from mull.gateway.routes import Routes
from mull.gateway.servers import Servers
from mull.store.serve import ServeConfig, ServedModel
from mull.testing.server import STALL, Reply, ScriptedServer
from ports import closed_port, free_port

pytestmark = pytest.mark.usefixtures("inspected_servers")

WINDOW = 40_960
WORD = "water "
"""One token in every vocabulary."""


class ModelServer:
    """A server of one kind with one model, which refuses what does not fit as vLLM does."""

    def __init__(self, kind: str, window: int | None = WINDOW, *, refuses: bool = True) -> None:
        self.kind, self.window, self.refuses = kind, window, refuses
        self.finer = 1.0
        """How many tokens its vocabulary has for one of ours."""
        self.sent: list[dict] = []
        self.asked = 0

    def __call__(self, request) -> Reply:
        if request.method == "POST" and request.path.endswith("/chat/completions"):
            self.sent.append(request.json)
            return self._answer(request.json)
        if request.path == "/v1/models":
            self.asked += 1
        found = self._pages().get(request.path)
        return Reply.json({"error": "not found"}, 404) if found is None else Reply.json(found)

    def _pages(self) -> dict[str, object]:
        row: dict[str, object] = {"id": "m", "object": "model"}
        others: list[object] = []
        match self.kind:
            case "vllm" | "sglang":
                row |= {"owned_by": self.kind, "max_model_len": self.window}
                more = {}
            case "llama.cpp":
                row |= {"owned_by": "llamacpp", "meta": {"n_ctx_train": 10**6}}
                more = {"/props": {"default_generation_settings": {"n_ctx": self.window}}}
            case "llama.cpp, no props":
                row |= {"owned_by": "llamacpp", "meta": {"n_ctx": self.window}}
                more = {}
            case "llama.cpp, router":
                row |= {"owned_by": "llamacpp", "meta": {"n_ctx": self.window}}
                router = {"role": "router", "default_generation_settings": {"n_ctx": 0}}
                more, others = {"/props": router}, [{"id": "other", "owned_by": "llamacpp"}]
            case "vllm, adapter":
                row |= {"owned_by": "vllm", "max_model_len": None, "parent": "base"}
                more, others = {}, [{"id": "base", "max_model_len": self.window}]
            case "lmstudio, new":
                row |= {"owned_by": "organization_owner"}
                loaded = {"id": "m", "config": {"context_length": self.window}}
                listed = {"key": "org/m", "max_context_length": 10**6, "loaded_instances": [loaded]}
                more = {"/api/v1/models": {"models": [{"key": "org/n"}, listed]}}
            case "lmstudio":
                row |= {"owned_by": "organization_owner"}
                loaded = {"id": "m", "loaded_context_length": self.window}
                more = {"/api/v0/models": {"data": [{**loaded, "max_context_length": 10**6}]}}
            case "ollama":
                row |= {"owned_by": "library"}
                running = {"name": "m:latest", "context_length": self.window}
                shown = {"model_info": {"x.context_length": 10**6}}
                more = {"/api/ps": {"models": [running]}, "/api/show": shown}
            case "ollama, no tag":
                row |= {"id": "m:latest", "owned_by": "library"}
                running = {"name": "m:latest", "context_length": self.window}
                more = {"/api/ps": {"models": [running]}}
                others = [{"id": "other:latest", "owned_by": "library"}]
            case "ollama, unloaded":
                row |= {"owned_by": "library"}
                more = {"/api/ps": {"models": []}}
                more["/api/show"] = {"model_info": {"x.context_length": self.window}}
            case _:
                more = {}
        return {"/v1/models": {"object": "list", "data": [*others, row]}, **more}

    def _answer(self, body) -> Reply:
        held, asked = round(held_in(body) * self.finer), limit_of(body)
        if self.refuses and self.window and held + (asked or 0) > self.window:
            text = (
                f"This model's maximum context length is {self.window} tokens. However, you"
                f" requested {held + (asked or 0)} tokens ({held} in the messages, {asked or 0} in"
                " the completion)."
            )
            return Reply.json({"error": {"message": text, "type": "BadRequestError"}}, 400)
        told = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        delta = {"index": 0, "delta": {"role": "assistant", "content": "Yes."}}
        return Reply.events(
            {**told, "choices": [{**delta, "finish_reason": "stop"}]},
            {**told, "choices": [], "usage": {"prompt_tokens": held, "completion_tokens": 2}},
            "[DONE]",
        )


def held_in(body) -> int:
    return json.dumps(body["messages"]).count(WORD.strip())


def limit_of(body) -> int | None:
    return body.get("max_tokens", body.get("max_completion_tokens"))


NAMES = {
    "vllm": "vllm/m",
    "sglang": "sglang/m",
    "llama.cpp": "llama.cpp/m",
    "vllm, adapter": "vllm/m",
    "llama.cpp, no props": "llama.cpp/m",
    "llama.cpp, router": "llama.cpp/m",
    "lmstudio": "lmstudio/m",
    "lmstudio, new": "lmstudio/m",
    "ollama": "ollama/m",
    "ollama, no tag": "ollama/m",
    "ollama, unloaded": "ollama/m",
}
ANTHROPIC = {"anthropic-version": "2023-06-01"}
LISTS = {
    "chat": ("/v1/models", {}, "data", "context_length"),
    "messages": ("/v1/models", ANTHROPIC, "data", "max_input_tokens"),
    "gemini": ("/v1beta/models", {}, "models", "inputTokenLimit"),
}


def served(kind: str, server) -> ServedModel:
    return ServedModel(NAMES[kind], base_url=f"{server.url}/v1")


def got(url: str, headers=None, body=None):
    """The document at an address, and the notes beside it."""
    sent = {"content-type": "application/json", **(headers or {})}
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data, sent)) as answer:
        return json.load(answer), answer.headers.get("x-mull-notes", "")


@pytest.mark.parametrize("kind", NAMES)
def test_every_list_of_models_has_the_window_of_every_kind_of_server(kind):
    with ScriptedServer(ModelServer(kind)) as server, serving({"m": served(kind, server)}) as url:
        for path, headers, rows, field in LISTS.values():
            document, _ = got(url + path, headers)
            assert document[rows][0][field] == WINDOW
            one, _ = got(f"{url}{path}/m", headers)
            assert one[field] == WINDOW


@pytest.mark.parametrize("name", ["acme/m", "openai/none-such"])
@pytest.mark.parametrize("kind", ["vllm", "llama.cpp", "lmstudio", "ollama"])
def test_a_server_under_any_name_says_what_it_is(name, kind):
    with (
        ScriptedServer(ModelServer(kind)) as server,
        serving({"m": ServedModel(name, base_url=f"{server.url}/v1")}) as url,
    ):
        document, _ = got(f"{url}/v1/models")
    assert document["data"][0]["context_length"] == WINDOW


def asking(words: int, limit: int | None) -> dict[str, tuple[str, dict]]:
    """The same request in the four dialects."""
    text = WORD * words
    said = [{"role": "user", "content": text}]
    contents = [{"role": "user", "parts": [{"text": text}]}]
    limits = {"maxOutputTokens": limit} if limit else {}
    return {
        "chat": (
            "/v1/chat/completions",
            {"model": "m", "messages": said, **({"max_tokens": limit} if limit else {})},
        ),
        "messages": (
            "/v1/messages",
            {"model": "m", "messages": said, **({"max_tokens": limit} if limit else {})},
        ),
        "responses": (
            "/v1/responses",
            {"model": "m", "input": said, **({"max_output_tokens": limit} if limit else {})},
        ),
        "gemini": (
            "/v1beta/models/m:generateContent",
            {"contents": contents, "generationConfig": limits},
        ),
    }


DIALECTS = tuple(asking(1, 1))


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """However busy the machine is, a server is asked before a request goes out."""
    monkeypatch.setattr(servers, "MOMENT", 30.0)
    monkeypatch.setattr(discover, "_PATIENCE", 30.0)


@pytest.fixture
def quick(monkeypatch):
    """What a server said is good for a moment only."""
    monkeypatch.setattr(servers, "FRESH", 0.05)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", ["vllm", "sglang", "llama.cpp", "lmstudio", "ollama"])
def test_request_and_answer_fit_the_window_of_a_local_server(dialect, kind):
    model = ModelServer(kind)
    path, body = asking(20_000, 32_000)[dialect]
    with ScriptedServer(model) as server, serving({"m": served(kind, server)}) as url:
        answer, notes = got(url + path, body=body)
    assert "Yes." in json.dumps(answer)
    (sent,) = model.sent
    assert 15_000 < limit_of(sent) <= WINDOW - 20_000  # with a margin, and hardly less than fits
    assert f"max_tokens: lowered from 32,000 to {limit_of(sent):,}" in notes
    assert f"{WINDOW:,}" in notes
    assert "context.limit" not in notes  # by its characters alone it would not fit


def test_a_budget_fits_into_a_limit_that_was_lowered():
    model = ModelServer("vllm")
    path, body = asking(20_000, 32_000)["messages"]
    body["thinking"] = {"type": "enabled", "budget_tokens": 31_999}
    with ScriptedServer(model) as server, serving({"m": served("vllm", server)}) as url:
        got(url + path, body=body)
    (sent,) = model.sent
    assert 10_000 < sent["thinking_token_budget"] < limit_of(sent)


def test_a_margin_is_left_for_what_our_count_misses():
    model = ModelServer("vllm")
    model.finer = 1.08
    path, body = asking(20_000, 32_000)["chat"]
    with ScriptedServer(model) as server, serving({"m": served("vllm", server)}) as url:
        got(url + path, body=body)
    assert len(model.sent) == 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_fits_is_sent_as_it_is(dialect):
    model = ModelServer("vllm")
    path, body = asking(8_000, 32_000)[dialect]
    with ScriptedServer(model) as server, serving({"m": served("vllm", server)}) as url:
        _, notes = got(url + path, body=body)
    assert limit_of(model.sent[0]) == 32_000
    assert "max_tokens" not in notes


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_window_of_the_catalog_counts_too(dialect):
    model = ModelServer("none", 262_144)
    path, body = asking(180_000, 128_000)[dialect]
    with ScriptedServer(model) as server:
        kimi = ServedModel("moonshotai/kimi-k2.5", base_url=f"{server.url}/v1")
        with serving({"m": kimi}) as url:
            _, notes = got(url + path, body=body)
    (sent,) = model.sent
    assert 50_000 < limit_of(sent) <= 262_144 - 180_000
    assert "max_tokens: lowered from 128,000" in notes


def test_the_users_own_number_for_the_window_counts_and_is_listed():
    model = ModelServer("vllm", None)
    path, body = asking(5_000, 32_000)["chat"]
    with ScriptedServer(model) as server:
        limited = ServedModel(
            "vllm/m", base_url=f"{server.url}/v1", settings={"context.limit": 16_384}
        )
        with serving({"m": limited}) as url:
            assert got(f"{url}/v1/models")[0]["data"][0]["context_length"] == 16_384
            got(url + path, body=body)
    assert 10_000 < limit_of(model.sent[0]) <= 16_384 - 5_000


@pytest.mark.parametrize("words", [38_000, 39_500])
def test_an_answer_is_never_limited_to_nothing(words):
    """Where our count leaves hardly any room, the server's own count decides."""
    model = ModelServer("vllm")
    path, body = asking(words, 32_000)["chat"]
    with ScriptedServer(model) as server, serving({"m": served("vllm", server)}) as url:
        got(url + path, body=body)
    assert limit_of(model.sent[-1]) >= 1_000


TOO_LONG = {
    "chat": "context_length_exceeded",
    "messages": "prompt is too long: ",
    "responses": "context_length_exceeded",
    "gemini": "The input token count (",
}


@pytest.mark.parametrize("limit", [32_000, None])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("kind", "refuses"), [("vllm", True), ("ollama", False)])
def test_what_does_not_fit_alone_is_told_in_the_clients_words(dialect, kind, refuses, limit):
    """Ollama would drop the beginning of the conversation and answer."""
    model = ModelServer(kind, refuses=refuses)
    path, body = asking(60_000, limit)[dialect]
    with (
        ScriptedServer(model) as server,
        serving({"m": served(kind, server)}) as url,
        pytest.raises(HTTPError) as raised,
    ):
        got(url + path, body=body)
    assert raised.value.code == 400
    assert TOO_LONG[dialect] in raised.value.read().decode()


def test_a_request_that_is_too_long_can_be_counted():
    model = ModelServer("vllm")
    _, body = asking(60_000, 32_000)["messages"]
    with ScriptedServer(model) as server, serving({"m": served("vllm", server)}) as url:
        counted, _ = got(f"{url}/v1/messages/count_tokens", body=body)
    assert 60_000 <= counted["input_tokens"] < 61_000


def test_a_fallback_with_a_small_window_does_not_hide_the_error_of_the_first_target():
    small = ModelServer("vllm")
    path, body = asking(60_000, None)["chat"]
    busy = Reply.json({"error": {"message": "no capacity left"}}, 503)
    with ScriptedServer([busy]) as first, ScriptedServer(small) as server:
        kimi = ServedModel("moonshotai/kimi-k2.5", base_url=first.url, fallback=("small",))
        models = {"m": kimi, "small": served("vllm", server)}
        with serving(models) as url, pytest.raises(HTTPError) as raised:
            got(url + path, body=body)
    assert raised.value.code == 503
    assert "no capacity left" in raised.value.read().decode()
    assert small.sent == []


def test_a_request_beyond_the_catalogs_window_is_left_to_the_provider():
    """A provider may have a larger window than the catalog knows, for instance in a beta."""
    model = ModelServer("none", 1_000_000)
    path, body = asking(300_000, 32_000)["chat"]
    with ScriptedServer(model) as server:
        kimi = ServedModel("moonshotai/kimi-k2.5", base_url=f"{server.url}/v1")
        with serving({"m": kimi}) as url:
            _, notes = got(url + path, body=body)
    assert limit_of(model.sent[0]) == 32_000
    assert "max_tokens" not in notes


@pytest.mark.usefixtures("quick")
def test_a_server_that_is_started_later_is_asked_then():
    port = free_port()
    model = ModelServer("vllm")
    path, body = asking(20_000, 32_000)["chat"]
    late = ServedModel("vllm/m", base_url=f"http://127.0.0.1:{port}/v1")
    with serving({"m": late}) as url:
        assert "context_length" not in got(f"{url}/v1/models")[0]["data"][0]
        with ScriptedServer(model, port=port):
            until(lambda: listed_window(url) == WINDOW)
            got(url + path, body=body)
    assert limit_of(model.sent[-1]) <= WINDOW - 20_000


@pytest.mark.usefixtures("quick")
def test_a_server_restarted_with_another_window_is_noticed():
    model = ModelServer("vllm")
    path, body = asking(1_000, 12_000)["chat"]
    with ScriptedServer(model) as server, serving({"m": served("vllm", server)}) as url:
        assert listed_window(url) == WINDOW
        model.window = 8_192
        until(lambda: listed_window(url) == 8_192)
        got(url + path, body=body)
        assert 4_000 < limit_of(model.sent[-1]) <= 8_192 - 1_000
        model.window = 65_536

        def requested() -> bool:  # requests alone, without any list
            got(url + path, body=body)
            return limit_of(model.sent[-1]) == 12_000

        until(requested)


def test_a_server_that_does_not_say_is_asked_once_in_a_while():
    model = ModelServer("vllm", None)
    path, body = asking(1, 100)["chat"]
    with ScriptedServer(model) as server, serving({"m": served("vllm", server)}) as url:
        for _ in range(5):
            got(url + path, body=body)
    assert model.asked <= 2


HANGS = 3600.0
"""Seconds that no test survives."""


def silent_when_asked(model):
    """A server that says nothing about its models any more, and still does what it is for."""

    def reply(request):
        is_question = request.method == "GET" and model.asked
        return Reply(before=(STALL,)) if is_question else model(request)

    return reply


def test_a_silent_server_delays_no_request_for_long(monkeypatch):
    monkeypatch.setattr(servers, "MOMENT", 0.01)
    monkeypatch.setattr(discover, "_PATIENCE", HANGS)
    model = ModelServer("vllm")
    model.asked = 1
    path, body = asking(1, 100)["chat"]
    with (
        ScriptedServer(silent_when_asked(model)) as server,
        serving({"m": served("vllm", server)}) as url,
    ):
        got(url + path, body=body)
    assert [limit_of(sent) for sent in model.sent] == [100]


def test_no_request_waits_for_a_server_that_has_said_its_window(monkeypatch):
    monkeypatch.setattr(servers, "FRESH", 0.0)
    monkeypatch.setattr(servers, "MOMENT", HANGS)
    model = ModelServer("vllm")
    path, body = asking(20_000, 32_000)["chat"]
    with (
        ScriptedServer(silent_when_asked(model)) as server,
        serving({"m": served("vllm", server)}) as url,
    ):
        got(url + path, body=body)
        monkeypatch.setattr(discover, "_PATIENCE", HANGS)
        got(url + path, body=body)
    assert all(limit_of(sent) <= WINDOW - 20_000 for sent in model.sent)


def test_one_model_is_described_without_any_list():
    model = ModelServer("vllm")
    with ScriptedServer(model) as server, serving({"m": served("vllm", server)}) as url:
        assert got(f"{url}/v1/models/m")[0]["context_length"] == WINDOW


@pytest.fixture
def usual(quick):
    """An engine whose local providers are at these addresses, the others nowhere."""

    def make(**addresses):
        nowhere = f"http://127.0.0.1:{closed_port()}/v1"
        places = {**dict.fromkeys(LOCAL_PROVIDERS, nowhere), **addresses}
        config = Path(os.environ["MULL_CONFIG_DIR"]) / "config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        rows = (f'[providers."{name}"]\nbase_url = "{url}"\n' for name, url in places.items())
        config.write_text("".join(rows))
        return Engine()

    return make


def test_servers_at_their_usual_addresses_are_listed_while_they_run(usual, monkeypatch):
    monkeypatch.setattr("mull.local.weights.is_installed", lambda: False)

    async def windows(engine, routes, known) -> dict[str, int | None]:
        async with engine:
            await known.refresh(routes)
            return {one.name: one.window for one in listing(routes.names(), routes.offer)}

    with ExitStack() as running:
        urls = {
            kind: f"{running.enter_context(ScriptedServer(ModelServer(kind))).url}/v1"
            for kind in LOCAL_PROVIDERS
        }
        engine = usual(**urls)
        routes, known = Routes(engine, ServeConfig()), Servers(engine)
        found = asyncio.run(windows(engine, routes, known))
        assert found == {f"{kind}/m": WINDOW for kind in LOCAL_PROVIDERS}
    time.sleep(servers.FRESH)
    assert asyncio.run(windows(engine, routes, known)) == {}


def test_with_several_targets_the_smallest_window_is_listed():
    small = ModelServer("vllm", 8_192)
    with ScriptedServer(ModelServer("vllm")) as one, ScriptedServer(small) as two:
        both = tuple(
            ServedModel("vllm/m", base_url=f"{server.url}/v1").upstreams[0] for server in (one, two)
        )
        with serving({"m": ServedModel("vllm/m", targets=both)}) as url:
            until(lambda: listed_window(url) == 8_192)


def listed_window(url: str) -> int | None:
    return got(f"{url}/v1/models")[0]["data"][0].get("context_length")


def until(done, seconds: float = 30) -> None:
    limit = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < limit
        time.sleep(0.05)
