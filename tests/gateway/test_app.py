"""The gateway's HTTP: streams, documents, lists, counts, refusals, and clients that go away."""

from __future__ import annotations

import asyncio
import gzip
import json

import pytest

from gateway.stores import Flaky
from mull.agent.engine import Engine
from mull.gateway.app import GatewayApp
from mull.gateway.door import Door
from mull.gateway.envelope import Envelopes, is_envelope
from mull.gateway.guard import Guarded
from mull.gateway.http import MOST_BODY
from mull.gateway.memory import InProcess
from mull.gateway.routes import Routes
from mull.gateway.service import Gateway
from mull.gateway.tokens import ClientToken, hashed
from mull.store.serve import ServeConfig, ServedModel
from mull.testing import CUT, Gate, Reply, Say, ScriptedServer, StrictServer, Think

KIMI = "moonshotai/kimi-k2.5"
SCRIPT = [[Think("Let me see. " * 3), Say("Milk.")]]


class Answer:
    """What an application sent."""

    def __init__(self, sent):
        self.status = sent[0]["status"]
        self.headers = {k.decode(): v.decode() for k, v in sent[0]["headers"]}
        self.body = b"".join(one.get("body", b"") for one in sent[1:])

    @property
    def json(self):
        return json.loads(self.body)


def app_for(url, *, tokens=(), hosts=(), name="m", model=KIMI):
    engine = Engine(isolated=True)
    config = ServeConfig(models={name: ServedModel(model, base_url=url)})
    gateway = Gateway(engine, Routes(engine, config), InProcess(), Envelopes(b"k" * 32))
    return GatewayApp(gateway, Door(tokens, hosts))


async def ask(app, method, path, body=b"", *, leave=None, sent=None, send=None, **headers):
    """One request; `leave` is awaited, then the client goes away; `sent` is told each message, and
    `send` takes them in its own way."""
    path, _, query = path.partition("?")
    told, pieces = [], [{"type": "http.request", "body": body, "more_body": False}]

    async def receive():
        if pieces:
            return pieces.pop()
        await (leave() if leave else asyncio.Event().wait())
        return {"type": "http.disconnect"}

    async def keep(message):
        told.append(message)
        if sent is not None:
            sent(message)

    named = {"host": "127.0.0.1:8484", **{k.replace("_", "-"): v for k, v in headers.items()}}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(k.encode(), v.encode()) for k, v in named.items()],
    }
    await app(scope, receive, send or keep)
    return Answer(told) if told else None


def once(app, *words, **more):
    async def run():
        try:
            return await ask(app, *words, **more)
        finally:
            await app._gateway.close()

    return asyncio.run(run())


QUESTION = json.dumps({"model": "m", "messages": [{"role": "user", "content": "q"}]}).encode()
STREAMED = json.dumps({**json.loads(QUESTION), "stream": True}).encode()


def test_a_thought_streams_in_the_clients_own_field():
    with StrictServer("kimi", SCRIPT) as server:
        answer = once(app_for(server.url), "POST", "/v1/chat/completions", STREAMED)
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/event-stream"
    chunks = [json.loads(line[6:]) for line in answer.body.decode().split("\n\n")[:-2]]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert "".join(d.get("reasoning_content", "") for d in deltas) == "Let me see. " * 3
    assert "".join(d.get("content") or "" for d in deltas) == "Milk."
    assert answer.body.endswith(b"data: [DONE]\n\n")
    assert {chunk["model"] for chunk in chunks} == {"m"}
    assert len({chunk["id"] for chunk in chunks}) == 1


def test_gemini_streams_a_list_where_it_is_not_asked_for_events():
    body = json.dumps({"contents": [{"role": "user", "parts": [{"text": "q"}]}]}).encode()
    for query, kind in (("", "application/json"), ("?alt=sse", "text/event-stream")):
        with StrictServer("kimi", SCRIPT) as server:
            path = f"/v1beta/models/m:streamGenerateContent{query}"
            answer = once(app_for(server.url), "POST", path, body)
        assert answer.headers["content-type"] == kind
        if not query:
            parts = [p for one in answer.json for p in one["candidates"][0]["content"]["parts"]]
            assert "".join(p["text"] for p in parts if not p.get("thought")) == "Milk."


