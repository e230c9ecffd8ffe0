"""What a client says to its own provider arrives there as it was said, known to mull or not;
another provider gets what it can understand of it, and the client is told the rest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from effort import tried
from gateway.conftest import serving
from mull.store.serve import ServedModel
from mull.testing import Reply, ScriptedServer

CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
CONTENTS = "/v1beta/models/{}:generateContent"
UPSTREAMS = {
    CHAT: "moonshotai/kimi-k2.5",
    MESSAGES: "anthropic/claude-opus-5-5",
    RESPONSES: "openai/gpt-5",
    CONTENTS: "google/gemini-3-pro-preview",
}
NAMES = {CHAT: "chat", MESSAGES: "messages", RESPONSES: "responses", CONTENTS: "contents"}
PNG = "iVBORw0KGgo="


SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
REQUESTS: dict[str, dict[str, Any]] = {
    MESSAGES: {
        "max_tokens": 2000,
        "system": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}],
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "high"},
        "metadata": {"user_id": "u"},
        "tools": [{"name": "look", "description": "Looks.", "input_schema": SCHEMA}],
        "tool_choice": {"type": "auto"},
        "messages": [
            {"role": "user", "content": "Hello."},
            {"role": "system", "content": [], "output_config": {"effort": "high"}},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": PNG},
                    },
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Let me look."},
                    {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"a": "b"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_1",
                        "content": [{"type": "text", "text": "a dot"}],
                    },
                    {"type": "text", "text": "Well?"},
                ],
            },
        ],
    },
    RESPONSES: {
        "instructions": "Be brief.",
        "reasoning": {"effort": "high", "summary": "auto"},
        "text": {"verbosity": "low"},
        "tools": [
            {"type": "function", "name": "look", "description": "Looks.", "parameters": SCHEMA},
            {
                "type": "namespace",
                "name": "notes",
                "description": "Notes.",
                "tools": [{"type": "function", "name": "add", "parameters": SCHEMA}],
            },
            {"type": "custom", "name": "patch", "description": "Patches."},
        ],
        "input": [
            {"type": "message", "role": "developer", "content": "Be kind."},
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "What is this?"},
                    {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
                ],
            },
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Let me look."}],
            },
            {
                "type": "function_call",
                "call_id": "call_1",
                "name": "look",
                "arguments": '{"a":"b"}',
            },
            {
                "type": "function_call_output",
                "call_id": "call_1",
                "output": [{"type": "input_text", "text": "a dot"}],
            },
            {"type": "message", "role": "user", "content": "Well?"},
        ],
    },
    CHAT: {
        "tools": [
            {
                "type": "function",
                "function": {"name": "look", "description": "Looks.", "parameters": SCHEMA},
            }
        ],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "system", "content": [{"type": "text", "text": "Be kind."}]},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
                ],
            },
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "Let me look."}],
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "look", "arguments": '{"a":"b"}'},
                    }
                ],
            },
            {
                "role": "tool",
                "tool_call_id": "call_1",
                "content": [{"type": "text", "text": "a dot"}],
            },
            {"role": "user", "content": "Well?"},
        ],
    },
    CONTENTS: {
        "systemInstruction": {"parts": [{"text": "Be brief."}, {"text": "Be kind."}]},
        "generationConfig": {"thinkingConfig": {"thinkingLevel": "HIGH"}, "maxOutputTokens": 999},
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "look", "description": "Looks.", "parametersJsonSchema": SCHEMA}
                ]
            }
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"text": "What is this?"},
                    {"inlineData": {"mimeType": "image/png", "data": PNG}},
                ],
            },
            {
                "role": "model",
                "parts": [
                    {"text": "Let me look."},
                    {"functionCall": {"name": "look", "args": {"a": "b"}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "look", "response": {"output": "a dot"}}},
                    {"text": "Well?"},
                ],
            },
        ],
    },
}
CONTENT = ("input", "args", "input_schema", "parameters", "parametersJsonSchema", "response")
"""What these hold is not the provider's but the tools'."""
VALUE = {"z": 1.0, "a": [1, {"y": None, "b": False}], "": "ü", "n": 10**20}
"""Neither the order of its keys nor the kind of its numbers may change."""


def objects(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The places of all objects in a request."""
    if isinstance(value, dict):
        yield path
        for key, inner in value.items():
            if not (key in CONTENT and isinstance(inner, dict)):
                yield from objects(inner, (*path, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from objects(inner, (*path, at))


def with_keys(body: Any, keys: dict[tuple[str | int, ...], str]) -> Any:
    made = json.loads(json.dumps(body))
    for path, name in keys.items():
        held = made
        for step in path:
            held = held[step]
        held[name] = VALUE
    return made


PLACES = {path: list(objects(body)) for path, body in REQUESTS.items()}
ALL = [(path, place) for path, places in PLACES.items() for place in places]


def told(reply: Any) -> str:
    return reply.getheader("x-mull-notes") or ""


DONE = {
    MESSAGES: {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "ok"}],
        "stop_reason": "end_turn",
    },
    RESPONSES: {
        "id": "resp_1",
        "status": "completed",
        "output": [
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "ok"}],
            }
        ],
    },
    CHAT: {"id": "c", "choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]},
    CONTENTS: {"candidates": [{"content": {"parts": [{"text": "ok"}]}, "finishReason": "STOP"}]},
}


