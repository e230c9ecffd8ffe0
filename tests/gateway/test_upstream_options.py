"""What a client asks for reaches the upstream in its own words, or is said to be left out."""

from __future__ import annotations

import asyncio
import json
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mull.agent.engine import Engine
from mull.dialects.serving import decode_request
from mull.gateway.anchors import carriers_of
from mull.gateway.envelope import Envelopes
from mull.gateway.http import note_headers
from mull.gateway.memory import InProcess
from mull.gateway.record import Kept, kept_from
from mull.gateway.relay import Client
from mull.gateway.routes import Routes
from mull.gateway.service import Gateway
from mull.neutral.errors import ConfigError
from mull.store.serve import ServeConfig, ServedModel
from mull.testing import Call, Reply, Say, ScriptedServer, StrictServer, Think

UPSTREAMS = {
    "chat": "moonshotai/kimi-k2.5",
    "chat-qwen": "vllm/qwen3.6-27b",
    "messages": "anthropic/claude-sonnet-4-5",
    "contents": "google/gemini-3-pro-preview",
    "responses": "openai/gpt-5",
    "plain-chat": "deepseek/deepseek-chat",
    "plain-responses": "openai/gpt-4o",
}
DIALECTS = {
    "/v1/chat/completions": "openai-chat",
    "/v1/messages": "anthropic",
    "/v1/responses": "openai-responses",
    "/v1beta/models/m:generateContent": "gemini",
}
CHAT, MESSAGES, RESPONSES, CONTENTS = DIALECTS
REFUSED = Reply.json({"error": {"message": "enough", "type": "x"}}, 418)


@contextmanager
def gateway(model: str, url: str):
    """A gateway before this upstream."""
    engine = Engine(isolated=True)
    config = ServeConfig(models={"m": ServedModel(model, base_url=url)})
    yield Gateway(engine, Routes(engine, config), InProcess(), Envelopes(b"k" * 32))


async def asked(to: Gateway, path: str, body: dict[str, Any]) -> tuple[Any, str]:
    """The answer's document, or the error, and the notes beside it."""
    dialect = DIALECTS[path]
    request = decode_request(dialect, json.dumps({"model": "m", **body}).encode(), path)
    job = await to.job(Client(dialect), request)
    try:
        answer: Any = json.loads(await job.document())
    except Exception as error:
        answer = error
    return answer, dict(note_headers(job.notes)).get("x-mull-notes", "")


def upstream(name: str, path: str, **body: Any) -> tuple[dict[str, Any], str]:
    """The body that reaches an upstream, and what the client is told."""

    async def run() -> str:
        with gateway(UPSTREAMS[name], server.url) as to:
            _, notes = await asked(to, path, body)
            await to.close()
            return notes

    with ScriptedServer([REFUSED]) as server:
        notes = asyncio.run(run())
        return server.requests[0].json, notes


SAID = [{"role": "user", "content": "q"}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


@pytest.mark.parametrize(
    ("name", "sent", "told"),
    [
        ("chat-qwen", {"temperature": 0.5, "top_p": 0.9, "seed": 7, "stop": ["END"]}, []),
        ("plain-responses", {"temperature": 0.5, "top_p": 0.9}, ["seed", "stop"]),
        ("messages", {"stop_sequences": ["END"]}, ["seed"]),
        (
            "contents",
            {
                "generationConfig.temperature": 0.5,
                "generationConfig.topP": 0.9,
                "generationConfig.seed": 7,
                "generationConfig.stopSequences": ["END"],
            },
            [],
        ),
    ],
)
def test_a_chat_clients_parameters(name, sent, told):
    more = {"reasoning_effort": "none"} if name == "messages" else {}
    wanted = {"temperature": 0.5, "top_p": 0.9, "seed": 7, "stop": "END", **more}
    if name == "messages":
        del wanted["top_p"]
        sent = {**sent, "temperature": 0.5}
    body, notes = upstream(name, CHAT, messages=SAID, **wanted)
    for path, value in sent.items():
        held: Any = body
        for key in path.split("."):
            held = held[key]
        assert held == value, path
    assert [note.partition(":")[0] for note in notes.split("; ") if note] == told


SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
CLOSED = {**SCHEMA, "additionalProperties": False}
ASKING = {
    CHAT: {
        "messages": SAID,
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": CLOSED}},
    },
    RESPONSES: {
        "input": "q",
        "text": {"format": {"type": "json_schema", "name": "x", "schema": CLOSED}},
    },
    MESSAGES: {
        "messages": SAID,
        "max_tokens": 99,
        "output_config": {"format": {"type": "json_schema", "schema": CLOSED}},
    },
    CONTENTS: {
        "contents": [{"role": "user", "parts": [{"text": "q"}]}],
        "generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": CLOSED},
    },
}