def test_models_are_listed_in_each_dialects_shape():
    app = app_for("http://127.0.0.1:9")
    plain = once(app, "GET", "/v1/models").json
    assert [one["id"] for one in plain["data"]] == ["m"]
    assert plain["data"][0]["context_length"] == 262_144
    version = {"anthropic-version": "2023-06-01"}
    named = once(app, "GET", "/v1/models", **version).json
    assert named["data"][0]["type"] == "model"
    assert named["has_more"] is False
    google = once(app, "GET", "/v1beta/models").json
    assert google["models"][0]["name"] == "models/m"
    assert google["models"][0]["inputTokenLimit"] == 262_144
    assert once(app, "GET", "/v1/models/m").json["id"] == "m"
    assert once(app, "GET", "/v1/models/other").status == 404


def test_tokens_are_counted_without_asking_the_upstream():
    app = app_for("http://127.0.0.1:9")
    body = json.dumps({**json.loads(QUESTION), "max_tokens": 10}).encode()
    few = once(app, "POST", "/v1/messages/count_tokens", body).json["input_tokens"]
    longer = {"model": "m", "messages": [{"role": "user", "content": "word " * 500}]}
    many = once(app, "POST", "/v1/messages/count_tokens", json.dumps(longer).encode())
    assert 0 < few < 50
    assert 400 < many.json["input_tokens"] < 700
    contents = json.dumps({"contents": [{"role": "user", "parts": [{"text": "q"}]}]}).encode()
    counted = once(app, "POST", "/v1/models/m:countTokens", contents)
    assert counted.json["totalTokens"] > 0


def test_gemini_counts_a_whole_request():
    app = app_for("http://127.0.0.1:9")

    def counted(body):
        return once(app, "POST", "/v1beta/models/m:countTokens", json.dumps(body).encode())

    bare = {"contents": [{"role": "user", "parts": [{"text": "word " * 100}]}]}
    system = {"parts": [{"text": "rule " * 200}]}
    whole = {"model": "models/m", **bare, "systemInstruction": system}
    alone = counted(bare).json["totalTokens"]
    assert alone >= 100
    for name in ("generateContentRequest", "generate_content_request"):
        assert counted({name: bare}).json["totalTokens"] == alone
        assert counted({name: whole}).json["totalTokens"] >= alone + 200
    assert counted({**bare, "generateContentRequest": whole}).status == 400
    assert counted({"generateContentRequest": []}).status == 400


@pytest.mark.parametrize("query", ["", "?alt=sse"])
def test_a_gemini_client_reads_a_thought_as_soon_as_it_is_there(query):
    """The upstream sends the rest only when the client has received the first thought."""
    gate = Gate()

    def thought(text):
        return {"choices": [{"index": 0, "delta": {"reasoning_content": text}}]}

    rest = [thought("Then that."), {"choices": [{"delta": {"content": "Milk."}, "index": 0}]}]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    reply = Reply.events(thought("First this. "), gate, *rest, end, "[DONE]")
    heard = []

    def sent(message):
        heard.append(message.get("body", b""))
        if b"First this. " in b"".join(heard):
            gate.open()

    body = json.dumps({"contents": [{"role": "user", "parts": [{"text": "q"}]}]}).encode()
    with ScriptedServer([reply]) as server:
        path = f"/v1beta/models/m:streamGenerateContent{query}"
        answer = once(app_for(server.url), "POST", path, body, sent=sent)
    text = answer.body.decode()
    if query:
        chunks = [json.loads(line[6:]) for line in text.split("\n\n") if line]
    else:
        chunks = json.loads(text)
    parts = [part for one in chunks for part in one["candidates"][0]["content"]["parts"]]
    said = [part["text"] for part in parts if part.get("thought")]
    assert "".join(said) == "First this. Then that."
    (signed,) = [part for part in parts if part.get("thoughtSignature")]
    assert signed["text"] == ""
    assert signed["thought"] is True