def answered(request: Any) -> Reply:
    """An answer in the dialect of the request."""
    place = next(one for one in (MESSAGES, RESPONSES, CHAT, CONTENTS) if kind_of(request) == one)
    return Reply.events(*STREAMS[place]) if place != CONTENTS else Reply.events(DONE[place])


def kind_of(request: Any) -> str:
    for path, ending in (
        (MESSAGES, "/messages"),
        (RESPONSES, "/responses"),
        (CHAT, "/completions"),
    ):
        if request.path.partition("?")[0].endswith(ending):
            return path
    return CONTENTS


STREAMS: dict[str, list[Any]] = {
    MESSAGES: [
        {"type": "message_start", "message": {**DONE[MESSAGES], "content": []}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "text", "text": "ok"},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}},
        {"type": "message_stop"},
    ],
    RESPONSES: [
        {"type": "response.created", "response": {"id": "resp_1"}},
        {"type": "response.completed", "response": DONE[RESPONSES]},
    ],
    CHAT: [
        {"id": "c", "choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": "stop"}]},
        "[DONE]",
    ],
}


@contextmanager
def gateway(replies: Any, **models: str) -> Iterator[tuple[Any, ScriptedServer]]:
    """A function that asks a served gateway, and the upstream behind all of its models."""
    with ScriptedServer(replies) as server:
        served = {name: ServedModel(one, base_url=server.url) for name, one in models.items()}
        with serving(served) as url:
            yield asking(url), server


@pytest.fixture(scope="module")
def answering() -> Iterator[tuple[Any, ScriptedServer]]:
    with gateway(answered, **{NAMES[path]: one for path, one in UPSTREAMS.items()}) as found:
        yield found


def asking(url: str) -> Any:
    def ask(path: str, name: str, body: dict[str, Any], **headers: str) -> Any:
        connection = HTTPConnection(url.removeprefix("http://"), timeout=30)
        sent = {"content-type": "application/json", **headers}
        if path == MESSAGES:
            sent["anthropic-version"] = "2023-06-01"
        body = body if path == CONTENTS else {"model": name, **body}
        connection.request("POST", path.format(name), json.dumps(body), sent)
        reply = connection.getresponse()
        reply.body = reply.read()  # type: ignore[attr-defined]
        connection.close()
        return reply

    ask.address = url.removeprefix("http://")  # type: ignore[attr-defined]
    return ask


@given(
    st.lists(st.sampled_from(ALL), min_size=1, max_size=6, unique=True), st.sampled_from([*NAMES])
)
@tried(0.6)
def test_keys_that_nobody_knows(answering, places, target):
    ask, server = answering
    for path in REQUESTS:
        keys = {place: f"x_new_{at}" for at, (of, place) in enumerate(places) if of == path}
        if not keys:
            continue
        reply = ask(path, NAMES[target], with_keys(REQUESTS[path], keys))
        assert reply.status == 200, reply.body
        sent = server.requests[-1].body.decode()
        value = json.dumps(VALUE, separators=(",", ":"), ensure_ascii=False)
        for place, name in keys.items():
            if path == target:
                assert f'"{name}":{value}' in sent, (place, sent)
                assert name not in told(reply), place
            else:
                assert name in told(reply), (place, told(reply))