@pytest.mark.parametrize("path", DIALECTS)
def test_a_schema_is_asked_for_in_the_upstreams_own_way(path):
    body, notes = upstream("plain-responses", path, **ASKING[path])
    assert body["text"]["format"]["schema"] == CLOSED
    body, _ = upstream("messages", path, **ASKING[path])
    assert body["output_config"]["format"]["schema"]["properties"] == CLOSED["properties"]
    body, _ = upstream("contents", path, **ASKING[path])
    assert body["generationConfig"]["responseJsonSchema"] == CLOSED
    assert notes == ""
    body, notes = upstream("chat-qwen", path, **ASKING[path])
    assert '"additionalProperties": false' in body["messages"][0]["content"]
    assert "tools" not in body
    assert notes == (
        "format: the schema is part of the instructions: the endpoint is not known to enforce one"
    )


BILLING = "x-anthropic-billing-header: cc_version=2.1; cch=a1b2;"


@pytest.mark.parametrize("name", ["chat", "chat-qwen", "messages", "contents", "responses"])
def test_a_line_that_changes_with_every_request_is_not_sent(name):
    system = [{"type": "text", "text": text} for text in (BILLING, "You help.", "Be brief.")]
    body, notes = upstream(name, MESSAGES, messages=SAID, max_tokens=99, system=system)
    assert "billing" not in json.dumps(body)
    assert "You help." in json.dumps(body)
    assert "Be brief." in json.dumps(body)
    assert notes == ""


def test_marks_of_a_cache_go_to_who_knows_them():
    hour = {"type": "ephemeral", "ttl": "1h"}
    system = [{"type": "text", "text": "Be brief.", "cache_control": hour}]
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    content = [{"type": "text", "text": "q", "cache_control": {"type": "ephemeral"}}]
    said = {"messages": [{"role": "user", "content": content}], "max_tokens": 2_000}
    body, notes = upstream("messages", MESSAGES, **said, system=system, tools=tools)
    assert body["system"][-1]["cache_control"] == hour
    assert "cache_control" not in body["tools"][-1]
    assert body["messages"][0]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    assert notes == ""
    for name in ("chat", "contents", "responses"):
        body, notes = upstream(name, MESSAGES, **said, system=system, tools=tools)
        assert "cache_control" not in json.dumps(body)
        assert notes == ""


def test_a_cache_key_goes_to_who_knows_it():
    for name, sent in (("responses", "s1"), ("chat", "s1"), ("chat-qwen", None)):
        body, notes = upstream(name, RESPONSES, input="q", prompt_cache_key="s1")
        assert body.get("prompt_cache_key") == sent
        assert notes == ""


@pytest.mark.parametrize(
    ("name", "roles"),
    [
        ("chat", ["system", "system", "user", "system", "assistant", "system", "user"]),
        ("chat-qwen", ["system", "user", "assistant", "user", "user"]),
    ],
)
def test_an_instruction_amid_the_conversation_stands_at_or_before_its_question(name, roles):
    inside = [{"role": "developer", "content": text} for text in ("A.", "B.", "C.", "D.")]
    said = [*inside[:2], *SAID, inside[2], {"role": "assistant", "content": "ok"}, inside[3], *SAID]
    body, notes = upstream(name, RESPONSES, input=said)
    assert [message["role"] for message in body["messages"]] == roles
    texts = [message["content"] for message in body["messages"]]
    if name == "chat-qwen":
        assert texts == ["A.\n\nB.\n\nC.", "q", "ok", "D.", "q"]
    assert (
        notes == "reattached: 1 answer was not found: sent without signatures and encrypted"
        " reasoning"
    )