_QUESTION = json.loads(QUESTION)
_CONTENTS = {"contents": [{"role": "user", "parts": [{"text": "q"}]}]}
_WISHES = [
    ("/v1/chat/completions", _QUESTION, {"n": 2}, {"n": 1}),
    ("/v1/chat/completions", _QUESTION, {"n": 0}, {"n": None}),
    ("/v1/chat/completions", _QUESTION, {"logprobs": True}, {"logprobs": False}),
    ("/v1/chat/completions", _QUESTION, {"top_logprobs": 3}, {"top_logprobs": 0}),
    ("/v1/responses", {"model": "m", "input": "q"}, {"top_logprobs": 3}, {"top_logprobs": None}),
    (
        "/v1/responses",
        {"model": "m", "input": "q"},
        {"include": ["message.output_text.logprobs"]},
        {"include": ["reasoning.encrypted_content"]},
    ),
    *(
        ("/v1beta/models/m:generateContent", _CONTENTS, {"generationConfig": asked}, {})
        for asked in ({"candidateCount": 2}, {"responseLogprobs": True}, {"logprobs": 5})
    ),
    (
        "/v1beta/models/m:generateContent",
        _CONTENTS,
        {"generationConfig": {"candidateCount": 2}},
        {"generationConfig": {"candidateCount": 1, "responseLogprobs": False, "logprobs": 0}},
    ),
]


@pytest.mark.parametrize(("path", "body", "wish", "usual"), _WISHES)
@pytest.mark.parametrize("model", [KIMI, "google/gemini-3-pro-preview"])
def test_several_answers_and_probabilities_are_refused_not_dropped(path, body, wish, usual, model):
    script = {KIMI: "kimi", "google/gemini-3-pro-preview": "gemini"}[model]
    with StrictServer(script, [[Say("Milk.")]]) as server:
        app = app_for(server.url, model=model)
        refused = once(app, "POST", path, json.dumps({**body, **wish}).encode())
        assert not server.requests
        answer = once(app, "POST", path, json.dumps({**body, **usual}).encode())
    assert refused.status == 400
    (name,) = wish.get("generationConfig", wish)
    said = refused.json["error"]["message"]
    assert (wish["include"][0] if name == "include" else name) in said
    assert "one text answer without log probabilities" in said
    assert answer.status == 200
    assert "not sent" not in answer.headers.get("x-mull-notes", "")


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/nowhere", b"", 404),
        ("GET", "/v1/chat/completions", b"", 405),
        ("POST", "/v1/chat/completions", b"{", 400),
        ("POST", "/v1/chat/completions", b"[]", 400),
        ("POST", "/v1/chat/completions", b'{"messages":' + b"[" * 5_000, 400),
        ("POST", "/v1/chat/completions", b" " * (MOST_BODY + 1), 413),
        ("POST", "/v1/messages", b'{"model":"other","messages":[]}', 404),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_cannot_be_answered_is_refused_in_the_dialects_shape(method, path, body, status):
    answer = once(app_for("http://127.0.0.1:9"), method, path, body)
    assert answer.status == status
    assert answer.json["error"]["message"]


def test_a_refusal_keeps_its_status_its_words_and_when_to_come_back():
    said = {"error": {"message": "slow down, key sk-secret-upstream-key", "type": "rate_limit"}}
    reply = Reply.json(said, 429, {"retry-after": "7"})
    with ScriptedServer([reply]) as server:
        app = app_for(server.url)
        body = json.dumps({**json.loads(QUESTION), "max_tokens": 9}).encode()
        answer = once(app, "POST", "/v1/messages", body)
    assert answer.status == 429
    assert answer.headers["retry-after"] == "7"
    assert answer.json["type"] == "error"
    assert answer.json["error"]["type"] == "rate_limit_error"
    assert "slow down" in answer.json["error"]["message"]


def test_an_upstream_that_breaks_off_never_looks_finished():
    chunk = {"choices": [{"index": 0, "delta": {"reasoning_content": "Hm"}}]}
    with ScriptedServer([Reply.events(chunk, CUT)]) as server:
        answer = once(app_for(server.url), "POST", "/v1/chat/completions", STREAMED)
    assert b'"reasoning_content":"Hm"' in answer.body
    assert b"[DONE]" not in answer.body
    assert b'"error"' in answer.body


