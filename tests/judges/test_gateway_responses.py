"""The stateful Responses API as others' programs use it: OpenAI's SDK, whose models judge every
document and event, and codex, over a WebSocket and with compaction."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from tools.agents import PATH, install

from gateway.conftest import serving
from gateway.responding import ASKS, LOOKS
from gateway.test_square import EACH_DIALECT, UPSTREAMS
from judges.test_strict_agents import AGENTS, CODEX, script
from mull.gateway import socket as sockets
from mull.store.serve import ServedModel
from mull.testing import Say, StrictServer, Think

openai = pytest.importorskip("openai", reason="the official SDK is not installed")
pydantic = pytest.importorskip("pydantic")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

SUMMARY = [Think("What mattered?"), Say("The shelf holds a bottle of milk.")]
ENDINGS = ("response.completed", "response.failed", "error")


@pytest.fixture(params=EACH_DIALECT)
def upstream(request):
    return request.param


def client_at(url):
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


def judged(value):
    """A value that the SDK read, once more by its models, where nothing may be missing."""
    kind = type(value)
    again = pydantic.TypeAdapter(kind).validate_python(value.to_dict(mode="python"))
    assert again == value
    return value


def outputs(response):
    return [
        {"type": "function_call_output", "call_id": item.call_id, "output": "a bottle"}
        for item in response.output
        if item.type == "function_call"
    ]


def test_the_sdk_holds_a_conversation_by_its_last_response(upstream):
    with StrictServer(upstream, [LOOKS[0], *LOOKS, LOOKS[1], SUMMARY, LOOKS[1]]) as server:
        model = ServedModel(UPSTREAMS[upstream], base_url=server.url)
        with serving({"m": model}) as url:
            responses = client_at(url).responses
            events = [
                judged(event)
                for event in responses.create(model="m", input="Look.", stream=True, **ASKS)
            ]
            assert [event.sequence_number for event in events] == list(range(len(events)))
            assert judged(events[-1].response).output_text == "I look."
            with responses.stream(model="m", input="Look.", **ASKS) as stream:
                for event in stream:
                    assert event.type != "error"
                first = stream.get_final_response()
            fetched = judged(responses.retrieve(first.id))
            assert fetched.output_text == first.output_text == "I look."
            assert [item.id for item in fetched.output] == [item.id for item in first.output]
            wants = {"model": "m", "previous_response_id": first.id}
            second = judged(responses.create(input=outputs(first), **wants, **ASKS))
            assert second.output_text == "Milk."
            listed = list(responses.input_items.list(second.id, limit=2, order="asc"))
            kinds = ["message", *[item.type for item in first.output], "function_call_output"]
            assert [item.type for item in map(judged, listed)] == kinds
            wants["previous_response_id"] = second.id
            third = judged(responses.create(input="And?", **wants, **ASKS))
            compacted = responses.compact(model="m", previous_response_id=third.id)
            assert compacted.output[-1].type == "compaction"
            judged(compacted.usage)
            kept = [item.to_dict(warnings=False) for item in compacted.output]
            last = responses.create(model="m", input=[*kept, {"role": "user", "content": "So?"}])
            assert judged(last).output_text == "Milk."
            assert responses.input_tokens.count(model="m", input="q").input_tokens > 0
            responses.delete(first.id)
            with pytest.raises(openai.NotFoundError):
                responses.retrieve(first.id)
            with pytest.raises(openai.BadRequestError) as refused:
                responses.create(model="m", input="q", previous_response_id=first.id)
            assert refused.value.code == "previous_response_not_found"
    assert not server.refusals
    assert server.returned[2]


def test_the_sdk_speaks_over_a_websocket(upstream):
    def ended(connection):
        events = []
        for event in connection:
            events.append(judged(event))
            if event.type in ENDINGS:
                return events
        raise AssertionError("the connection was closed")

    with StrictServer(upstream, LOOKS) as server:
        model = ServedModel(UPSTREAMS[upstream], base_url=server.url)
        with serving({"m": model}) as url, client_at(url).responses.connect() as connection:
            wants = {"model": "m", "store": False, **ASKS}
            connection.response.create(input="Look.", generate=False, **wants)
            ready = ended(connection)[-1].response
            assert not server.requests
            connection.response.create(input=[], previous_response_id=ready.id, **wants)
            first = ended(connection)[-1].response
            results = outputs(first)
            connection.response.create(input=results, previous_response_id=first.id, **wants)
            assert ended(connection)[-1].response.output_text == "Milk."
            connection.response.create(input="q", previous_response_id="resp_0", **wants)
            assert ended(connection)[-1].error.code == "previous_response_not_found"
    assert not server.refusals
    assert server.returned[-1]


def codex(tmp_path, url, settings, command):
    """What codex answers, on a gateway at this address."""
    home = tmp_path / ".codex"
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(settings.replace("{url}", url))
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)
    environ = {"HOME": str(tmp_path), "PATH": PATH, "LANG": "C.UTF-8", "CODEX_HOME": str(home)}
    done = subprocess.run(
        shlex.split(command),
        cwd=project,
        env={**environ, "NO_PROXY": "127.0.0.1", "OPENAI_API_KEY": "none"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    return done


@pytest.mark.parametrize("transport", ["http", "websocket"])
@pytest.mark.parametrize("name", ["kimi", "anthropic"])
def test_codex_compacts_on_a_foreign_model(name, transport, tmp_path, monkeypatch):
    agent = AGENTS["codex"]
    install(agent.package)
    opened = []
    run = sockets.Socket.run
    monkeypatch.setattr(sockets.Socket, "run", lambda self: opened.append(1) or run(self))
    # codex leaves compaction to servers of this name, and to OpenAI's
    settings = CODEX.replace('name = "Played"', 'name = "Azure"')
    settings += f"supports_websockets = {str(transport == 'websocket').lower()}\n"
    settings = "model_auto_compact_token_limit = 250\n" + settings
    with StrictServer(name, script(agent), aside=SUMMARY) as server:
        model = ServedModel(UPSTREAMS[name], base_url=server.url)
        with serving({"any": model}, default="any") as url:
            for command in agent.commands:
                done = codex(tmp_path, url, settings, command)
                assert "Milk, bread and tea." in done.stdout, done.stderr[-2000:]
                assert "context compacted" in done.stderr
    assert [refused.reason for refused in server.refusals] == []
    sent = [str(request.json) for request in server.requests]
    assert any("You summarise conversations" in body for body in sent)
    assert any("The shelf holds a bottle of milk." in body for body in sent)
    assert bool(opened) == (transport == "websocket")


def test_codex_speaks_over_a_websocket_and_sends_only_what_is_new(tmp_path):
    agent = AGENTS["codex"]
    install(agent.package)
    with StrictServer("kimi", script(agent)) as server:
        model = ServedModel(UPSTREAMS["kimi"], base_url=server.url)
        with serving({"any": model}, default="any") as url:
            for command in agent.commands:
                done = codex(tmp_path, url, CODEX + "supports_websockets = true\n", command)
                assert "Milk, bread and tea." in done.stdout, done.stderr[-2000:]
                assert "falling back" not in done.stderr.lower()
    assert [refused.reason for refused in server.refusals] == []
    assert server.called == len(server.requests) == 3 * len(agent.commands)
