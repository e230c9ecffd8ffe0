"""Every parameter of a request in each dialect's own words, and both ways by the same rows."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from conversations import target
from mull.dialects.registry import encode_request
from mull.dialects.serving import decode_request
from mull.dialects.traits import DIALECTS, TRAITS
from mull.neutral.blocks import Wire
from mull.neutral.messages import user
from mull.neutral.parameters import PARAMETERS, Parameters
from mull.neutral.request import HostedTool, Request, Tool
from mull.neutral.thinking import ThinkingPlan

VALUES: dict[str, Any] = {
    "temperature": 0.5,
    "top_p": 0.9,
    "top_k": 20,
    "presence_penalty": 0.25,
    "frequency_penalty": -0.25,
    "seed": 7,
    "stop": ("END", "STOP"),
    "parallel_calls": False,
    "verbosity": "low",
    "user": "u1",
    "metadata": {"team": "blue"},
    "cache_key": "s1",
}
SENT: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "temperature": {"temperature": 0.5},
        "top_p": {"top_p": 0.9},
        "top_k": {"top_k": 20},
        "presence_penalty": {"presence_penalty": 0.25},
        "frequency_penalty": {"frequency_penalty": -0.25},
        "seed": {"seed": 7},
        "stop": {"stop": ["END", "STOP"]},
        "parallel_calls": {"parallel_tool_calls": False},
        "verbosity": {"verbosity": "low"},
        "user": {"user": "u1"},
        "cache_key": {"prompt_cache_key": "s1"},
    },
    "openai-responses": {
        "temperature": {"temperature": 0.5},
        "top_p": {"top_p": 0.9},
        "parallel_calls": {"parallel_tool_calls": False},
        "verbosity": {"text": {"verbosity": "low"}},
        "user": {"user": "u1"},
        "metadata": {"metadata": {"team": "blue"}},
        "cache_key": {"prompt_cache_key": "s1"},
    },
    "anthropic": {
        "temperature": {"temperature": 0.5},
        "top_p": {"top_p": 0.9},
        "top_k": {"top_k": 20},
        "stop": {"stop_sequences": ["END", "STOP"]},
        "parallel_calls": {"tool_choice": {"disable_parallel_tool_use": True, "type": "auto"}},
        "user": {"metadata": {"user_id": "u1"}},
    },
    "gemini": {
        "temperature": {"generationConfig": {"temperature": 0.5}},
        "top_p": {"generationConfig": {"topP": 0.9}},
        "top_k": {"generationConfig": {"topK": 20}},
        "presence_penalty": {"generationConfig": {"presencePenalty": 0.25}},
        "frequency_penalty": {"generationConfig": {"frequencyPenalty": -0.25}},
        "seed": {"generationConfig": {"seed": 7}},
        "stop": {"generationConfig": {"stopSequences": ["END", "STOP"]}},
    },
    "bedrock-converse": {
        "temperature": {"inferenceConfig": {"temperature": 0.5}},
        "top_p": {"inferenceConfig": {"topP": 0.9}},
        "top_k": {"additionalModelRequestFields": {"top_k": 20}},
        "stop": {"inferenceConfig": {"stopSequences": ["END", "STOP"]}},
        "metadata": {"requestMetadata": {"team": "blue"}},
    },
}


def sent(dialect: str, **more: Any) -> tuple[dict[str, Any], Any]:
    """The body, and what is read back from it."""
    to = target("none", dialect=dialect)
    tools = more.pop("tools", (Tool("f"),))
    request = Request([user("q")], ThinkingPlan("absent"), tools=tools, **more)
    wire = encode_request(request, to)
    back = decode_request(to.dialect, wire.body, wire.path, wire.headers)
    return msgspec.json.decode(wire.body), back


def test_the_names_are_those_of_the_fields():
    assert Parameters.__struct_fields__ == PARAMETERS
    assert VALUES.keys() == set(PARAMETERS)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_parameter_has_its_own_words(dialect):
    plain, _ = sent(dialect)
    assert SENT[dialect].keys() == TRAITS[dialect].parameters.keys()
    for name in PARAMETERS:
        body, back = sent(dialect, **{name: VALUES[name]})
        added = {key: value for key, value in body.items() if plain.get(key) != value}
        assert added == SENT[dialect].get(name, {}), name
        if name in SENT[dialect]:
            assert getattr(back, name) == VALUES[name]


def test_a_parallel_call_is_a_part_of_the_choice():
    body, back = sent("anthropic", parallel_calls=True, tool_choice="required")
    assert body["tool_choice"] == {"type": "any", "disable_parallel_tool_use": False}
    assert (back.parallel_calls, back.tool_choice) == (True, "required")


HOSTED: dict[str, dict[str, Any]] = {
    "openai-chat": {"type": "builtin_function", "function": {"name": "$web_search"}},
    "openai-responses": {"type": "web_search", "external_web_access": True},
    "anthropic": {"type": "web_search_20250305", "name": "web_search", "max_uses": 8},
    "gemini": {"googleSearch": {}},
    "bedrock-converse": {"systemTool": {"name": "nova_grounding"}},
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("tools", [(), (Tool("f"),)], ids=["alone", "beside"])
def test_tools_of_the_provider_go_as_they_came(dialect, tools):
    hosted = (HostedTool(dialect, HOSTED[dialect]),)
    body, back = sent(dialect, tools=tools, hosted_tools=hosted)
    offered = body["toolConfig"]["tools"] if dialect == "bedrock-converse" else body["tools"]
    assert offered[-1] == HOSTED[dialect]
    assert len(offered) == len(tools) + 1
    assert back.hosted_tools == hosted


def test_a_tool_brings_the_previews_that_it_is_a_part_of():
    hosted = (HostedTool("anthropic", HOSTED["anthropic"], ("code-execution-2025-05-22",)),)
    to = target("none", dialect="anthropic")
    request = Request([user("q")], ThinkingPlan("absent"), hosted_tools=hosted)
    wire = encode_request(request, to)
    assert wire.headers["anthropic-beta"] == "code-execution-2025-05-22"
    assert decode_request("anthropic", wire.body, wire.path, wire.headers).hosted_tools == hosted


@pytest.mark.parametrize("dialect", DIALECTS)
def test_fields_of_one_dialect_go_nowhere_else(dialect):
    own, _ = sent(dialect, wire=Wire(dialect, {"service": {"tier": "flex"}}))
    assert own["service"] == {"tier": "flex"}
    other, _ = sent(dialect, wire=Wire("elsewhere", {"service": 1}))
    assert "service" not in other


GROUP = {
    "type": "namespace",
    "name": "mcp__notes",
    "description": "Notes.",
    "tools": [
        {"type": "function", "name": "add", "parameters": {"type": "object"}, "strict": False},
        {"type": "function", "name": "drop", "parameters": {"type": "object"}, "strict": False},
    ],
}
CUSTOM = {
    "type": "custom",
    "name": "patch",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: X"},
}


def test_a_namespace_is_its_tools_and_a_namespace_again():
    body = msgspec.json.encode({"model": "m", "input": "q", "tools": [GROUP, CUSTOM]})
    asked = decode_request("openai-responses", body, "/v1/responses")
    assert [tool.name for tool in asked.tools] == ["add", "drop", "patch"]
    assert not asked.hosted_tools
    assert "tools[0]" not in asked.rest
    knows = target("responses", dialect="openai-responses", compat={"namespaces": True})
    request = Request([user("q")], ThinkingPlan("absent"), tools=asked.tools)
    again = msgspec.json.decode(encode_request(request, knows).body)
    assert again["tools"] == [GROUP, CUSTOM]
    plain = target("responses", dialect="openai-responses")
    flat = msgspec.json.decode(encode_request(request, plain).body)
    assert flat["tools"] == [*GROUP["tools"], CUSTOM]


def test_a_grammar_is_told_to_those_who_take_an_object():
    body = msgspec.json.encode({"model": "m", "input": "q", "tools": [CUSTOM]})
    (tool,) = decode_request("openai-responses", body, "/v1/responses").tools
    told = tool.parameters["properties"]["input"]["description"]
    assert told == "The whole text, in this grammar (lark):\nstart: X"


def test_a_whole_number_may_be_written_as_any_other():
    body = msgspec.json.encode({"contents": [], "generationConfig": {"topK": 64.0}})
    asked = decode_request("gemini", body, "/v1beta/models/m:generateContent")
    assert (asked.top_k, type(asked.top_k)) == (64, int)