@pytest.mark.parametrize("how", ["breaks off", "left"])
def test_an_answer_that_broke_off_is_not_taken_for_another_with_the_same_text(how):
    """Its client has all of its text, and drops its thinking."""

    def chunks(thought):
        deltas = ({"reasoning_content": thought}, {"content": "Milk."})
        return [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]

    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    said = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "Milk."}]
    after = {"model": "m", "messages": [*said, {"role": "user", "content": "and?"}]}
    gate = Gate()
    replies = [
        Reply.events(*chunks("Mine."), CUT if how == "breaks off" else gate),
        Reply.events(*chunks("Another's."), end),
        Reply.events(*chunks("Next."), end),
    ]

    async def run(app, server):
        path, got = "/v1/chat/completions", asyncio.Event()

        def sent(message):
            if b"Milk." in message.get("body", b""):
                got.set()

        leave = got.wait if how == "left" else None
        await ask(app, "POST", path, STREAMED, leave=leave, sent=sent)
        if how == "left":
            await asyncio.to_thread(server.requests[0].wait_left)
            gate.open()
        await ask(app, "POST", path, QUESTION)
        answer = await ask(app, "POST", path, json.dumps(after).encode())
        await app._gateway.close()
        return answer

    with ScriptedServer(replies) as server:
        answer = asyncio.run(run(app_for(server.url), server))
    assert b"Another's." not in server.requests[-1].body
    assert "nothing to tell them apart" in answer.headers["x-mull-notes"]


@pytest.mark.parametrize("fails", [("find", "keep"), ("keep",)])
def test_while_the_store_fails_no_answer_is_taken_for_one_that_looks_alike(fails):
    """The other one may be out of reach, or another gateway could not store it either."""
    memory = InProcess()
    question = json.loads(QUESTION)["messages"]
    said = [*question, {"role": "assistant", "content": "Milk."}, *question]
    other = [{"role": "user", "content": "x"}]

    async def fail(*_):
        raise OSError("broken")

    async def run(app):
        app._gateway.memory = Guarded(memory)
        path = "/v1/chat/completions"
        if "find" not in fails:  # stored before anything fails
            await ask(app, "POST", path, QUESTION)
        for name in fails:
            setattr(memory, name, fail)
        asked = json.dumps({"model": "m", "messages": question if "find" in fails else other})
        await ask(app, "POST", path, asked.encode())
        answer = await ask(app, "POST", path, json.dumps({"model": "m", "messages": said}).encode())
        await app._gateway.close()
        return answer

    with StrictServer("kimi", [[Think("Another's."), Say("Milk.")]] * 3) as server:
        answer = asyncio.run(run(app_for(server.url)))
        assert b"Another's." not in server.requests[-1].body
    assert f"cannot {'read' if 'find' in fails else 'write'}" in answer.headers["x-mull-notes"]


def test_a_call_of_an_answer_that_broke_off_is_not_taken_for_the_same_call_of_another():
    """Its client counts the ids of calls itself."""
    call = {"id": "read:0", "type": "function", "function": {"name": "read", "arguments": "{}"}}

    def chunks(thought):
        deltas = ({"reasoning_content": thought}, {"tool_calls": [{"index": 0, **call}]})
        return [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]

    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    answered = [
        {"role": "assistant", "content": None, "tool_calls": [{**call, "id": "call_0"}]},
        {"role": "tool", "tool_call_id": "call_0", "content": "r"},
    ]
    after = {"model": "m", "messages": [*json.loads(QUESTION)["messages"], *answered]}

    async def run(app):
        for body in (STREAMED, QUESTION, json.dumps(after).encode()):
            answer = await ask(app, "POST", "/v1/chat/completions", body)
        await app._gateway.close()
        return answer

    replies = [Reply.events(*chunks("Mine."), CUT), Reply.events(*chunks("Another's."), end)]
    with ScriptedServer([*replies, Reply.events(*chunks("Next."), end)]) as server:
        answer = asyncio.run(run(app_for(server.url)))
    assert b"Another's." not in server.requests[-1].body
    assert "nothing to tell them apart" in answer.headers["x-mull-notes"]