@pytest.mark.parametrize("path", REQUESTS)
def test_all_of_them_at_once(answering, path):
    ask, server = answering
    keys = {place: f"x_new_{at}_" for at, place in enumerate(PLACES[path])}
    reply = ask(path, NAMES[path], with_keys(REQUESTS[path], keys))
    assert reply.status == 200, reply.body
    sent = server.requests[-1].body.decode()
    assert [place for place, name in keys.items() if name not in sent] == []
    assert "x_new" not in told(reply)


# What a client adds to an answer that mull stored.

CALLED = {
    MESSAGES: [
        {"type": "message_start", "message": {**DONE[MESSAGES], "content": []}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": "Hm."},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "signature_delta", "signature": "U2lnbmVk"},
        },
        {"type": "content_block_stop", "index": 0},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "text", "text": "I look."},
        },
        {"type": "content_block_stop", "index": 1},
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "tool_use", "id": "toolu_9", "name": "look", "input": {}},
        },
        {"type": "content_block_stop", "index": 2},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}},
        {"type": "message_stop"},
    ],
    RESPONSES: [
        {"type": "response.created", "response": {"id": "resp_1"}},
        {
            "type": "response.completed",
            "response": {
                "id": "resp_1",
                "status": "completed",
                "output": [
                    {
                        "type": "reasoning",
                        "id": "rs_1",
                        "summary": [{"type": "summary_text", "text": "Hm."}],
                        "encrypted_content": "gAAA",
                    },
                    {
                        "type": "message",
                        "id": "msg_1",
                        "role": "assistant",
                        "status": "completed",
                        "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
                    },
                    {
                        "type": "function_call",
                        "id": "fc_1",
                        "call_id": "call_9",
                        "name": "look",
                        "arguments": "{}",
                        "status": "completed",
                    },
                ],
            },
        },
    ],
    CHAT: [
        {"id": "c", "choices": [{"index": 0, "delta": {"reasoning_content": "Hm."}}]},
        {"id": "c", "choices": [{"index": 0, "delta": {"content": "I look."}}]},
        {
            "id": "c",
            "choices": [
                {
                    "index": 0,
                    "delta": {
                        "tool_calls": [
                            {
                                "index": 0,
                                "id": "call_9",
                                "type": "function",
                                "function": {"name": "look", "arguments": "{}"},
                            }
                        ]
                    },
                    "finish_reason": "tool_calls",
                }
            ],
        },
        "[DONE]",
    ],
    CONTENTS: [
        {
            "candidates": [
                {
                    "content": {
                        "role": "model",
                        "parts": [
                            {"text": "Hm.", "thought": True},
                            {"text": "I look."},
                            {
                                "functionCall": {"name": "look", "args": {}},
                                "thoughtSignature": "U2ln",
                            },
                        ],
                    },
                    "finishReason": "STOP",
                }
            ]
        }
    ],
}
CARRIERS = {MESSAGES: "U2lnbmVk", RESPONSES: "gAAA", CHAT: '"Hm."', CONTENTS: "U2ln"}


def sent_back(path: str, answer: dict[str, Any]) -> tuple[str, list[Any], list[Any]]:
    """Where the conversation is, an answer as a client repeats it, and the result of its call."""
    if path == MESSAGES:
        result = {"type": "tool_result", "tool_use_id": "toolu_9", "content": "a dot"}
        said = {"role": "assistant", "content": answer["content"]}
        return "messages", [said], [{"role": "user", "content": [result]}]
    if path == RESPONSES:
        result = {"type": "function_call_output", "call_id": "call_9", "output": "a dot"}
        return "input", answer["output"], [result]
    if path == CHAT:
        call = answer["choices"][0]["message"]
        return "messages", [call], [{"role": "tool", "tool_call_id": "call_9", "content": "a dot"}]
    result = {"functionResponse": {"name": "look", "response": {"output": "a dot"}}}
    said = answer["candidates"][0]["content"]
    return "contents", [said], [{"role": "user", "parts": [result]}]