@pytest.mark.parametrize("name", ["chat", "chat-qwen", "messages", "contents", "responses"])
@pytest.mark.parametrize("role", ["developer", "user"])
def test_an_instruction_before_the_result_of_a_call_does_not_part_them(name, role):
    called = [
        {"type": "function_call", "call_id": f"c{n}", "name": "f", "arguments": "{}"}
        for n in range(2)
    ]
    said = [
        *SAID,
        *called,
        {"role": role, "content": "Mind the time."},
        {"type": "function_call_output", "call_id": "c0", "output": "result 0"},
        {"role": role, "content": "Now."},
        {"type": "function_call_output", "call_id": "c1", "output": "result 1"},
    ]
    tools = [{"type": "function", "name": "f", "parameters": {"type": "object"}}]
    body, _ = upstream(name, RESPONSES, input=said, tools=tools)
    sent = json.dumps(body)
    places = [sent.index(text) for text in ("result 0", "result 1", "Mind the time.", "Now.")]
    assert places == sorted(places)
    assert "did not finish" not in sent


SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}


@pytest.mark.parametrize("name", ["chat", "messages", "contents", "responses"])
def test_a_search_of_the_provider_goes_to_its_provider_alone(name):
    wanted = {"tools": [SEARCH], "tool_choice": {"type": "tool", "name": "web_search"}}
    body, notes = upstream(name, MESSAGES, messages=SAID, max_tokens=2_000, **wanted)
    if name == "messages":
        assert body["tools"][0] | SEARCH == body["tools"][0]
        assert notes == ""
        return
    assert not {"tools", "tool_choice", "toolConfig"} & body.keys()
    assert notes.startswith("tools: not offered: web_search_20250305: ")


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"thinking": {"type": "adaptive"}}, True),
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}, True),
        ({}, False),
    ],
)
def test_thinking_that_was_left_to_the_model_and_does_not_fit_is_told(wanted, told):
    said = {"messages": SAID, **wanted}
    body, notes = upstream("messages", MESSAGES, max_tokens=1_500, **said)
    assert "thinking" not in body
    assert ("leave no room for the smallest budget" in notes) == told
    body, notes = upstream("messages", MESSAGES, max_tokens=4_000, **said)
    assert body["thinking"]["type"] == "enabled"
    assert notes == ""


def test_what_nobody_reads_is_told():
    body, notes = upstream("messages", CHAT, messages=SAID, n=1, logprobs=False, store=True)
    assert notes == "parameters: not sent: store"
    more = {"modalities": ["text"], "logit_bias": {"1": 2}, "store": False}
    body, notes = upstream("chat-qwen", CHAT, messages=SAID, **more)
    assert body["logit_bias"] == {"1": 2}
    assert not {"modalities", "store"} & body.keys()
    assert notes == ""
    with pytest.raises(ConfigError, match="modalities is not supported"):
        upstream("chat-qwen", CHAT, messages=SAID, modalities=["text", "audio"])
    body, notes = upstream("messages", CHAT, messages=SAID, logit_bias={})
    assert "logit_bias" not in body
    assert notes == "parameters: not sent: logit_bias"


@pytest.mark.parametrize("budget", [-1, 10**12])
def test_a_budget_that_is_no_number_of_tokens_is_no_reason_to_refuse(budget):
    said = [{"role": "user", "parts": [{"text": "q"}]}]
    config = {"thinkingConfig": {"thinkingBudget": budget}}
    for name in ("chat", "messages", "contents", "responses"):
        body, notes = upstream(name, CONTENTS, contents=said, generationConfig=config)
        assert body
        assert notes == ""


def test_an_answer_is_as_long_as_it_can_be_there():
    body, notes = upstream("plain-responses", MESSAGES, messages=SAID, max_tokens=64_000)
    assert body["max_output_tokens"] == 16_384
    assert notes == "max_tokens: lowered from 64,000 to 16,384, the longest answer of gpt-4o"


def test_a_picture_alone_does_not_end_the_conversation():
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    said = [{"role": "user", "content": [picture]}]
    body, notes = upstream("plain-chat", CHAT, messages=said)
    assert "left out" in body["messages"][0]["content"]
    assert notes.startswith("input: left out: ")


PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}