Q = {"role": "user", "content": "q"}
SPOKEN = {"parts": [{"text": "q"}]}
PARTS = [{"text": "Foreign.", "thought": True}, {"text": "a", "thoughtSignature": "U0lH"}]
SIGNED = [{"type": "thinking", "thinking": "Foreign.", "signature": "c2ln"}]
SIGNED += [{"type": "text", "text": "a"}]
SUMMARY = [{"type": "summary_text", "text": "Foreign."}]
REASONING = {"type": "reasoning", "id": "rs_1", "summary": SUMMARY, "encrypted_content": "c2ln"}
FOREIGN = {
    "anthropic": (
        "/v1/messages",
        {
            "max_tokens": 5_000,
            "thinking": {"type": "enabled", "budget_tokens": 1_024},
            "messages": [Q, {"role": "assistant", "content": SIGNED}, Q],
        },
    ),
    "openai": (
        "/v1/responses",
        {"input": [Q, REASONING, {"role": "assistant", "content": "a"}, Q]},
    ),
    "gemini": (
        "/v1beta/models/m:generateContent",
        {"contents": [SPOKEN, {"role": "model", "parts": PARTS}, SPOKEN]},
    ),
    "kimi": (
        "/v1/chat/completions",
        {"messages": [Q, {"role": "assistant", "content": "a", "reasoning": "Foreign."}, Q]},
    ),
}
MODELS = {"anthropic": "anthropic/claude-sonnet-4-5", "openai": "openai/gpt-5"}
MODELS |= {"gemini": "google/gemini-3-pro-preview", "kimi": KIMI}


@pytest.mark.parametrize("upstream", MODELS)
@pytest.mark.parametrize("client", FOREIGN)
def test_thinking_that_nobody_knows_goes_to_no_other_vendor_than_its_clients(client, upstream):
    """An API of many vendors is sent what can be read of it."""
    path, body = FOREIGN[client]
    with StrictServer(upstream, [[Say("Milk.")]] * 2) as server:
        app = app_for(server.url, model=MODELS[upstream])
        answer = once(app, "POST", path, json.dumps({"model": "m", **body}).encode())
        first = server.requests[0].body
    assert answer.status == 200
    notes = answer.headers.get("x-mull-notes", "")
    assert (b"Foreign." in first) == (upstream in ("kimi", client))
    assert ("1 answer was not found" in notes) == (upstream != client)
    assert upstream == client or not server.refusals


NAMELESS = {"candidates": [{"content": {"parts": [{"functionCall": {"name": ""}}]}}]}
NAMELESS["candidates"][0]["finishReason"] = "STOP"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("client", FOREIGN)
def test_a_client_is_told_of_a_call_that_is_none(client, stream):
    path, body = FOREIGN[client]
    if stream and client == "gemini":
        path = path.replace("generate", "streamGenerate")
    body = {"model": "m", "stream": stream, **body}
    with ScriptedServer(lambda _: Reply.events(NAMELESS)) as server:
        app = app_for(server.url, model=MODELS["gemini"])
        answer = once(app, "POST", path, json.dumps(body).encode())
    assert answer.status == 200
    assert "answer: a call without a name" in answer.headers["x-mull-notes"]


def test_a_request_that_a_fix_sent_to_another_api_is_answered_from_there():
    """Its client gets an envelope, not what only that API understands."""
    text = "This model is only supported in v1/responses and not in v1/chat/completions."
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "secret"}
    said = {"type": "message", "content": [{"type": "output_text", "text": "Milk."}]}
    events = [
        {"type": "response.output_item.done", "output_index": at, "item": one}
        for at, one in enumerate((item, said))
    ]
    end = {"type": "response.completed", "response": {"status": "completed", "output": []}}
    replies = [Reply.json({"error": {"message": text}}, status=404), Reply.events(*events, end)]
    with ScriptedServer(replies) as server:
        app = app_for(server.url, model="openrouter/openai/gpt-5.4")
        answer = once(app, "POST", "/v1/chat/completions", QUESTION)
    assert [one.path for one in server.requests] == ["/chat/completions", "/responses"]
    (detail,) = answer.json["choices"][0]["message"]["reasoning_details"]
    assert is_envelope(detail["data"])