@pytest.mark.parametrize("path", REQUESTS)
def test_what_a_client_adds_to_an_answer_goes_with_the_stored_one(path):
    body = REQUESTS[path]
    replies = [Reply.events(*CALLED[path]), Reply.events(*STREAMS.get(path, [DONE[CONTENTS]]))]
    with gateway(replies, m=UPSTREAMS[path]) as (ask, server):
        answer = json.loads(ask(path, "m", body).body)
        key, said, results = sent_back(path, answer)
        keys = {place: f"x_new_{at}_" for at, place in enumerate(objects(said)) if place}
        again = {**body, key: [*body[key], *with_keys(said, keys), *results]}
        reply = ask(path, "m", again)
        assert reply.status == 200, reply.body
        sent = server.requests[-1].body.decode()
    assert [place for place, name in keys.items() if name not in sent] == []
    assert CARRIERS[path] in sent
    assert "x_new" not in told(reply)


# The providers' own controls.

OPUS = {"max_tokens": 2000, "messages": [{"role": "user", "content": "q"}]}
BETAS = "per-turn-control-2026-07-01,mid-conversation-system-2026-04-07"


def test_claude_gets_what_claude_code_says_to_it(answering):
    ask, server = answering
    compaction = {
        "type": "compaction",
        "content": None,
        "signature": "Sg==",
        "encrypted_content": "e",
    }
    own = {
        "context_management": {"edits": [{"type": "compact_20260112", "trigger": {"value": 1}}]},
        "compaction": {"type": "summarize", "instructions": "Short."},
        "output_config": {"effort": "high", "task_budget": {"type": "tokens", "total": 20000}},
        "cache_control": {"type": "ephemeral", "ttl": "1h"},
        "diagnostics": {"previous_message_id": "msg_0"},
        "thinking": {
            "type": "adaptive",
            "display": "omitted",
            "block_binding": {"prefix_mismatch_behavior": "error"},
        },
    }
    said = [
        {"role": "assistant", "content": [compaction]},
        {"role": "user", "content": "q", "output_config": {"effort": "low"}},
        {"role": "system", "content": [], "output_config": {"effort": "max"}},
        {"role": "system", "content": [{"type": "text", "text": "Mind the time."}]},
        {
            "role": "user",
            "content": [{"type": "text", "text": "r", "cache_control": {"type": "ephemeral"}}],
        },
    ]
    headers = {
        "anthropic-beta": BETAS,
        "x-api-key": "the-clients-own",
        "x-claude-code-session-id": "s",
    }
    reply = ask(MESSAGES, "messages", {**OPUS, **own, "messages": said}, **headers)
    assert (reply.status, told(reply)) == (200, "")
    request = server.requests[-1]
    for key, value in own.items():
        assert request.json[key] == value
    assert request.json["messages"] == [
        *said[:1],
        {
            "role": "user",
            "content": [{"type": "text", "text": "q"}],
            "output_config": {"effort": "low"},
        },
        *said[2:],
    ]
    sent = request.headers["anthropic-beta"].split(",")
    assert set(BETAS.split(",")) <= set(sent)
    assert len(sent) == len(set(sent))
    assert "the-clients-own" not in str(request.headers)
    assert "x-claude-code-session-id" not in request.headers


def test_an_instruction_of_claude_code_stays_after_its_question():
    said = [{"type": "text", "text": "Mind the time."}]
    inside = [*OPUS["messages"], {"role": "system", "content": said}]
    cached = {"cache_control": {"type": "ephemeral"}}
    body = {**OPUS, "messages": inside, **cached}
    replies = [Reply.events(*STREAMS[MESSAGES])]
    with gateway(replies, m="anthropic/claude-sonnet-4-5") as (ask, server):
        assert ask(MESSAGES, "m", body).status == 200
        sent = server.requests[-1].json
    assert [message["role"] for message in sent["messages"]] == ["user", "system"]
    assert json.dumps(sent).count("cache_control") == 1


