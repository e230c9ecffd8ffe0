"""Whatever a client asks for, no upstream has a reason to refuse it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import tried
from mull.agent.engine import Engine
from mull.dialects.registry import encode_request
from mull.dialects.serving import decode_request
from mull.gateway.envelope import Envelopes
from mull.gateway.memory import InProcess
from mull.gateway.relay import Client
from mull.gateway.routes import Routes
from mull.gateway.service import Gateway
from mull.neutral.errors import LocalError
from mull.store.serve import ServeConfig, ServedModel
from mull.testing import refusal

UPSTREAMS = {
    "kimi": "moonshotai/kimi-k2.5",
    "qwen": "vllm/qwen3.6-27b",
    "claude": "anthropic/claude-sonnet-4-5",
    "bound": "anthropic/claude-opus-5-5",
    "gemini": "google/gemini-3-pro-preview",
    "gpt": "openai/gpt-5",
    "plain": "openai/gpt-4o",
}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
texts = st.sampled_from(["", " ", "END", "\n\n", "u" * 300])
numbers = st.floats(0, 2) | st.sampled_from([0, 1, 0.95])
wholes = st.sampled_from([1, 64, 1024, 31_999, 10**7])


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


SAID = st.sampled_from(
    [
        [{"role": "user", "content": "q"}],
        [
            {"role": "system", "content": "a"},
            {"role": "system", "content": "b"},
            {"role": "user", "content": "q"},
            {"role": "system", "content": "c"},
        ],
        [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": "a"},
            {"role": "system", "content": "c"},
            {"role": "user", "content": "r"},
        ],
    ]
)
chat = st.builds(
    lambda said, more, tools: {"messages": said, **more, **tools},
    SAID,
    some(
        temperature=numbers,
        top_p=st.floats(0, 1),
        top_k=wholes,
        seed=st.integers(-(2**60), 2**60),
        stop=texts | st.lists(texts, max_size=9),
        presence_penalty=numbers,
        frequency_penalty=numbers,
        parallel_tool_calls=st.booleans(),
        user=texts,
        prompt_cache_key=texts,
        verbosity=st.just("low"),
        max_tokens=wholes,
        reasoning_effort=st.sampled_from(["none", "minimal", "high", "xhigh"]),
        response_format=st.sampled_from(
            [
                {"type": "json_object"},
                {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}},
            ]
        ),
    ),
    st.just({})
    | st.builds(
        lambda name, choice: {
            "tools": [{"type": "function", "function": {"name": name, "parameters": SCHEMA}}],
            "tool_choice": choice or {"type": "function", "function": {"name": name}},
        },
        st.sampled_from(["f", "a.b", "x" * 90]),
        st.sampled_from(["auto", "none", "required", None]),
    ),
)
SEARCH = {"type": "web_search_20250305", "name": "web_search"}
messages = st.builds(
    lambda said, limit, more, tools: {"messages": said, "max_tokens": limit, **more, **tools},
    SAID,
    st.sampled_from([1, 40_000, 10**6]),
    some(
        temperature=numbers,
        top_p=st.floats(0, 1),
        top_k=wholes,
        stop_sequences=st.lists(texts, max_size=9),
        metadata=st.builds(lambda user: {"user_id": user}, texts),
        thinking=st.sampled_from(
            [
                {"type": "adaptive"},
                {"type": "disabled"},
                {"type": "enabled", "budget_tokens": 1024},
                {"type": "enabled", "budget_tokens": 31_999},
            ]
        ),
        output_config=st.just({"effort": "high"}),
    ),
    st.just({})
    | st.builds(
        lambda tool, choice: {"tools": [tool], "tool_choice": choice(tool)},
        st.sampled_from([SEARCH, {"name": "f", "input_schema": SCHEMA}]),
        st.sampled_from(
            [
                lambda tool: {"type": "auto", "disable_parallel_tool_use": True},
                lambda tool: {"type": "any"},
                lambda tool: {"type": "none"},
                lambda tool: {"type": "tool", "name": tool["name"]},
            ]
        ),
    ),
)
CLIENTS = {
    "openai-chat": ("/v1/chat/completions", chat),
    "anthropic": ("/v1/messages", messages),
}


@pytest.fixture(scope="module")
def gateway():
    engine = Engine(isolated=True)
    models = {k: ServedModel(v, base_url="http://127.0.0.1:9/v1") for k, v in UPSTREAMS.items()}
    routes = Routes(engine, ServeConfig(models=models))
    return Gateway(engine, routes, InProcess(), Envelopes(b"k" * 32))


@pytest.mark.parametrize("dialect", CLIENTS)
@tried(0.4)
@given(data=st.data())
def test_no_upstream_has_a_reason_to_refuse(gateway, dialect, data):
    path, bodies = CLIENTS[dialect]
    body = data.draw(bodies)
    for name in UPSTREAMS:
        asked = decode_request(dialect, json.dumps({"model": name, **body}).encode(), path)
        try:
            prepared = asyncio.run(gateway.job(Client(dialect), asked)).prepared
        except LocalError as error:
            if "accepts no forced tool" not in str(error):
                raise
            continue
        sent = json.loads(encode_request(prepared.request, prepared.target).body)
        assert refusal(prepared.target.dialect, sent) is None, name
        assert_sound(sent, prepared.target.dialect)


def chat_schema(**schema: Any) -> tuple[str, dict[str, Any]]:
    named = {"name": "x", "schema": {"type": "object", **schema}}
    return "openai-chat", {
        "messages": SAID_ONCE,
        "response_format": {"type": "json_schema", "json_schema": named},
    }


def responses_item(**item: Any) -> tuple[str, dict[str, Any]]:
    return "openai-responses", {"input": [*SAID_ONCE, item, *SAID_ONCE]}


def gemini_part(**part: Any) -> tuple[str, dict[str, Any]]:
    return "gemini", {"contents": [{"role": "user", "parts": [{"text": "q"}, part]}]}


SAID_ONCE = [{"role": "user", "content": "q"}]
PART = {"type": "text", "text": "a", "function": -5}
MALFORMED = [
    chat_schema(required=-5),
    chat_schema(properties=[None]),
    chat_schema(properties={"a": {"enum": []}}),
    chat_schema(properties={"a": {"anyOf": None}}),
    chat_schema(properties={"a": {"type": "string", "format": []}}),
    ("openai-chat", {"messages": [*SAID_ONCE, {"role": "assistant", "content": [PART]}]}),
    responses_item(type="message", role="assistant", content="a", summary=None),
    responses_item(type="configuration_update", call_id=[]),
    gemini_part(functionResponse={"name": "f", "response": {}, "parts": True}),
    gemini_part(inlineData={"mimeType": "image/png", "data": "eA=="}, fileData=True),
]


@pytest.mark.parametrize(("dialect", "body"), MALFORMED)
def test_what_is_malformed_is_sent_or_refused(gateway, dialect, body):
    for name in UPSTREAMS:
        data = json.dumps({"model": name, **body}).encode()
        try:
            asked = decode_request(dialect, data, f"/v1beta/models/{name}:generateContent")
            prepared = asyncio.run(gateway.job(Client(dialect), asked)).prepared
        except LocalError:
            continue
        encode_request(prepared.request, prepared.target)


def assert_sound(sent: dict[str, Any], dialect: str) -> None:
    """Rules that the judge of whole conversations leaves out."""
    if dialect.startswith("openai"):
        assert "parallel_tool_calls" not in sent or sent["tools"]
        assert all(len(sent.get(key, "")) <= 64 for key in ("user", "prompt_cache_key"))
    if dialect == "openai-chat":
        assert "developer" not in [message["role"] for message in sent["messages"]]
    if dialect == "gemini":
        stops = sent.get("generationConfig", {}).get("stopSequences", [])
        assert len(stops) <= 5
        assert all(stops)
    choice = sent.get("tool_choice") or {}
    if dialect == "anthropic" and choice:
        assert sent["tools"]
        assert choice["type"] != "tool" or choice["name"] in [t["name"] for t in sent["tools"]]