@pytest.mark.parametrize("name", ["chat", "messages", "contents", "responses"])
def test_a_picture_that_a_tool_gave_arrives(name):
    shown = [{"type": "text", "text": "a dot"}, {"type": "image", "source": PNG}]
    called = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    said = [
        *SAID,
        {"role": "assistant", "content": [called]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": shown}],
        },
    ]
    tools = [{"name": "look", "input_schema": {"type": "object"}}]
    body, _ = upstream(name, MESSAGES, messages=said, max_tokens=2_000, tools=tools)
    assert json.dumps(body).count("iVBORw0KGgo=") == 1
    assert "a dot" in json.dumps(body)


# Tools of codex, both ways.

GROUP = {
    "type": "namespace",
    "name": "notes",
    "description": "Notes.",
    "tools": [{"type": "function", "name": "add", "parameters": {"type": "object"}}],
}
PATCH = {"type": "custom", "name": "apply_patch", "description": "Patches."}


@pytest.mark.parametrize("name", ["chat", "messages", "contents"])
def test_tools_that_only_codex_has_survive_another_dialect(name):
    script = [
        [Think("First."), Call("add", {"text": "t"}), Call("apply_patch", {"input": "*** Begin"})],
        [Think("Then."), Say("Done.")],
    ]
    kind = {"chat": "kimi", "messages": "anthropic", "contents": "gemini"}[name]

    async def run() -> tuple[list[Any], Any, str]:
        with gateway(UPSTREAMS[name], server.url) as to:
            said: list[Any] = [{"role": "user", "content": "q"}]
            more = {"tools": [GROUP, PATCH], "reasoning": {"effort": "high"}}
            first, _ = await asked(to, RESPONSES, {"input": said, **more})
            calls = [item for item in first["output"] if item["type"].endswith("_call")]
            said += first["output"]
            said += [
                {"type": f"{call['type']}_output", "call_id": call["call_id"], "output": "ok"}
                for call in calls
            ]
            second, notes = await asked(to, RESPONSES, {"input": said, **more})
            await to.close()
            return calls, second, notes

    with StrictServer(kind, script) as server:
        calls, second, notes = asyncio.run(run())
        assert not server.refusals
    added, patched = calls
    assert (added["type"], added["name"], added["namespace"]) == ("function_call", "add", "notes")
    assert (patched["type"], patched["name"]) == ("custom_tool_call", "apply_patch")
    assert patched["input"] == "*** Begin"
    assert second["output"][-1]["content"][0]["text"] == "Done."
    assert notes == ""


def test_a_name_that_the_upstream_does_not_take_comes_back_as_the_clients_own():
    own = "files.read:" + "x" * 80
    tools = [{"name": own, "input_schema": {"type": "object"}}]

    async def run() -> tuple[Any, Any, str]:
        with gateway(UPSTREAMS["chat"], server.url) as to:
            said: list[Any] = [*SAID]
            first, _ = await asked(to, MESSAGES, _messages(said, tools))
            call = next(one for one in first["content"] if one["type"] == "tool_use")
            result = {"type": "tool_result", "tool_use_id": call["id"], "content": "r"}
            said += [
                {"role": "assistant", "content": [call]},
                {"role": "user", "content": [result]},
            ]
            second, notes = await asked(to, MESSAGES, _messages(said, tools))
            await to.close()
            return call, second, notes

    def reply(request: Any) -> Reply:
        sent = request.json["tools"][0]["function"]["name"]
        assert sent != own
        results = [message for message in request.json["messages"] if message["role"] == "tool"]
        if results:
            answer = request.json["messages"][1]
            assert answer["reasoning_content"] == "Let me see."
            assert answer["tool_calls"][0]["function"]["name"] == sent
            return Reply.events(_chunk({"content": "Done."}, "stop"), "[DONE]")
        function = {"name": sent, "arguments": "{}"}
        call = {"index": 0, "id": "call_1", "type": "function", "function": function}
        thought = {"reasoning_content": "Let me see."}
        return Reply.events(_chunk(thought), _chunk({"tool_calls": [call]}, "tool_calls"), "[DONE]")

    with ScriptedServer(reply) as server:
        call, second, notes = asyncio.run(run())
    assert call["name"] == own
    assert second["content"][-1]["text"] == "Done."
    assert "reattached" not in notes


