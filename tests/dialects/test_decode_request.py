"""Requests of clients come in whole: what we would send is read back, and nothing is dropped."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answers import DIALECTS, answers, assembled, written
from conversations import json_objects, names, snapshot, target
from effort import tried
from mull.dialects import past
from mull.dialects.extras import without_extras
from mull.dialects.registry import encode_request
from mull.dialects.serving import decode_request
from mull.history.log import Log
from mull.neutral.asked import Asked, ThinkingAsked
from mull.neutral.assemble import tell
from mull.neutral.blocks import (
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from mull.neutral.errors import ConfigError
from mull.neutral.messages import Message
from mull.neutral.parameters import PARAMETERS
from mull.neutral.recent import Recent
from mull.neutral.request import (
    AnswerFormat,
    HostedTool,
    NamedTool,
    Request,
    RequestOptions,
    Tool,
)
from mull.neutral.thinking import WRITERS, ThinkingPlan, write_thinking
from mull.policy.prepare import prepare
from recordings import exchanges, need_recordings
from rows import for_each

BUDGET = {"type": "budget_tokens", "min": 1024, "max": 32_000}
EFFORT = {"type": "effort", "values": ["none", "low", "high"]}
ALL = {"omits": ()}
HERE = {
    "anthropic": target(
        "anthropic-budget", dialect="anthropic", options=[BUDGET], compat=ALL, can_be_off=True
    ),
    "gemini": target("gemini-level", dialect="gemini", options=[EFFORT], compat=ALL),
    "openai-chat": target(
        "openai-effort", options=[EFFORT], compat={"requires_reasoning": "all", **ALL}
    ),
    "openai-responses": target(
        "responses", dialect="openai-responses", options=[EFFORT], compat=ALL
    ),
    "bedrock-converse": target(
        "anthropic-budget",
        dialect="bedrock-converse",
        options=[BUDGET],
        compat=ALL,
        can_be_off=True,
    ),
}
PNG = MediaBlock("image/png", "iVBORw0KGgo=")
texts = st.text(st.characters(exclude_characters="<", codec="utf-8"), max_size=20).map(
    lambda text: f"{text}w"
)
schemas = st.just({}) | st.dictionaries(names, json_objects, max_size=2).map(
    lambda properties: {"type": "object", "properties": properties}
)
parameters = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.floats(0, 1),
        "top_p": st.floats(0, 1),
        "top_k": st.integers(1, 100),
        "presence_penalty": st.floats(-2, 2),
        "frequency_penalty": st.floats(-2, 2),
        "seed": st.integers(0, 2**31),
        "stop": st.lists(texts, max_size=4).map(tuple),
        "parallel_calls": st.booleans(),
        "verbosity": st.sampled_from(["low", "high"]),
        "user": texts,
        "metadata": st.dictionaries(names, texts, max_size=2),
        "cache_key": texts,
    },
)
tools = st.lists(st.builds(Tool, names, st.just("") | texts, schemas), max_size=3)


@st.composite
def asked_for(draw: st.DrawFn, dialect: str) -> Request:
    """A request as policy makes it, after answers as the endpoint gave them."""
    to, history = HERE[dialect], []
    for _ in range(draw(st.integers(0, 3))):
        history.append(Message(role="user", blocks=draw(_said)))
        answer = assembled(written(dialect, [*tell(draw(answers))]), to)
        answer = msgspec.structs.replace(answer, origin=to.origin)
        history.append(answer)
        if answer.tool_calls:
            results = [ToolResultBlock(call.id, draw(texts)) for call in answer.tool_calls]
            history.append(Message(role="tool", blocks=tuple(results)))
    offered = tuple(draw(tools))
    choices = [None, "auto", "none", "required"]
    choices += [NamedTool(offered[0].name)] if offered else []
    options = RequestOptions(
        system=draw(st.just("") | texts),
        tools=offered,
        tool_choice=draw(st.sampled_from(choices)) if offered else None,
        **draw(parameters),
        max_tokens=draw(st.none() | st.integers(40_000, 60_000)),
        stream=draw(st.booleans()),
    )
    wish = draw(st.sampled_from([{}, {"effort": "high"}, {"enabled": False}]))
    settings = snapshot(includeInContext=True, **wish)
    history.append(Message(role="user", blocks=draw(_said)))
    return prepare(Log(history), settings, to, options).request


_said = st.tuples(texts.map(TextBlock)) | st.tuples(texts.map(TextBlock), st.just(PNG))


def again(asked: Asked, request: Request) -> Request:
    """What was asked for as a request: the same, as far as the client can say it."""
    return msgspec.structs.replace(
        request,
        messages=asked.messages,
        system=asked.system,
        tools=asked.tools,
        tool_choice=asked.tool_choice,
        max_tokens=asked.max_tokens,
        stream=asked.stream,
        **{name: getattr(asked, name) for name in PARAMETERS},
    )


@pytest.mark.parametrize("dialect", DIALECTS)
@tried(0.5)
@given(data=st.data())
def test_what_policy_sends_is_read_back_whole(dialect, data):
    request, to = data.draw(asked_for(dialect)), HERE[dialect]
    wire = encode_request(request, to)
    asked = decode_request(dialect, wire.body, wire.path, wire.headers)
    assert asked.model == to.model
    assert asked.system == request.system
    cannot_forbid = dialect == "bedrock-converse" and request.tool_choice == "none"
    choice = None if cannot_forbid else request.tool_choice
    if dialect == "anthropic" and request.parallel_calls is not None:
        choice = choice or "auto"  # where calls are kept apart, a choice is said
    assert asked.tool_choice == choice
    called = {call.name: None for message in request.messages for call in message.tool_calls}
    stand_ins = called if dialect == "bedrock-converse" and not request.tools else {}
    offered = [tool.name for tool in request.tools]
    assert [tool.name for tool in asked.tools] == (offered or [*stand_ins])
    assert asked.stream == request.stream
    for name in PARAMETERS:
        assert getattr(asked, name) == getattr(request, name), name
    sent = encode_request(again(asked, request), to).body
    assert json.loads(sent) == json.loads(wire.body)
    assert not [path for path in asked.rest if path.partition(".")[0] not in OURS]


OURS = {
    "store",
    "include",
    "anthropic-beta",
    "context_management",
    "generationConfig",
    "additionalModelRequestFields",
}
"""What our own requests say that has no neutral field."""


plans = [
    ThinkingPlan(state, writer, effort=effort, budget=budget, summary=summary)
    for writer in WRITERS
    for state in ("absent", "default", "on", "off")
    for effort, budget, summary in (
        (None, None, None),
        ("high", None, None),
        (None, 4096, None),
        ("low", None, "auto"),
    )
]
DIALECT_OF = {
    "responses": "openai-responses",
    "template-responses": "openai-responses",
    "template-messages": "anthropic",
    "anthropic-budget": "anthropic",
    "anthropic-adaptive": "anthropic",
    "gemini-budget": "gemini",
    "gemini-level": "gemini",
    "nova": "bedrock-converse",
}


@pytest.mark.sweep
def test_every_shape_of_thinking_is_understood():
    for_each(plans, check_shape)


def check_shape(plan):
    fragment = write_thinking(plan)
    dialect = DIALECT_OF.get(plan.writer, "openai-chat")
    apart = dialect == "bedrock-converse" and fragment
    body = {"additionalModelRequestFields": fragment} if apart else fragment
    asked = decode_request(dialect, msgspec.json.encode(body), "")
    thinking, text = asked.thinking, json.dumps(fragment)
    assert (thinking.state == "unsaid") == (not fragment)
    assert (thinking.effort or "").lower() == (
        plan.effort if f"{plan.effort}".lower() in text.lower() else ""
    )
    assert thinking.budget == (plan.budget if f"{plan.budget}" in text else None)
    if fragment and plan.state == "off":
        assert thinking.state in ("off", "on")
    assert not asked.rest.keys() - {"thinking.display"}


# Bodies as real clients send them, by hand.

CLAUDE_CODE = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 32000,
    "thinking": {"type": "enabled", "budget_tokens": 31999, "display": "omitted"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "metadata": {"user_id": '{"session_id":"s1"}'},
    "system": [
        {"type": "text", "text": "x-anthropic-billing-header: cch=1"},
        {"type": "text", "text": "You help.", "cache_control": {"type": "ephemeral"}},
    ],
    "tools": [
        {"name": "Read", "description": "Reads.", "input_schema": {"type": "object"}},
        {"type": "web_search_20250305", "name": "web_search"},
    ],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "What is in a.py?"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "", "signature": "EqQB"},
                {"type": "redacted_thinking", "data": "gAAA"},
                {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a.py"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [{"type": "text", "text": "print(1)"}],
                    "cache_control": {"type": "ephemeral"},
                }
            ],
        },
        {"role": "system", "content": "Mind the time."},
    ],
    "stream": True,
}


def test_a_body_of_claude_code():
    asked = decode_request(
        "anthropic",
        msgspec.json.encode(CLAUDE_CODE),
        "/v1/messages?beta=true",
        {"anthropic-beta": "interleaved-thinking-2025-05-14"},
    )
    assert asked.thinking == ThinkingAsked("on", None, 31999, shown=False)
    assert asked.system == "x-anthropic-billing-header: cch=1"
    assert [(m.role, *m.blocks) for m in map(without_extras, asked.messages)] == [
        ("system", TextBlock("You help.")),
        ("user", TextBlock("What is in a.py?")),
        (
            "assistant",
            ThinkingBlock("", "thinking", signature="EqQB"),
            ThinkingBlock("", "redacted_thinking", redacted="gAAA"),
            ToolCallBlock("toolu_1", "Read", {"path": "a.py"}),
        ),
        ("tool", ToolResultBlock("toolu_1", "print(1)")),
        ("system", TextBlock("Mind the time.")),
    ]
    assert asked.tools == (Tool("Read", "Reads.", {"type": "object"}),)
    assert asked.user == '{"session_id":"s1"}'
    assert [tool.name for tool in asked.hosted_tools] == ["web_search_20250305"]
    assert set(asked.rest) == {
        "context_management",
        "system[1].cache_control",
        "messages[2].content[0].cache_control",
        "thinking.display",
    }
    assert asked.headers == {"anthropic-beta": "interleaved-thinking-2025-05-14"}


CODEX = {
    "model": "gpt-5.3-codex",
    "input": [
        {
            "type": "message",
            "id": "msg_1",
            "role": "developer",
            "content": [{"type": "input_text", "text": "Be brief."}],
        },
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Look."},
                {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="},
            ],
        },
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "**Plan**"}],
            "content": None,
            "encrypted_content": "gAAA",
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "shell",
            "arguments": '{"cmd": "ls"}',
        },
        {"type": "function_call_output", "id": "fco_1", "call_id": "call_1", "output": "a.py"},
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_2", "name": "apply_patch",
         "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": "done"},
    ],
    "tools": [
        {"type": "function", "name": "shell", "description": "Runs.", "strict": False,
         "parameters": {"type": "object"}},
        {"type": "custom", "name": "apply_patch", "format": {"type": "grammar"}},
        {"type": "web_search"},
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "reasoning": {"effort": "high", "summary": "auto", "context": "all_turns"},
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "s1",
    "client_metadata": {"a": "b"},
    "text": {"verbosity": "low"},
}  # fmt: skip


def test_a_body_of_codex():
    asked = decode_request("openai-responses", msgspec.json.encode(CODEX), "/v1/responses")
    assert asked.system == "Be brief."
    assert asked.thinking == ThinkingAsked("on", "high", None, True, "auto")
    assert asked.parallel_calls is True
    assert [message.role for message in asked.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]
    thought, call = asked.messages[1].blocks
    assert isinstance(thought, ThinkingBlock)
    assert (thought.thought, thought.encrypted, thought.id) == ("**Plan**", "gAAA", "rs_1")
    assert isinstance(call, ToolCallBlock)
    assert (call.id, call.name, call.arguments) == ("call_1", "shell", '{"cmd": "ls"}')
    (patch,) = asked.messages[3].blocks
    assert isinstance(patch, ToolCallBlock)
    assert (patch.id, patch.name, patch.input) == ("call_2", "apply_patch", {"input": "*** Begin"})
    assert asked.messages[4].blocks == (ToolResultBlock("call_2", "done"),)
    assert [(tool.name, tool.free_text) for tool in asked.tools] == [
        ("shell", False),
        ("apply_patch", True),
    ]
    assert set(asked.rest) == {
        "input[0].id",
        "input[4].id",
        "store",
        "include",
        "client_metadata",
        "reasoning.context",
    }
    assert [tool.name for tool in asked.hosted_tools] == ["web_search"]
    assert (asked.cache_key, asked.verbosity) == ("s1", "low")


CONVERSE = {
    "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"text": "Look."},
                {"image": {"format": "png", "source": {"bytes": "iVBORw0KGgo="}}},
                {
                    "document": {
                        "format": "pdf",
                        "name": "a",
                        "source": {"bytes": "JVBERg=="},
                        "citations": {"enabled": True},
                    }
                },
                {"cachePoint": {"type": "default"}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "Plan", "signature": "Eqo="}}},
                {"reasoningContent": {"redactedContent": "AAEC"}},
                {"toolUse": {"toolUseId": "t1", "name": "ls", "input": {"dir": "."}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "toolResult": {
                        "toolUseId": "t1",
                        "content": [{"text": "a.py"}, {"json": {"n": 1}}, {"searchResult": {}}],
                        "status": "error",
                    }
                }
            ],
        },
    ],
    "inferenceConfig": {"maxTokens": 100, "topP": 0.5, "stopSequences": ["END"]},
    "toolConfig": {
        "tools": [
            {
                "toolSpec": {
                    "name": "ls",
                    "inputSchema": {"json": {"type": "object"}},
                    "strict": True,
                }
            },
            {"systemTool": {"name": "nova_grounding"}},
        ],
        "toolChoice": {"any": {}},
    },
    "additionalModelRequestFields": {
        "reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"},
        "other": 1,
    },
    "guardrailConfig": {"guardrailIdentifier": "g"},
    "outputConfig": {
        "textFormat": {
            "type": "json_schema",
            "structure": {"jsonSchema": {"schema": '{"type": "object"}', "name": "x"}},
        }
    },
    "requestMetadata": {"team": "blue"},
}


def test_a_body_of_a_converse_client():
    path = "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A%3Ainference-profile%2Fx/converse-stream"
    asked = decode_request("bedrock-converse", msgspec.json.encode(CONVERSE), path)
    assert asked.model == "arn:aws:bedrock:us-east-1::inference-profile/x"
    assert (asked.stream, asked.system, asked.max_tokens) == (True, "Be brief.", 100)
    assert asked.thinking == ThinkingAsked("on", "low")
    assert asked.tool_choice == "required"
    assert asked.format == AnswerFormat({"type": "object"}, "x")
    assert (asked.stop, asked.top_p, asked.metadata) == (("END",), 0.5, {"team": "blue"})
    assert [tool.strict for tool in asked.tools] == [True]
    question, answer, results = asked.messages
    assert question.blocks[:2] == (TextBlock("Look."), PNG)
    assert isinstance(question.blocks[2], OpaqueBlock)  # citations have no neutral place
    thought, redacted, call = answer.blocks
    assert (thought.thought, thought.signature) == ("Plan", "Eqo=")
    assert (redacted.redacted, call.input) == ("AAEC", {"dir": "."})
    assert results.blocks == (ToolResultBlock("t1", 'a.py\n{"n":1}\n{"searchResult":{}}', True),)
    assert set(asked.rest) == {
        "system[1].cachePoint",
        "messages[0].content[3].cachePoint",
        "messages[2].content[0].toolResult.content[2]",
        "additionalModelRequestFields.other",
        "guardrailConfig",
    }


GEMINI_CLI = {
    "systemInstruction": {"role": "user", "parts": [{"text": "Be brief."}]},
    "contents": [
        {"role": "user", "parts": [{"text": "Look."}]},
        {
            "role": "model",
            "parts": [
                {"text": "Plan", "thought": True},
                {"functionCall": {"name": "ls", "args": {"dir": "."}}, "thoughtSignature": "CiQB"},
            ],
        },
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": "ls", "response": {"output": "a.py"}}}],
        },
    ],
    "tools": [
        {"functionDeclarations": [{"name": "ls", "parametersJsonSchema": {"type": "object"}}]},
        {"googleSearch": {}},
    ],
    "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["ls"]}},
    "generationConfig": {
        "temperature": 0,
        "topP": 1,
        "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "HIGH"},
        "responseMimeType": "application/json",
        "mediaResolution": "LOW",
    },
    "safetySettings": [],
}


def test_a_body_of_gemini_cli():
    path = "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse"
    asked = decode_request("gemini", msgspec.json.encode(GEMINI_CLI), path)
    assert (asked.model, asked.stream, asked.system) == ("gemini-3-pro", True, "Be brief.")
    assert asked.thinking == ThinkingAsked("on", "high", None, True)
    assert asked.tool_choice == NamedTool("ls")
    assert asked.format == AnswerFormat()
    _, answer, results = asked.messages
    call = answer.tool_calls[0]
    assert (call.name, call.signature) == ("ls", "CiQB")
    assert without_extras(results).blocks == (ToolResultBlock(call.id, "a.py"),)
    assert (asked.temperature, asked.top_p) == (0, 1)
    assert asked.hosted_tools == (HostedTool("gemini", {"googleSearch": {}}),)
    assert set(asked.rest) == {
        "safetySettings",
        "generationConfig.mediaResolution",
    }


CHAT = {
    "model": "kimi-k3",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "name": "ann",
            "content": [
                {"type": "text", "text": "Look."},
                {
                    "type": "image_url",
                    "image_url": {"url": "https://a.example/b.png", "detail": "low"},
                },
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "Plan",
            "audio": {"id": "a1"},
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "a.py"},
    ],
    "tools": [
        {"type": "function", "function": {"name": "ls", "strict": True, "parameters": {}}},
        {"type": "builtin_function", "function": {"name": "$web_search"}},
    ],
    "tool_choice": {"type": "allowed_tools", "tools": []},
    "max_completion_tokens": 100,
    "stop": "END",
    "seed": 7,
    "stream": True,
    "stream_options": {"include_usage": True},
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "x", "schema": {"type": "object"}, "strict": True},
    },
    "thinking": {"type": "disabled", "keep": "all"},
    "logit_bias": {},
    "user": "u1",
}  # fmt: skip


def test_a_body_of_a_chat_client():
    asked = decode_request("openai-chat", msgspec.json.encode(CHAT), "/v1/chat/completions")
    assert asked.thinking == ThinkingAsked("off", off="disabled")
    assert (asked.stop, asked.seed, asked.max_tokens) == (("END",), 7, 100)
    assert asked.stream_usage
    assert asked.format == AnswerFormat({"type": "object"}, "x", True)
    assert without_extras(asked.messages[0]).blocks == (
        TextBlock("Look."),
        MediaBlock("image/png", url="https://a.example/b.png"),
    )
    assert [block.thought for block in asked.messages[1].thinking] == ["Plan"]
    assert set(asked.rest) == {
        "messages[1].name",
        "messages[1].content[1].image_url.detail",
        "messages[2].audio",
        "tool_choice",
        "thinking.keep",
        "logit_bias",
    }
    assert asked.user == "u1"
    assert [tool.strict for tool in asked.tools] == [True]
    assert [tool.data["function"]["name"] for tool in asked.hosted_tools] == ["$web_search"]


@pytest.mark.parametrize(
    ("dialect", "body", "text"),
    [
        ("anthropic", b"[]", "the body is a list, not an object"),
        ("anthropic", b"{", "the body is not JSON"),
        ("anthropic", b'{"messages": 1}', "messages is a number, not a list"),
        ("anthropic", b'{"max_tokens": "9"}', "max_tokens is text, not a whole number"),
        ("openai-chat", b'{"stream": 1}', "stream is a number, not true or false"),
        ("openai-chat", b'{"messages": [{"role": "x"}]}', r"messages\[0\].role is 'x'"),
        ("openai-responses", b'{"tools": [1]}', r"tools\[0\] is a number, not an object"),
        ("gemini", b'{"contents": [{"role": "user"}]}', r"contents\[0\].parts is missing"),
    ],
)
def test_what_is_no_request_is_told_where(dialect, body, text):
    with pytest.raises(ConfigError, match=text):
        decode_request(dialect, body)


# Recorded requests.

DIALECT_OF_PATH = (
    ("/v1/messages", "anthropic"),
    ("/chat/completions", "openai-chat"),
    ("/responses", "openai-responses"),
    ("enerateContent", "gemini"),
)
WORDS = 12
"""Shorter texts are mostly words of the wire."""


@pytest.mark.sweep
def test_recorded_requests_are_decoded_whole():
    need_recordings()
    seen = 0
    for exchange in (one for talk in exchanges() for one in talk):
        dialect = next((d for end, d in DIALECT_OF_PATH if end in exchange.path), None)
        if dialect is None or not exchange.request:
            continue
        asked = decode_request(dialect, msgspec.json.encode(exchange.request), exchange.path)
        kept = "\0".join(leaves(msgspec.to_builtins(asked)))
        said = [piece for text in leaves(exchange.request) for piece in MARKS.split(text)]
        lost = [text for text in said if len(text) > WORDS and text not in kept]
        assert not [text for text in lost if text not in STRUCTURE and not is_json(text, kept)]
        seen += 1
    assert seen > 100


STRUCTURE = {"function_call", "function_call_output", "application/json"}
MARKS = re.compile("</?think>|data:[a-z/]+;base64,")
"""What is taken apart: thoughts inside the text, and addresses that hold the data itself."""


def leaves(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = [*value.values()]
    return (
        [text for one in value for text in leaves(one)] if isinstance(value, list | tuple) else []
    )


def is_json(text: str, kept: str) -> bool:
    """Whether the text is JSON whose own texts were kept: arguments of a call."""
    try:
        return all(one in kept for one in leaves(json.loads(text)))
    except ValueError:
        return False


def test_an_answer_that_was_read_before_is_the_same_in_its_own_dialect_alone():
    said = {"role": "assistant", "content": "<think>hm</think>so"}
    body = msgspec.json.encode({"messages": [{"role": "user", "content": "q"}, said]})

    chat, again = (decode_request("openai-chat", body).messages[1] for _ in range(2))
    messages = decode_request("anthropic", body).messages[1]

    assert chat is again
    assert [block.thought for block in chat.thinking] == ["hm"]
    assert messages.text == "<think>hm</think>so"


def test_answers_that_were_read_are_kept_by_the_memory_they_take(monkeypatch):
    monkeypatch.setattr(past, "_READ", kept := Recent(100_000))
    for number in range(1_000):
        answer = {"role": "assistant", "content": f"{number}"}
        body = {"model": "m", "messages": [answer, {"role": "user", "content": "q"}]}
        decode_request("openai-chat", json.dumps(body).encode())
    assert 100 < len(kept._kept) < 250
