"""Words that nobody knows yet, instructions that are no text, choices and changes of tools, and
Google's own schemas: as they are to the vendor whose API has them, translated or told to others."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any

import pytest

from gateway.test_vendor_controls import (
    CALLED,
    CARRIERS,
    CHAT,
    CHATTED,
    CONTENTS,
    DONE,
    MESSAGES,
    NAMES,
    OPUS,
    PNG,
    RESPONSES,
    SCHEMA,
    STREAMS,
    UPSTREAMS,
    answered,
    gateway,
    told,
)
from mull.testing import Reply

ASKED: dict[str, dict[str, Any]] = {
    MESSAGES: OPUS,
    RESPONSES: {"input": "q"},
    CHAT: CHATTED,
    CONTENTS: {"contents": [{"role": "user", "parts": [{"text": "q"}]}]},
}


@pytest.fixture(scope="module")
def answering():
    with gateway(answered, **{NAMES[path]: one for path, one in UPSTREAMS.items()}) as found:
        yield found


def said(answering, path: str, target: str, body: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """What a model of this API is sent, and what the client is told."""
    ask, server = answering
    reply = ask(path, NAMES[target], {**ASKED[path], **body})
    assert reply.status == 200, reply.body
    return server.requests[-1].json, told(reply)


def others(path: str) -> list[str]:
    return [one for one in NAMES if one != path]


ENUM = {"responseMimeType": "text/x.enum", "responseSchema": {"type": "STRING", "enum": ["a"]}}
NEW = [
    (MESSAGES, {"thinking": {"type": "x_new", "depth": 3}}, "thinking.type"),
    (MESSAGES, {"output_config": {"effort": "x_new"}}, "output_config.effort"),
    (RESPONSES, {"reasoning": {"effort": "x_new"}}, "reasoning.effort"),
    (RESPONSES, {"reasoning": {"summary": "x_new"}}, "reasoning.summary"),
    (RESPONSES, {"context_management": [{"type": "x_new"}]}, "context_management[].type"),
    (CHAT, {"thinking": {"type": "x_new"}}, "thinking.type"),
    (CHAT, {"chat_template_kwargs": {"reasoning_effort": "x_new"}}, "reasoning_effort"),
    (CONTENTS, {"generationConfig": {"thinkingConfig": {"thinkingLevel": "X_NEW"}}}, "Level"),
    (CONTENTS, {"generationConfig": ENUM}, "responseMimeType"),
]


def has(held: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return all(has(held.get(key), value) for key, value in wanted.items())
    return bool(held == wanted)


@pytest.mark.parametrize(("path", "new", "name"), NEW)
def test_a_word_that_nobody_knows(answering, path, new, name):
    sent, notes = said(answering, path, path, new)
    assert has(sent, new)
    assert "not sent" not in notes
    for target in others(path):
        sent, notes = said(answering, path, target, new)
        assert name in notes, (target, notes)
        assert "x_new" not in json.dumps(sent).lower()


def test_a_kind_of_thinking_that_nobody_knows_is_all_that_is_said(answering):
    thinking = {"type": "x_new", "depth": 3}
    assert said(answering, MESSAGES, MESSAGES, {"thinking": thinking})[0]["thinking"] == thinking


def test_an_effort_within_the_conversation_that_nobody_knows(answering):
    messages = [*OPUS["messages"], {"role": "system", "content": [], "output_config": {}}]
    messages[-1]["output_config"] = {"effort": "x_new"}
    body = {"messages": messages, "output_config": {"effort": "low"}}
    assert said(answering, MESSAGES, MESSAGES, body)[0]["messages"][-1] == messages[-1]
    sent, notes = said(answering, MESSAGES, RESPONSES, body)
    assert sent["reasoning"]["effort"] == "low"
    assert "unknown effort 'x_new'" in notes


def test_what_shapes_an_answer_or_is_wanted_of_the_vendor_is_told(answering):
    for target in (MESSAGES, CONTENTS, CHAT):
        assert "verbosity" in said(answering, RESPONSES, target, {"text": {"verbosity": "low"}})[1]
    for target in NAMES:
        assert "store" in said(answering, CHAT, target, {"store": True})[1]
        assert "store" not in said(answering, CHAT, target, {"store": False})[1]


@pytest.mark.parametrize("words", [10, 90_000])
def test_a_budget_is_the_same_however_long_the_conversation_is(words):
    """Another budget would also end the prompt cache."""
    thinking = {"type": "enabled", "budget_tokens": 31_999}
    body = {"max_tokens": 32_000, "thinking": thinking}
    body["messages"] = [{"role": "user", "content": "water " * words}]
    with gateway(answered, m="anthropic/claude-sonnet-4-5") as (ask, server):
        reply = ask(MESSAGES, "m", body)
        sent = server.requests[-1].json
    assert (sent["thinking"], sent["max_tokens"]) == (thinking, 32_000)
    assert told(reply) == ""


@pytest.mark.parametrize(
    ("model", "note"),
    [
        ("openai/gpt-4o", "does not reason"),
        ("anthropic/claude-sonnet-4-5", "leave no room"),
        ("vllm/qwen3.6-27b", "leave no room"),
        ("openai/gpt-5", ""),
    ],
)
def test_thinking_that_is_asked_for_and_not_had_is_told(model, note):
    body = {
        "max_tokens": 500,
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "high"},
    }
    with gateway(answered, m=model) as (ask, _):
        reply = ask(MESSAGES, "m", {**OPUS, **body})
    assert reply.status == 200
    assert note in told(reply)
    assert bool(note) == bool(told(reply))


# Instructions that are no text.

PIECE = {"type": "x_new", "a": [1]}
TEXT = [{"type": "text", "text": "Rule."}]
INSTRUCTED: list[tuple[str, dict[str, Any]]] = [
    (MESSAGES, {"system": [PIECE, {"type": "text", "text": "Rule."}]}),
    (MESSAGES, {"system": [{"type": "text", "text": "Rule."}, PIECE]}),
    (MESSAGES, {"messages": [*OPUS["messages"], {"role": "system", "content": [PIECE]}]}),
    (CHAT, {"messages": [{"role": "system", "content": [PIECE]}, *CHATTED["messages"]]}),
    (
        CHAT,
        {
            "messages": [
                {"role": "developer", "content": [{"type": "text", "text": "Rule."}, PIECE]},
                *CHATTED["messages"],
            ]
        },
    ),
    (
        RESPONSES,
        {
            "input": [
                {"role": "developer", "content": [{"type": "input_text", "text": "Rule."}, PIECE]},
                {"role": "user", "content": "q"},
            ]
        },
    ),
    (CONTENTS, {"systemInstruction": {"parts": [{"text": "Rule."}, {"xNew": PIECE}]}}),
]


@pytest.mark.parametrize(("path", "body"), INSTRUCTED)
def test_instructions_that_are_no_text(answering, path, body):
    for target in NAMES:
        sent, notes = said(answering, path, target, body)
        written = json.dumps(sent)
        assert ("Rule." in json.dumps(body)) == ("Rule." in written)
        assert (json.dumps(PIECE) in written) == (target == path)
        assert ("left out" in notes) == (target != path)
        assert not [one for one in sent.get("messages", ()) if one["content"] in ("", [])]
        assert '"text": ""' not in written


@pytest.mark.parametrize("target", others(MESSAGES))
def test_what_was_left_out_of_an_earlier_turn_is_told_again(answering, target):
    first = [{"role": "user", "content": [PIECE, *TEXT]}, {"role": "assistant", "content": "a"}]
    later = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    body = {"system": [*TEXT, PIECE], "messages": [*first, *later, *later, *OPUS["messages"]]}
    assert "2 pieces of a kind" in said(answering, MESSAGES, target, body)[1]


@pytest.mark.parametrize(
    "output",
    [[PIECE], [{"type": "x_new", "text": "r"}], [{"type": "input_text", "text": "r"}, PIECE]],
)
def test_a_result_of_a_kind_that_nobody_knows(answering, output):
    call = {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "call_1", "output": output}
    body = {"input": [{"role": "user", "content": "q"}, call, result]}
    assert said(answering, RESPONSES, RESPONSES, body)[0]["input"][-1] == result
    for target in others(RESPONSES):
        sent, notes = said(answering, RESPONSES, target, body)
        assert "x_new" in json.dumps(sent)
        assert "input[].output[]" in notes


@pytest.mark.parametrize("target", others(RESPONSES))
def test_a_tool_of_a_namespace_that_nobody_knows(answering, target):
    tool = {"type": "x_new", "name": "look", "parameters": SCHEMA, "strict": False}
    body = {"tools": [{"type": "namespace", "name": "notes", "description": "", "tools": [tool]}]}
    assert said(answering, RESPONSES, RESPONSES, body)[0]["tools"] == body["tools"]
    assert "tools[].tools[].type" in said(answering, RESPONSES, target, body)[1]


def test_what_a_server_would_not_know_is_not_marked_for_the_cache(answering):
    body = {"system": [{"type": "text", "text": "Rule."}, PIECE]}
    sent, _ = said(answering, MESSAGES, MESSAGES, body)
    assert sent["system"] == [
        {"type": "text", "text": "Rule.", "cache_control": {"type": "ephemeral"}},
        PIECE,
    ]


# Tools that come and go, and the choice among them.


def tool_names(sent: dict[str, Any]) -> list[str]:
    tools = [one.get("function", one) for one in sent.get("tools", ())]
    tools = [part for one in tools for part in one.get("functionDeclarations", [one])]
    return [one["name"] for one in tools]


def changed(kind: str, **tool: Any) -> dict[str, Any]:
    return {"type": f"tool_{kind}", "tool": tool}


def test_tools_that_claude_code_adds_and_removes(answering):
    new = {"name": "new", "input_schema": SCHEMA}
    changes = [
        changed("addition", type="tool_definition", definition=new),
        changed("removal", type="tool_reference", name="old"),
        changed("removal", type="tool_reference", name="back"),
        changed("addition", type="tool_reference", name="back"),
    ]
    within = {"role": "system", "content": changes, "clear_at": "never"}
    tools = [{"name": name, "input_schema": SCHEMA} for name in ("stays", "old", "back")]
    body = {"tools": tools, "messages": [*OPUS["messages"], within]}
    sent, notes = said(answering, MESSAGES, MESSAGES, body)
    assert sent["messages"][-1] == within
    assert tool_names(sent) == ["stays", "old", "back"]
    assert notes == ""
    for target in others(MESSAGES):
        sent, notes = said(answering, MESSAGES, target, body)
        assert tool_names(sent) == ["stays", "back", "new"]
        assert "clear_at" in notes


def test_a_compatible_server_gets_changes_of_tools_beside_the_messages():
    new = {"name": "new", "input_schema": SCHEMA}
    within = {"role": "system", "content": [changed("addition", definition=new)]}
    body = {**OPUS, "messages": [*OPUS["messages"], within]}
    model = "kimi-for-coding/k2p7"
    with gateway([Reply.events(*STREAMS[MESSAGES])], m=model) as (ask, server):
        reply = ask(MESSAGES, "m", body)
        sent = server.requests[-1].json
    assert tool_names(sent) == ["new"]
    assert "tool_addition" not in json.dumps(sent)
    assert "1 block not sent" in told(reply)


def test_tools_that_are_added_to_the_input(answering):
    new = {"type": "function", "name": "new", "parameters": SCHEMA}
    added = {"type": "additional_tools", "role": "developer", "tools": [new, {"type": "mcp"}]}
    body = {"input": [{"role": "user", "content": "q"}, added]}
    sent, notes = said(answering, RESPONSES, RESPONSES, body)
    assert sent["input"][-1] == added
    assert "tools" not in sent
    assert notes == ""
    for target in others(RESPONSES):
        assert tool_names(said(answering, RESPONSES, target, body)[0]) == ["new"]


def function(name: str, key: str) -> dict[str, Any]:
    return {"name": name, key: SCHEMA}


NESTED = [{"type": "function", "function": function(name, "parameters")} for name in "abc"]
FLAT = [{"type": "function", **function(name, "parameters")} for name in "abc"]
DECLARED = [{"functionDeclarations": [function(name, "parametersJsonSchema") for name in "abc"]}]
AB = [{"type": "function", "name": name} for name in "ab"]
AMONG = {"mode": "auto", "tools": [{"type": "function", "function": {"name": n}} for n in "ab"]}
CALLING = "functionCallingConfig"
CHOICES = [
    (RESPONSES, FLAT, "tool_choice", {"type": "allowed_tools", "mode": "auto", "tools": AB}),
    (CONTENTS, DECLARED, "toolConfig", {CALLING: {"allowedFunctionNames": ["a", "b"]}}),
    (
        CONTENTS,
        DECLARED,
        "toolConfig",
        {CALLING: {"mode": "VALIDATED", "allowedFunctionNames": ["a", "b"]}},
    ),
    (CHAT, NESTED, "tool_choice", {"type": "allowed_tools", "allowed_tools": AMONG}),
]


@pytest.mark.parametrize(("path", "tools", "key", "choice"), CHOICES)
def test_a_choice_among_some_tools(answering, path, tools, key, choice):
    for target in NAMES:
        sent, _ = said(answering, path, target, {"tools": tools, key: choice})
        if path == target and path != CHAT:  # Kimi is not OpenAI
            assert tool_names(sent) == ["a", "b", "c"]
            assert sent[key] == choice
        else:
            assert tool_names(sent) == ["a", "b"]
            assert "allowed" not in json.dumps(sent)


# Google's schemas.

OPEN = {
    "type": "OBJECT",
    "property_ordering": ["b", "a"],
    "required": ["a"],
    "properties": {
        "a": {"type": "STRING", "nullable": True, "enum": ["x"], "maxLength": "5"},
        "b": {"any_of": [{"type": "ARRAY", "items": {"type": "INTEGER"}, "min_items": 1}]},
        "type": {"type": "NUMBER", "nullable": False},
        "c": {"anyOf": [{"type": "BOOLEAN"}], "nullable": True},
    },
}
CLOSED = {
    "type": "object",
    "required": ["a"],
    "properties": {
        "a": {"type": ["string", "null"], "enum": ["x", None], "maxLength": 5},
        "b": {"anyOf": [{"type": "array", "items": {"type": "integer"}, "minItems": 1}]},
        "type": {"type": "number"},
        "c": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
    },
}


def test_a_tool_in_googles_own_form(answering):
    tools = [{"functionDeclarations": [{"name": "f", "description": "F.", "parameters": OPEN}]}]
    assert said(answering, CONTENTS, CONTENTS, {"tools": tools})[0]["tools"] == tools
    for target in others(CONTENTS):
        sent, notes = said(answering, CONTENTS, target, {"tools": tools})
        (tool,) = sent["tools"]
        tool = tool.get("function", tool)
        assert tool.get("parameters", tool.get("input_schema")) == CLOSED
        assert notes == ""


def test_json_schema_is_sent_as_such_wherever_its_client_put_it(answering):
    declared = {"name": "f", "description": "F.", "parameters": SCHEMA}
    sent, _ = said(answering, CONTENTS, CONTENTS, {"tools": [{"functionDeclarations": [declared]}]})
    assert sent["tools"][0]["functionDeclarations"] == [
        {"name": "f", "description": "F.", "parametersJsonSchema": SCHEMA}
    ]


def test_an_answer_in_googles_own_form(answering):
    form = {"responseMimeType": "application/json", "responseSchema": OPEN}
    sent, _ = said(answering, CONTENTS, CONTENTS, {"generationConfig": form})
    assert {**sent["generationConfig"], **form} == sent["generationConfig"]
    assert "responseJsonSchema" not in sent["generationConfig"]
    sent, notes = said(answering, CONTENTS, RESPONSES, {"generationConfig": form})
    schema = sent["text"]["format"]["schema"]
    assert schema["type"] == "object"
    assert schema["properties"]["a"]["type"] == ["string", "null"]
    assert notes == ""


# Clients that say that they want no thinking in the answer.

HIDING = [
    (CHAT, {"include_reasoning": False}),
    (CHAT, {"reasoning": {"exclude": True}}),
    (CONTENTS, {"generationConfig": {"thinkingConfig": {"includeThoughts": False}}}),
]


@pytest.mark.parametrize("target", [*NAMES])
@pytest.mark.parametrize(("path", "hiding"), HIDING)
def test_thinking_that_a_client_declines_is_kept_for_it(path, hiding, target):
    replies = [Reply.events(*CALLED[target]), Reply.events(*STREAMS.get(target, [DONE[CONTENTS]]))]
    declared = {
        CHAT: [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}],
        CONTENTS: [{"functionDeclarations": [{"name": "look", "parametersJsonSchema": SCHEMA}]}],
    }[path]
    body = {**ASKED[path], **hiding, "tools": declared}
    with gateway(replies, m=UPSTREAMS[target]) as (ask, server):
        reply = json.loads(ask(path, "m", body).body)
        if path == CHAT:
            answer = reply["choices"][0]["message"]
            assert not [key for key in answer if "reasoning" in key]
            result = {"role": "tool", "tool_call_id": answer["tool_calls"][0]["id"], "content": "r"}
            more = {**body, "messages": [*body["messages"], answer, result]}
        else:
            answer = reply["candidates"][0]["content"]
            assert not [part for part in answer["parts"] if part.get("thought")]
            part = {"functionResponse": {"name": "look", "response": {"output": "r"}}}
            more = {**body, "contents": [*body["contents"], answer, {"parts": [part]}]}
        assert "Hm." not in json.dumps(reply)
        assert ask(path, "m", more).status == 200
        assert CARRIERS[target] in server.requests[-1].body.decode()


# A conversation that began elsewhere.


def test_items_of_hosted_tools_go_to_the_provider_that_ran_them(answering):
    items = [
        {"role": "user", "content": "q"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}},
        {"type": "local_shell_call", "id": "lsh_1", "call_id": "c", "action": {"type": "exec"}},
        {"type": "local_shell_call_output", "call_id": "c", "output": "x"},
        {"type": "mcp_approval_response", "approval_request_id": "a", "approve": True},
        {"role": "user", "content": "r"},
    ]
    sent, notes = said(answering, RESPONSES, RESPONSES, {"input": items})
    assert sent["input"][1:5] == items[1:5]
    assert "hosted" not in notes


def test_google_has_two_spellings(answering):
    body = {
        "system_instruction": {"parts": [{"text": "Rule."}]},
        "generation_config": {
            "max_output_tokens": 77,
            "thinking_config": {"thinking_level": "low"},
            "response_mime_type": "application/json",
            "response_schema": {"type": "OBJECT", "properties": {"mime_type": {"type": "STRING"}}},
        },
        "tool_config": {"function_calling_config": {"mode": "NONE"}},
        "tools": [{"function_declarations": [{"name": "f", "parameters": SCHEMA}]}],
        "contents": [
            {"parts": [{"inline_data": {"mime_type": "image/png", "data": PNG}}, {"text": "q"}]},
            {"role": "model", "parts": [{"function_call": {"name": "f", "args": {"top_p": 1}}}]},
            {"parts": [{"function_response": {"name": "f", "response": {"output": "r"}}}]},
        ],
    }
    sent, notes = said(answering, CONTENTS, CHAT, body)
    assert sent["messages"][0] == {"role": "system", "content": "Rule."}
    assert sent["messages"][1]["content"][0]["image_url"]["url"].endswith(PNG)
    assert sent["messages"][2]["tool_calls"][0]["function"]["arguments"] == '{"top_p":1}'
    assert (sent["max_tokens"], sent["tool_choice"]) == (77, "none")
    assert list(sent["response_format"]["json_schema"]["schema"]["properties"]) == ["mime_type"]
    assert "not sent" not in notes
    sent, _ = said(answering, CONTENTS, CONTENTS, body)
    assert sent["generationConfig"]["maxOutputTokens"] == 77
    assert not [key for key in sent if "_" in key]


THOUGHT = {"type": "thinking", "thinking": "", "signature": "U2ln"}
REASONING = {"type": "reasoning", "summary": [], "encrypted_content": "U2ln"}
SPOKEN = {"type": "text", "text": "ok"}
SIGNED = [
    (MESSAGES, "messages", [{"role": "assistant", "content": [THOUGHT, SPOKEN]}]),
    (RESPONSES, "input", [REASONING, {"role": "assistant", "content": "ok"}]),
    (CHAT, "messages", [{"role": "assistant", "content": "ok", "reasoning_content": "U2ln"}]),
    (
        CONTENTS,
        "contents",
        [{"role": "model", "parts": [{"text": "", "thoughtSignature": "U2ln"}]}],
    ),
]


@pytest.mark.parametrize(("path", "key", "answer"), SIGNED)
def test_what_is_sent_as_it_came_is_no_news(path, key, answer):
    """An answer of a conversation that began without the gateway."""
    question = {"role": "user", "content": "q"}
    if path == CONTENTS:
        question = {"role": "user", "parts": [{"text": "q"}]}
    with gateway(answered, m=UPSTREAMS[path]) as (ask, server):
        reply = ask(path, "m", {**ASKED[path], key: [question, *answer, question]})
        assert "U2ln" in server.requests[-1].body.decode()
        assert "reattached" not in told(reply)


def test_features_may_be_named_in_several_lines(answering):
    ask, server = answering
    head = [("content-type", "application/json"), ("anthropic-version", "2023-06-01")]
    head += [("anthropic-beta", "one-1"), ("Anthropic-Beta", "two-2, three-3")]
    connection = HTTPConnection(ask.address, timeout=30)
    connection.putrequest("POST", MESSAGES)
    data = json.dumps({"model": NAMES[MESSAGES], **OPUS}).encode()
    for name, value in (*head, ("content-length", str(len(data)))):
        connection.putheader(name, value)
    connection.endheaders(data)
    assert connection.getresponse().status == 200
    connection.close()
    sent = server.requests[-1].headers["anthropic-beta"].split(",")
    assert {"one-1", "two-2", "three-3"} <= set(sent)


# What a vendor says about an answer as a whole.

USED = {"input_tokens": 9, "output_tokens": 4, "server_tool_use": {"web_search_requests": 1}}
SAID: dict[str, tuple[Any, dict[str, Any]]] = {
    MESSAGES: (
        [
            {
                "type": "message_start",
                "message": {**DONE[MESSAGES], "content": [], "usage": USED, "x_new": {"a": 1}},
            },
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "text", "text": "ok"},
            },
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {
                    "stop_reason": "stop_sequence",
                    "stop_sequence": "END",
                    "container": {"id": "c"},
                },
                "usage": {"output_tokens": 5},
                "context_management": {"applied_edits": []},
            },
            {"type": "message_stop"},
        ],
        {
            "x_new": {"a": 1},
            "stop_sequence": "END",
            "container": {"id": "c"},
            "context_management": {"applied_edits": []},
            "usage": {**USED, "output_tokens": 5},
        },
    ),
    RESPONSES: (
        [
            {"type": "response.created", "response": {"id": "resp_1"}},
            {
                "type": "response.completed",
                "response": {
                    **DONE[RESPONSES],
                    "service_tier": "flex",
                    "x_new": {"a": 1},
                    "usage": {"input_tokens": 9, "output_tokens": 4, "x_new": 1},
                },
            },
        ],
        {"service_tier": "flex", "x_new": {"a": 1}, "usage": {"x_new": 1, "input_tokens": 9}},
    ),
    CONTENTS: (
        [
            {
                "candidates": [
                    {"content": {"parts": [{"text": "o"}]}, "groundingMetadata": {"queries": ["q"]}}
                ],
                "usageMetadata": {"promptTokenCount": 9},
            },
            {
                "candidates": [
                    {"content": {"parts": [{"text": "k"}]}, "finishReason": "STOP", "xNew": 1}
                ],
                "usageMetadata": {"promptTokenCount": 9, "toolUsePromptTokenCount": 2},
                "modelStatus": {"stage": "x"},
            },
        ],
        {
            "modelStatus": {"stage": "x"},
            "usageMetadata": {"promptTokenCount": 9, "toolUsePromptTokenCount": 2},
        },
    ),
}
LAST = {MESSAGES: "message_delta", RESPONSES: "response.completed", CONTENTS: ""}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", SAID)
def test_what_a_vendor_says_about_an_answer_reaches_its_own_client(path, stream):
    events, wanted = SAID[path]
    asking = {**ASKED[path], "stream": stream} if path != CONTENTS else ASKED[path]
    at = path if path != CONTENTS or not stream else path.replace("generate", "streamGenerate")
    with gateway([Reply.events(*events)], m=UPSTREAMS[path]) as (ask, _):
        at = f"{at}?alt=sse" if at != path else at
        reply = ask(at, "m", asking).body.decode()
    said = json.loads(reply) if not stream else last_event(reply, LAST[path])
    if path == CONTENTS:
        assert has(said["candidates"][0], {"groundingMetadata": {"queries": ["q"]}, "xNew": 1})
    assert has(said, wanted), said


def last_event(stream: str, kind: str) -> dict[str, Any]:
    """The last event of a kind, with what is nested in it."""
    lines = [line.removeprefix("data: ") for line in stream.splitlines() if "data: {" in line]
    found = [one for line in lines if (one := json.loads(line)).get("type", "") == kind][-1]
    return {**found, **found.get("delta", {}), **found.get("response", {})}


def test_what_a_vendor_says_about_an_answer_means_nothing_to_others():
    with gateway([Reply.events(*SAID[MESSAGES][0])], m=UPSTREAMS[MESSAGES]) as (ask, _):
        reply = json.loads(ask(CHAT, "m", CHATTED).body)
    assert not {"x_new", "container", "context_management"} & reply.keys()
    assert "server_tool_use" not in reply["usage"]