def test_a_client_that_goes_away_ends_the_upstreams_work():
    gate = Gate()
    chunk = {"choices": [{"index": 0, "delta": {"content": "Hm"}}]}
    with ScriptedServer([Reply.events(chunk, gate)]) as server:
        left = lambda: asyncio.to_thread(gate.wait_reached)  # noqa: E731
        once(app_for(server.url), "POST", "/v1/chat/completions", STREAMED, leave=left)
        assert server.requests[0].wait_left()
        gate.open()


def test_a_client_that_takes_nothing_any_more_ends_the_upstreams_work(monkeypatch):
    monkeypatch.setattr("mull.gateway.streaming.SILENCE", 0.01)
    monkeypatch.setattr("mull.gateway.streaming.STUCK", 0.05)
    chunk = {"choices": [{"index": 0, "delta": {"content": "Hm"}}]}
    gate = Gate()

    async def send(message):
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    with ScriptedServer([Reply.events(chunk, gate)]) as server:
        once(app_for(server.url), "POST", "/v1/chat/completions", STREAMED, send=send)
        assert server.requests[0].wait_left()
        gate.open()


def test_packed_requests_are_read_and_bombs_are_not():
    app = app_for("http://127.0.0.1:9")
    counting = json.dumps({**json.loads(QUESTION), "max_tokens": 9}).encode()
    path, packed = "/v1/messages/count_tokens", {"content_encoding": "gzip"}
    assert once(app, "POST", path, gzip.compress(counting), **packed).status == 200
    assert once(app, "POST", path, gzip.compress(b" " * (MOST_BODY + 9)), **packed).status == 413
    assert once(app, "POST", path, b"nonsense", **packed).status == 400
    assert once(app, "POST", path, b"x", content_encoding="br").status == 400


def test_a_foreign_name_and_a_wrong_token_are_not_let_in():
    token = ClientToken("team", hashed("right"))
    app = app_for("http://127.0.0.1:9", tokens=(token,), hosts=("gate.example",))
    assert once(app, "GET", "/v1/models", authorization="Bearer right").status == 200
    assert once(app, "GET", "/v1/models", x_api_key="right").status == 200
    assert once(app, "GET", "/v1/models?key=right").status == 200
    assert once(app, "GET", "/v1/models", x_goog_api_key="wrong").status == 401
    assert once(app, "GET", "/v1/models").status == 401
    named = {"authorization": "Bearer right", "host": "gate.example"}
    assert once(app, "GET", "/v1/models", **named).status == 200
    evil = once(app, "GET", "/v1/models", **{**named, "host": "evil.example"})
    assert evil.status == 403
    assert once(app, "GET", "/health", **named).json == {"status": "ok"}


def test_a_store_that_fails_is_told_and_refuses_nobody():
    flaky = Flaky(InProcess())
    flaky.broken = True
    body = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
    more = [*body["messages"], {"role": "assistant", "content": "Bread."}, *body["messages"]]

    async def work(app):
        gateway = app._gateway
        gateway.memory = Guarded(flaky)
        first = await ask(app, "POST", "/v1/chat/completions", json.dumps(body).encode())
        streamed = json.dumps({**body, "messages": more, "stream": True}).encode()
        second = await ask(app, "POST", "/v1/chat/completions", streamed)
        sick = await ask(app, "GET", "/health")
        flaky.broken = False
        while gateway.memory.health()["store"] != "ok":  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        third = await ask(app, "POST", "/v1/chat/completions", streamed)
        well = await ask(app, "GET", "/health")
        await gateway.close()
        return first, second, sick, third, well

    with StrictServer("kimi", SCRIPT * 3) as server:
        first, second, sick, third, well = asyncio.run(work(app_for(server.url)))
    assert (first.status, second.status, third.status) == (200, 200, 200)
    assert "cannot write" in first.headers["x-mull-notes"]
    assert "cannot read" in second.headers["x-mull-notes"]
    assert "store:" not in third.headers.get("x-mull-notes", "")
    assert sick.status == 200
    assert sick.json["status"] == "degraded"
    assert sick.json["store"].startswith("could not be")
    assert well.json == {"status": "ok"}
