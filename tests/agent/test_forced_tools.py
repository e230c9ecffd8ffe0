"""What a program forces is forced, or is an error; never a free choice in silence."""

from __future__ import annotations

import asyncio
import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import mull
from gateway.conftest import serving
from gateway.test_upstream_options import CHAT, CONTENTS, MESSAGES, RESPONSES, asked, gateway
from mull.agent.engine import Engine
from mull.neutral.errors import LocalError
from mull.store.serve import ServedModel
from mull.testing import Reply, ScriptedServer

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "Does.",
            "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
        },
    }
    for name in ("look", "wait")
]
ENOUGH = Reply.json({"error": {"message": "enough", "type": "x"}}, 418)
STOPS = [
    "moonshotai/kimi-k2.5",
    "moonshotai/kimi-k2.6",
    "kimi-for-coding/k2p6",
    "deepseek/deepseek-v4-pro",
    "alibaba/qwen3.7-plus",
    "anthropic/claude-sonnet-4-5",
    "anthropic/claude-opus-5",
    "amazon-bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
]
TAKES = ["openai/gpt-5", "google/gemini-3-pro-preview", "zai/glm-5", "openai-compatible/house"]
TAKES += ["anthropic/house", "moonshotai/kimi-k3"]
REFUSES = [
    "moonshotai/kimi-k2-thinking",
    "moonshotai/kimi-k2.7-code",
    "anthropic/claude-opus-5-5",
    "anthropic/claude-fable-5-1",
    "alibaba/qwq-plus",
]


def sent(model, choice, **more):
    """The body of a request that forces a tool."""
    more |= {"key": "k", "tools": TOOLS, "engine": Engine(isolated=True)}
    with ScriptedServer([ENOUGH]) as server, pytest.raises(mull.RefusedError):
        mull.complete("q", model, tool_choice=choice, base_url=server.url, **more)
    (request,) = server.requests
    return request.json


def forces(body):
    """Whether the body forces a tool, whatever its dialect."""
    told = body.get("tool_choice") or body.get("toolConfig") or {}
    said = json.dumps(told).lower()
    return any(f'"{word}"' in said for word in ("required", "any", "function", "tool"))


def is_off(body):
    said = json.dumps(body)
    return any(
        one in said for one in ('"thinking": {"type": "disabled"}', '"enable_thinking": false')
    ) or not any(one in said for one in ("budget_tokens", "adaptive", "reasoning_config"))


@pytest.mark.parametrize("choice", ["required", "look"])
@pytest.mark.parametrize("model", STOPS)
def test_thinking_is_off_for_that_request_where_it_can_be(model, choice):
    body = sent(model, choice)
    assert forces(body), body
    assert is_off(body), body


@pytest.mark.parametrize("choice", ["required", "look"])
@pytest.mark.parametrize("model", TAKES)
def test_an_endpoint_that_takes_both_gets_both(model, choice):
    assert forces(sent(model, choice))


def test_one_that_takes_no_name_is_offered_no_other_tool():
    body = sent("moonshotai/kimi-k3", "look")
    assert body["tool_choice"] == "required"
    assert [tool["function"]["name"] for tool in body["tools"]] == ["look"]
    assert len(sent("moonshotai/kimi-k3", "required")["tools"]) == 2


@pytest.mark.parametrize("choice", ["required", "look"])
@pytest.mark.parametrize("model", REFUSES)
def test_where_it_cannot_be_forced_that_is_an_error(model, choice):
    name = model.partition("/")[2]
    with ScriptedServer() as server:
        given = {"base_url": server.url, "key": "k", "tools": TOOLS}
        with pytest.raises(LocalError, match="accepts no forced tool") as raised:
            mull.complete("q", model, tool_choice=choice, **given)
        assert not server.requests
    assert name in str(raised.value)


