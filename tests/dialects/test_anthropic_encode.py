"""Requests in the shape of the Messages API: carriers byte for byte, order kept, prefix stable."""

from __future__ import annotations

import json

import pytest

from anthropic_wire import HERE, claude
from mull.dialects.registry import encode_request
from mull.neutral.blocks import (
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from mull.neutral.messages import Message, assistant, user
from mull.neutral.request import NamedTool, Request, Tool
from mull.neutral.thinking import ThinkingPlan

ON = ThinkingPlan("on", "anthropic-budget", budget=4096)
OFF = ThinkingPlan("off", "anthropic-budget", thinks=False)
ABSENT = ThinkingPlan("absent", thinks=False)
LEFT = ThinkingPlan("absent")
TIDE = Tool("tide", "High water.", {"properties": {"port": {"type": "string"}}})
CACHING = {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75}


def request(*messages, thinking=ON, **more):
    return Request(messages=messages, thinking=thinking, **more)


def encode(asked, where=HERE):
    return encode_request(asked, where)


def body(*messages, where=HERE, **more):
    return json.loads(encode(request(*messages, **more), where).body)


def contents(*messages, **more):
    return [(m["role"], m["content"]) for m in body(*messages, **more)["messages"]]


def said(*messages, **more):
    return [note.text for note in encode(request(*messages, **more)).notes]


def tool(*results):
    return Message(role="tool", blocks=results)


def thought(text="t", signature="s", **more):
    return ThinkingBlock(text, "thinking", signature=signature, **more)


def text(words):
    return {"type": "text", "text": words}


def test_the_whole_request():
    wire = encode(
        request(
            user("When is high water?"),
            system="You know tides.",
            tools=(TIDE,),
            tool_choice="auto",
            max_tokens=9000,
        )
    )
    assert (wire.method, wire.path, wire.notes) == ("POST", "/messages", ())
    assert wire.headers == {
        "content-type": "application/json",
        "accept": "text/event-stream",
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "interleaved-thinking-2025-05-14",
    }
    assert json.loads(wire.body) == {
        "model": "thinker",
        "max_tokens": 9000,
        "system": [text("You know tides.")],
        "tools": [
            {
                "name": "tide",
                "description": "High water.",
                "input_schema": {"type": "object", "properties": {"port": {"type": "string"}}},
            }
        ],
        "tool_choice": {"type": "auto"},
        "messages": [{"role": "user", "content": [text("When is high water?")]}],
        "stream": True,
        "thinking": {"type": "enabled", "budget_tokens": 4096},
    }


def test_only_a_budget_with_tools_names_the_interleaved_beta():
    adaptive = ThinkingPlan("on", "anthropic-adaptive", effort="high")
    for plan, tools in ((ON, ()), (adaptive, (TIDE,)), (OFF, (TIDE,)), (ABSENT, (TIDE,))):
        assert "anthropic-beta" not in encode(request(thinking=plan, tools=tools)).headers


def test_without_a_stream():
    wire = encode(request(user("x"), stream=False))
    assert wire.headers["accept"] == "application/json"
    assert "stream" not in json.loads(wire.body)


@pytest.mark.parametrize(
    ("plan", "fragment"),
    [
        (ON, {"thinking": {"type": "enabled", "budget_tokens": 4096}}),
        (OFF, {"thinking": {"type": "disabled"}}),
        (ABSENT, {}),
        (
            ThinkingPlan("default", "anthropic-adaptive"),
            {"thinking": {"type": "adaptive", "display": "summarized"}},
        ),
        (
            ThinkingPlan("on", "anthropic-adaptive", effort="xhigh"),
            {
                "thinking": {"type": "adaptive", "display": "summarized"},
                "output_config": {"effort": "xhigh"},
            },
        ),
        (
            ThinkingPlan("off", "anthropic-adaptive", off_type="between_tools"),
            {"thinking": {"type": "between_tools"}},
        ),
    ],
)
def test_the_forms_of_thinking(plan, fragment):
    found = body(user("x"), thinking=plan)
    assert {k: v for k, v in found.items() if k in ("thinking", "output_config")} == fragment


def test_max_tokens_is_always_there_and_above_the_budget():
    assert body(thinking=ABSENT)["max_tokens"] == 8192
    assert body(thinking=ON)["max_tokens"] == 4096 + 8192


def test_asking_to_keep_thoughts_and_what_else_the_endpoint_wants():
    edits = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    where = claude(
        compat={
            "keep_thinking": {"context_management": edits},
            "extra_body": {"metadata": {"user_id": "u"}, "thinking": {"display": "omitted"}},
            "path": "/v2/messages",
        }
    )
    wire = encode(request(user("x"), keep_thinking=True), where)
    found = json.loads(wire.body)
    assert wire.path == "/v2/messages"
    assert found["context_management"] == edits
    assert found["metadata"] == {"user_id": "u"}
    assert found["thinking"] == {"type": "enabled", "budget_tokens": 4096, "display": "omitted"}
    assert wire.headers["anthropic-beta"] == "context-management-2025-06-27"
    left = request(keep_thinking=True, thinking=LEFT)
    assert json.loads(encode(left, where).body)["context_management"] == edits
    silent = [request(keep_thinking=True, thinking=plan) for plan in (OFF, ABSENT)]
    for asked in (*silent, request()):
        assert "context_management" not in json.loads(encode(asked, where).body)


@pytest.mark.parametrize(
    ("choice", "wire"),
    [
        ("auto", {"type": "auto"}),
        ("none", {"type": "none"}),
        ("required", {"type": "any"}),
        (NamedTool("tide"), {"type": "tool", "name": "tide"}),
    ],
)
def test_tool_choice(choice, wire):
    assert body(tools=(TIDE,), tool_choice=choice)["tool_choice"] == wire


def test_a_tool_choice_without_tools_is_told():
    assert "tool_choice" not in body(user("x"), tool_choice="auto")
    assert said(user("x"), tool_choice="auto") == ["tool choice not sent: the request has no tools"]


def test_temperature_passes_as_it_was_decided():
    assert body(user("x"), temperature=0.5)["temperature"] == 0.5
    assert "temperature" not in body(user("x"))


def test_cache_markers_stand_where_the_next_request_repeats():
    where = claude(cost=CACHING)
    mark = {"type": "ephemeral"}
    call = assistant(thought(), ToolCallBlock("a", "tide"))
    found = body(
        user("q"),
        call,
        tool(ToolResultBlock("a", "4")),
        system="s",
        tools=(TIDE, Tool("other")),
        where=where,
    )
    assert found["system"][-1]["cache_control"] == mark
    assert [tool.get("cache_control") for tool in found["tools"]] == [None, mark]
    marked = [b for m in found["messages"] for b in m["content"] if "cache_control" in b]
    assert marked == [found["messages"][-1]["content"][-1]]
    assert "cache_control" not in str(body(user("q"), call, system="s", tools=(TIDE,)))
    assert "cache_control" not in str(body(where=where, thinking=ABSENT))