def _messages(said: list[Any], tools: list[Any]) -> dict[str, Any]:
    return {"messages": said, "max_tokens": 2_000, "tools": tools}


def _chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


# What the upstream does not take back.


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("messages", "anthropic", "messages.1.content.0: Invalid `signature` in `thinking` block"),
        (
            "responses",
            "openai",
            "invalid_encrypted_content: The encrypted content could not be verified.",
        ),
        ("contents", "gemini", "Invalid thought_signature."),
    ],
)
def test_a_carrier_that_is_refused_is_forgotten_and_the_request_healed(name, kind, text):
    """The upstream gives an answer, then does not know it any more: it has new keys. Its record
    stays without the carrier: by what was said, another answer could be found in its place."""
    memory, refused = InProcess(), Reply.json({"error": {"message": text, "type": "x"}}, 400)
    script = [[Think("First."), Call("look", {"at": "a"})], [Think("Then."), Say("Done.")]]

    async def run(url: str) -> tuple[Any, Any, str]:
        with gateway(UPSTREAMS[name], url) as to:
            to.memory = memory
            said: list[Any] = [*SAID]
            first, _ = await asked(to, CHAT, {"messages": said, "tools": [LOOK]})
            message = first["choices"][0]["message"]
            call = message["tool_calls"][0]["id"]
            said += [message, {"role": "tool", "tool_call_id": call, "content": "r"}]
            before = dict(memory._records)
            healed, notes = await asked(to, CHAT, {"messages": said, "tools": [LOOK]})
            await to.close()
            return before, healed, notes

    with StrictServer(kind, script) as server, Between(server.url, refused) as between:
        before, healed, notes = asyncio.run(run(between.url))
    assert healed["choices"][0]["message"]["content"] == "Done."
    assert "healing: " in notes
    for (_, key), data in before.items():
        assert any(map(carriers_of, record_of(data).blocks))
        if not key.startswith("carrier:"):  # which this client was not given
            assert not any(map(carriers_of, record_of(memory._records["", key]).blocks))


@pytest.mark.parametrize(
    ("carrier", "told"),
    [
        ({}, "no signature to verify"),
        ({"signature": ""}, "the endpoint rejected them"),
        ({"signature": "c2ln"}, "the endpoint rejected them"),
    ],
)
def test_thinking_that_anthropic_cannot_verify_is_told_each_time(carrier, told):
    thought = {"type": "thinking", "thinking": "Hm.", **carrier}
    given = {"role": "assistant", "content": [thought, {"type": "text", "text": "a"}]}
    thinks = {"thinking": {"type": "enabled", "budget_tokens": 1_024}}
    body = _messages([*SAID, given, *SAID], []) | thinks
    for notes in said_twice("anthropic", "messages", body):
        assert told in notes


@pytest.mark.parametrize(
    ("carrier", "told"),
    [
        ({}, "the endpoint could not read them"),
        ({"encrypted_content": "c2ln"}, "the endpoint rejected them"),
    ],
)
def test_reasoning_that_openai_cannot_read_is_told_each_time(carrier, told):
    summary = [{"type": "summary_text", "text": "Hm."}]
    given = {"role": "assistant", "content": [{"type": "output_text", "text": "a"}]}
    thought = {"type": "reasoning", "id": "rs_1", "summary": summary, **carrier}
    for notes in said_twice("openai", "responses", {"input": [*SAID, thought, given, *SAID]}):
        assert told in notes


def said_twice(kind: str, name: str, body: dict[str, Any]) -> list[str]:
    """What a client of this provider's API is told of the same request, twice."""
    paths = {"messages": MESSAGES, "responses": RESPONSES}

    async def run() -> list[str]:
        with gateway(UPSTREAMS[name], server.url) as to:
            notes = [(await asked(to, paths[name], body))[1] for _ in range(2)]
            await to.close()
            return notes

    with StrictServer(kind, [[Say("b")], [Say("c")]]) as server:
        return asyncio.run(run())


def record_of(data: bytes) -> Kept:
    kept = kept_from(data)
    assert kept is not None
    return kept


LOOK = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