def test_items_that_nobody_knows_stay_beside_a_stored_answer():
    new = {"type": "x_new_item", "a": 1}
    replies = [Reply.events(*CALLED[RESPONSES]), Reply.events(*STREAMS[RESPONSES])]
    with gateway(replies, m=UPSTREAMS[RESPONSES]) as (ask, server):
        body = REQUESTS[RESPONSES]
        answer = json.loads(ask(RESPONSES, "m", body).body)["output"]
        result = {"type": "function_call_output", "call_id": "call_9", "output": "a dot"}
        update = {"type": "configuration_update", "reasoning": {"effort": "low"}}
        items = [*body["input"], {**new, "a": 2}, *answer, new, result, update]
        assert ask(RESPONSES, "m", {**body, "input": items}).status == 200
        sent = [item["type"] for item in server.requests[-1].json["input"]]
    told = ["x_new_item", "reasoning", "message", "function_call", "x_new_item"]
    assert sent[-7:] == [*told, "function_call_output", "configuration_update"]


def test_openai_gets_what_codex_says_to_it(answering):
    ask, server = answering
    update = {"type": "configuration_update", "reasoning": {"effort": "high"}}
    answer = {"type": "message", "role": "assistant", "content": "a"}
    items = [{"role": "user", "content": "q"}, answer, update, {"role": "user", "content": "r"}]
    own = {
        "context_management": [{"type": "compaction", "compact_threshold": 1}],
        "client_metadata": {"a": "b"},
        "truncation": "auto",
        "store": False,
    }
    reasoning = {"effort": "low", "mode": "standard", "context": "all_turns"}
    include = ["reasoning.encrypted_content", "web_search_call.results"]
    body = {"input": items, "reasoning": reasoning, "include": include, **own}
    reply = ask(RESPONSES, "responses", body, **{"x-codex-beta-features": "remote_compaction_v2"})
    assert reply.status == 200
    request = server.requests[-1]
    for key, value in own.items():
        assert request.json[key] == value
    assert request.json["input"][2] == update
    assert {**request.json["reasoning"], **reasoning} == request.json["reasoning"]
    assert request.json["include"] == include
    assert request.headers["x-codex-beta-features"] == "remote_compaction_v2"
    assert "not sent" not in told(reply)


@pytest.mark.parametrize("target", [CHAT, RESPONSES, CONTENTS])
def test_an_effort_within_the_conversation_is_the_requests_elsewhere(answering, target):
    ask, server = answering
    said = [
        {"role": "user", "content": "q"},
        {"role": "system", "content": [], "output_config": {"effort": "low", "x_other": 1}},
    ]
    body = {**OPUS, "messages": said, "output_config": {"effort": "high"}}
    reply = ask(MESSAGES, NAMES[target], body, **{"anthropic-beta": BETAS})
    sent = server.requests[-1].json
    if target == RESPONSES:
        assert sent["reasoning"]["effort"] == "low"
    if target == CONTENTS:
        assert sent["generationConfig"]["thinkingConfig"]["thinkingLevel"].lower() == "low"
    assert "output_config" not in json.dumps(sent)
    assert not any(message.get("content") == "" for message in sent.get("messages", ()))
    assert "messages[].output_config.x_other" in told(reply)
    assert "anthropic-beta" in told(reply)
    assert "effort" not in told(reply)


def test_an_effort_within_the_conversation_does_not_turn_thinking_on(answering):
    ask, server = answering
    said = [
        *OPUS["messages"],
        {"role": "system", "content": [], "output_config": {"effort": "high"}},
    ]
    body = {**OPUS, "messages": said, "thinking": {"type": "disabled"}}
    assert ask(MESSAGES, NAMES[CHAT], body).status == 200
    assert server.requests[-1].json["thinking"] == {"type": "disabled"}


def test_an_update_of_codex_is_the_effort_of_claude(answering):
    ask, server = answering
    update = {"type": "configuration_update", "reasoning": {"effort": "low"}}
    items = [{"role": "user", "content": "q"}, update]
    reply = ask(RESPONSES, "messages", {"input": items, "reasoning": {"effort": "high"}})
    assert server.requests[-1].json["output_config"]["effort"] == "low"
    assert reply.status == 200


# Servers that know less.

CHATTED = {"messages": [{"role": "user", "content": "q"}]}