MESSAGE = [{"role": "user", "content": "q"}]
CLIENTS = {
    CHAT: {"messages": MESSAGE, "tools": TOOLS, "tool_choice": "required"},
    MESSAGES: {
        "max_tokens": 2000,
        "messages": MESSAGE,
        "tools": [{"name": "look", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "tool", "name": "look"},
    },
    RESPONSES: {
        "input": "q",
        "tools": [{"type": "function", "name": "look", "parameters": {"type": "object"}}],
        "tool_choice": "required",
    },
    CONTENTS: {
        "contents": [{"role": "user", "parts": [{"text": "q"}]}],
        "tools": [{"functionDeclarations": [{"name": "look"}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
    },
}


@pytest.mark.parametrize("path", CLIENTS)
@pytest.mark.parametrize("model", ["moonshotai/kimi-k2.6", "moonshotai/kimi-k2-thinking"])
def test_what_a_client_of_the_gateway_forces_is_forced(model, path):
    async def run():
        with gateway(model, server.url) as to:
            await asked(to, path, CLIENTS[path])
            await to.close()

    with ScriptedServer([ENOUGH]) as server:
        if model.endswith("thinking"):
            with pytest.raises(LocalError, match="accepts no forced tool"):
                asyncio.run(run())
            assert not server.requests
            return
        asyncio.run(run())
        (request,) = server.requests
    assert forces(request.json)
    assert request.json["thinking"] == {"type": "disabled"}


def allowing(path, names, mode):
    """A request with three tools that allows these only."""
    three = [{"name": name, "description": "Does."} for name in ("look", "wait", "go")]
    schema = {"type": "object", "properties": {}}
    if path == CHAT:
        tools = [{"type": "function", "function": {**one, "parameters": schema}} for one in three]
        listed = [{"type": "function", "function": {"name": name}} for name in names]
        choice = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": listed}}
        return {"messages": MESSAGE, "tools": tools, "tool_choice": choice}
    if path == RESPONSES:
        tools = [{"type": "function", **one, "parameters": schema} for one in three]
        listed = [{"type": "function", "name": name} for name in names]
        choice = {"type": "allowed_tools", "mode": mode, "tools": listed}
        return {"input": "q", "tools": tools, "tool_choice": choice}
    calling = {"mode": {"required": "ANY", "auto": "AUTO"}[mode], "allowedFunctionNames": names}
    return {
        "contents": [{"role": "user", "parts": [{"text": "q"}]}],
        "tools": [{"functionDeclarations": three}],
        "toolConfig": {"functionCallingConfig": calling},
    }


@pytest.mark.parametrize("mode", ["required", "auto"])
@pytest.mark.parametrize("names", [["look"], ["look", "wait"]], ids=["one", "two"])
@pytest.mark.parametrize("path", [CHAT, RESPONSES, CONTENTS])
@pytest.mark.parametrize(
    "model",
    [
        "moonshotai/kimi-k2.6",
        "anthropic/claude-opus-5",
        "google/gemini-3-pro-preview",
        "openai/gpt-5.2",
        "amazon-bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    ],
)
def test_a_client_that_allows_some_tools_gets_no_other(model, path, names, mode):
    async def run():
        with gateway(model, server.url) as to:
            await asked(to, path, allowing(path, names, mode))
            await to.close()

    with ScriptedServer([ENOUGH]) as server:
        asyncio.run(run())
        (request,) = server.requests
    if (path, model.partition("/")[0]) in ((RESPONSES, "openai"), (CONTENTS, "google")):
        choice = {RESPONSES: "tool_choice", CONTENTS: "toolConfig"}[path]
        assert request.json[choice] == allowing(path, names, mode)[choice]  # its own vendor's words
        assert all(f'"{name}"' in request.body.decode() for name in ("look", "wait", "go"))
        return
    assert forces(request.json) == (mode == "required")
    if (mode, len(names)) == ("required", 1):
        told = {**request.json, "tools": None}
        told = told.get("tool_choice") or told["toolConfig"]
        told = told.get("toolChoice") or told  # beside Amazon's tools
        assert '"look"' in json.dumps(told)
    else:
        offered = [name for name in ("look", "wait", "go") if f'"{name}"' in request.body.decode()]
        assert offered == names


def test_a_client_is_told_why_it_cannot_be():
    body = json.dumps({"model": "m", **CLIENTS[CHAT]}).encode()
    asking = {"content-type": "application/json"}
    served = ServedModel("moonshotai/kimi-k2-thinking", base_url="http://127.0.0.1:9")
    with serving({"m": served}) as url, pytest.raises(HTTPError) as raised:
        urlopen(Request(url + CHAT, body, asking))
    assert raised.value.code == 400
    assert b"accepts no forced tool while it thinks" in raised.value.read()


@pytest.mark.parametrize("model", ["gpt-5.1", "gpt-5.2", "gpt-5.2-2025-12-11", "gpt-5.4"])
def test_a_temperature_is_sent_where_it_is_refused_only_while_thinking(model):
    def asks(**settings):
        more = {"temperature": 0.2, "top_p": 0.5, "settings": settings}
        return sent(f"openai/{model}", "auto", **more)

    for off in ({"reasoning.enabled": False}, {"reasoning.effort": "none"}):
        body = asks(**off)
        assert body["reasoning"]["effort"] == "none"
        assert (body["temperature"], body["top_p"]) == (0.2, 0.5)
    for on in ({}, {"reasoning.effort": "low"}):
        body = asks(**on)
        assert "temperature" not in body
        assert "top_p" not in body


@pytest.mark.parametrize("model", ["gpt-5", "gpt-5-mini", "gpt-5-2025-08-07", "o3"])
def test_older_models_take_none(model):
    body = sent(f"openai/{model}", "auto", temperature=0.2, settings={"reasoning.enabled": False})
    assert "temperature" not in body