class Between:
    """Passes requests on, but refuses the first one that has an answer in it."""

    def __init__(self, url: str, refused: Reply) -> None:
        self._url, self._refused = url, [refused]
        self._server = ScriptedServer(self._reply)

    def _reply(self, request: Any) -> Reply:
        from naive_clients import post

        body = request.body.decode()
        if self._refused and '"look"' in body and ('"r"' in body):
            return self._refused.pop()
        data = post(self._url + request.path, request.body)
        return Reply(200, {"content-type": "text/event-stream"}, (data,))

    @property
    def url(self) -> str:
        return self._server.url

    def __enter__(self) -> Between:
        self._server.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._server.__exit__(*error)


# Ordinary conversations.

FIXTURES = Path(__file__).parent.parent / "fixtures" / "clients"
SILENT = {"claude-code", "claude-code-budget", "claude-code-foreign", "opencode-chat", "qwen-code"}
SILENT |= {"opencode-messages", "opencode-gemini", "opencode-responses", "gemini-cli", "codex"}
FOREIGN = {
    "codex": (
        "verbosity: verbosity low not sent: ",
        "tools: not offered: tool_search, web_search: ",
    ),
    "opencode-responses": ("verbosity: verbosity low not sent: ",),
}
"""What clients of the Responses API always ask for, and no other API has."""
PATHS = {"/messages": MESSAGES, "/chat/completions": CHAT, "/responses": RESPONSES}


@pytest.mark.parametrize("name", ["chat", "chat-qwen", "messages", "contents", "responses"])
@pytest.mark.parametrize("client", sorted(SILENT))
def test_an_ordinary_request_of_a_real_client_is_no_news(client, name):
    held = json.loads((FIXTURES / client / "1-turn.json").read_bytes())
    path = next((own for part, own in PATHS.items() if part in held["path"]), CONTENTS)
    key = {RESPONSES: "input", CONTENTS: "contents"}.get(path, "messages")
    opening = [one for one in held["body"][key] if _is_opening(one)]
    body = {**held["body"], key: opening[: 1 + _first_user(opening)], "model": "m"}
    _, notes = upstream(name, path, **body)
    told = {"opencode-chat": ("top_p: top_p 0.95 not sent: ",)} if name == "responses" else FOREIGN
    found = notes.split("; ") if notes else []
    assert len(found) == len(told.get(client, ()))
    assert all(map(str.startswith, found, told.get(client, ())))


def _is_opening(one: dict[str, Any]) -> bool:
    return one.get("role") in ("user", "system", "developer")


def _first_user(said: list[dict[str, Any]]) -> int:
    return next(at for at, one in enumerate(said) if one["role"] == "user")


def heard(model, messages):
    """The conversation that an upstream gets from a client of the Messages API."""
    with ScriptedServer([REFUSED]) as server, gateway(model, server.url) as to:
        asyncio.run(asked(to, MESSAGES, {"max_tokens": 5000, "messages": messages}))
    body = server.requests[0].json
    return [(one["role"], one.get("content")) for one in body.get("messages") or body["input"]]


def test_a_system_message_after_a_question_leaves_the_question_the_last_word():
    reminder = {"role": "system", "content": "It is Monday."}
    said = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    said += [{"role": "user", "content": "What day is it?"}, reminder]
    sent = heard(UPSTREAMS["chat-qwen"], said)
    assert sent[-2:] == [("user", "It is Monday."), ("user", "What day is it?")]
    both = heard(UPSTREAMS["chat-qwen"], [*said, {"role": "system", "content": "It rains."}])
    assert [content for _, content in both[-3:]] == [
        "It is Monday.",
        "It rains.",
        "What day is it?",
    ]
    assert [role for role, _ in heard(UPSTREAMS["responses"], said)[-2:]] == ["user", "system"]


def test_a_system_message_after_tool_results_stays_behind_them():
    call = {"type": "tool_use", "id": "toolu_a1b2c3d4e5f6a7b8c9d0", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "milk"}
    said = [{"role": "user", "content": "a"}, {"role": "assistant", "content": [call]}]
    said += [{"role": "user", "content": [result]}, {"role": "system", "content": "Go on."}]
    sent = heard(UPSTREAMS["chat-qwen"], said)
    assert [role for role, _ in sent[-3:]] == ["assistant", "tool", "user"]
    assert sent[-1] == ("user", "Go on.")