def refused(text: str) -> Reply:
    return Reply.json({"error": {"message": text, "type": "invalid_request_error"}}, 400)


@pytest.mark.parametrize(
    "text", ["Unrecognized request argument supplied: x_new", "I do not like this request at all"]
)
def test_what_a_server_does_not_take_is_left_out_and_remembered(text):
    taken = Reply.events(*STREAMS[CHAT])
    added = {**CHATTED, "x_new": {"a": 1}}
    with gateway([refused(text), taken, taken], m="vllm/qwen3.6-27b") as (ask, server):
        for _ in range(2):
            reply = ask(CHAT, "m", added)
            assert reply.status == 200, reply.body
            assert "x_new" in told(reply)
        first, second, third = (request.json for request in server.requests)
    assert first["x_new"] == {"a": 1}
    assert "x_new" not in second
    assert "x_new" not in third


def test_a_key_in_a_message_that_a_server_does_not_take():
    said = [{"role": "system", "content": [], "output_config": {"effort": "low"}}]
    body = {**OPUS, "messages": [*OPUS["messages"], *said], "x_fine": 1}
    text = "messages.1.output_config: Extra inputs are not permitted"
    taken = Reply.events(*STREAMS[MESSAGES])
    with gateway([refused(text), taken, taken], m=UPSTREAMS[MESSAGES]) as (ask, server):
        for _ in range(2):
            reply = ask(MESSAGES, "m", body)
            assert reply.status == 200, reply.body
            assert "output_config" in told(reply)
        first, second, third = (request.json for request in server.requests)
    assert len(first["messages"]) == 2
    assert len(second["messages"]) == len(third["messages"]) == 1
    assert third["x_fine"] == 1


def test_a_beta_that_a_server_does_not_have():
    text = "Unexpected value(s) `x-1` for the `anthropic-beta` header."
    taken = Reply.events(*STREAMS[MESSAGES])
    with gateway([refused(text), taken, taken], m=UPSTREAMS[MESSAGES]) as (ask, server):
        for _ in range(2):
            reply = ask(MESSAGES, "m", OPUS, **{"anthropic-beta": "x-1, y-2"})
            assert reply.status == 200, reply.body
            assert "x-1" in told(reply)
        first, second, third = (r.headers.get("anthropic-beta", "") for r in server.requests)
    assert "x-1,y-2" in first
    assert "x-1" not in second
    assert "y-2" not in second
    assert "y-2" in third
    assert "x-1" not in third


def test_the_provider_itself_is_not_asked_again_for_reasons_that_nobody_knows():
    with gateway([refused("I do not like this")], m=UPSTREAMS[MESSAGES]) as (ask, server):
        reply = ask(MESSAGES, "m", {**OPUS, "x_new": 1})
        assert reply.status == 400
        assert b"I do not like this" in reply.body
        assert len(server.requests) == 1


# Threads, and thinking that nobody asked for.


@pytest.mark.parametrize("kind", ["create", "continue"])
def test_a_thread_is_refused_so_that_its_client_goes_on_without(answering, kind):
    ask, server = answering
    before = len(server.requests)
    thread = {"type": kind, "previous_message_id": "msg_1"}
    reply = ask(MESSAGES, "messages", {**OPUS, "thread": thread})
    error = json.loads(reply.body)["error"]
    assert (reply.status, error["type"]) == (400, "invalid_request_error")
    assert error["details"] == {"error_code": "thread_unsupported_request"}
    assert len(server.requests) == before


ASKS = {
    "none": {},
    "disabled": {"thinking": {"type": "disabled"}},
    "effort": {"output_config": {"effort": "low"}},
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("asks", ASKS)
@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES, CONTENTS])
def test_who_did_not_ask_for_thinking_is_not_sent_any(path, asks, stream):
    body = {k: v for k, v in REQUESTS[MESSAGES].items() if k not in ("thinking", "output_config")}
    body |= {"messages": OPUS["messages"], "stream": stream, **ASKS[asks]}
    replies = [Reply.events(*CALLED[path]), Reply.events(*STREAMS.get(path, [DONE[CONTENTS]]))]
    with gateway(replies, m=UPSTREAMS[path]) as (ask, server):
        reply = ask(MESSAGES, "m", body).body
        content = json.loads(reply)["content"] if not stream else folded(reply)
        assert [block["type"] for block in content] == ["text", "tool_use"]
        assert b"Hm." not in reply
        result = {"type": "tool_result", "tool_use_id": content[1]["id"], "content": "a dot"}
        said = [*body["messages"], {"role": "assistant", "content": content}]
        more = {**body, "messages": [*said, {"role": "user", "content": [result]}]}
        assert ask(MESSAGES, "m", more).status == 200
        sent = server.requests[-1].body.decode()
    if asks != "disabled":
        assert CARRIERS[path] in sent


def folded(stream: bytes) -> list[dict[str, Any]]:
    """The blocks of a stream, whose numbers have no gaps."""
    blocks: list[dict[str, Any]] = []
    for line in stream.decode().splitlines():
        event = json.loads(line.removeprefix("data: ")) if line.startswith("data: ") else {}
        if event.get("type") == "content_block_start":
            assert event["index"] == len(blocks)
            blocks.append(event["content_block"])
        elif event.get("type") == "content_block_delta" and event["delta"]["type"] == "text_delta":
            blocks[event["index"]]["text"] += event["delta"]["text"]
    return blocks


def test_a_served_model_may_show_its_thinking_to_all():
    shown = ServedModel(UPSTREAMS[CHAT], show_thinking="always")
    with ScriptedServer([Reply.events(*CALLED[CHAT])]) as server:
        served = {"m": replace(shown, base_url=server.url)}
        with serving(served) as url:
            content = json.loads(asking(url)(MESSAGES, "m", OPUS).body)["content"]
    assert [block["type"] for block in content] == ["thinking", "text", "tool_use"]


def test_what_belongs_to_an_object_that_is_not_sent_is_not_sent_either():
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "x_new": 1}}
    body = {**CHATTED, "response_format": form, "api_key": "k", "base_url": "http://elsewhere"}
    with gateway([Reply.events(*STREAMS[CHAT])], m="vllm/qwen3.6-27b") as (ask, server):
        reply = ask(CHAT, "m", body)
        sent = server.requests[-1].json
    assert not {"response_format", "api_key", "base_url"} & sent.keys()
    for name in ("response_format.json_schema", "api_key", "base_url"):
        assert name in told(reply)


def test_a_binding_may_be_said_without_a_kind_of_thinking(answering):
    ask, server = answering
    thinking = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    body = {**OPUS, "thinking": {**thinking, "display": "omitted"}}
    assert ask(MESSAGES, "messages", body).status == 200
    sent = server.requests[-1].json["thinking"]
    assert sent["block_binding"] == thinking["block_binding"]
    body = {**OPUS, "thinking": {"type": "disabled", **thinking, "display": "omitted", "x_new": 1}}
    assert ask(MESSAGES, "messages", body).status == 200
    sent = server.requests[-1].json.get("thinking", {})
    assert sent.get("x_new") == 1
    assert sent.get("type") in ("adaptive", "enabled") or "display" not in sent


def test_a_system_prompt_with_a_cache_mark_still_tells_conversations_apart():
    def body(system: str, *more: Any) -> dict[str, Any]:
        mark = {"cache_control": {"type": "ephemeral"}}
        said = [*OPUS["messages"], *more]
        return {**OPUS, "system": [{"type": "text", "text": system, **mark}], "messages": said}

    replies = [[{"reasoning_content": "Mine."}, {"content": "ok"}], [{"content": "ok"}]]
    chunks = [
        [{"id": "c", "choices": [{"index": 0, "delta": one}]} for one in reply]
        + [{"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, "[DONE]"]
        for reply in replies
    ]
    with gateway([Reply.events(*one) for one in chunks], m=UPSTREAMS[CHAT]) as (ask, server):
        assert ask(MESSAGES, "m", body("You are A.")).status == 200
        answer = {"role": "assistant", "content": [{"type": "text", "text": "ok"}]}
        again = {"role": "user", "content": "again"}
        assert ask(MESSAGES, "m", body("You are B.", answer, again)).status == 200
        assert "Mine." not in server.requests[-1].body.decode()
