"""The Responses API over a WebSocket."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
from contextlib import suppress
from itertools import groupby

import pytest

from gateway.responding import ASKS, LOOKS, events_of, results_of, text_of
from gateway.test_app import app_for, ask
from gateway.test_responses import Failing
from mull.gateway import socket as sockets
from mull.gateway import streaming
from mull.gateway.door import Door
from mull.gateway.tokens import ClientToken, hashed
from mull.store.serve import ServedModel
from mull.testing import Gate, Reply, Say, ScriptedServer, StrictServer

HOST = {"host": "127.0.0.1:8484"}


class Connection:
    """A connection to an application, without a server in between."""

    def __init__(self, app, path="/v1/responses", extensions=(), **headers):
        self.app, self.sent, self.heard = app, asyncio.Queue(), asyncio.Queue()
        self.scope = {
            "type": "websocket",
            "path": path,
            "query_string": b"",
            "headers": [(k.encode(), v.encode()) for k, v in {**HOST, **headers}.items()],
            "extensions": {name: {} for name in extensions},
        }

    async def __aenter__(self):
        self.sent.put_nowait({"type": "websocket.connect"})
        self.task = asyncio.create_task(self.app(self.scope, self.sent.get, self.heard.put))
        self.opening = await self.heard.get()
        return self

    async def __aexit__(self, *error):
        self.sent.put_nowait({"type": "websocket.disconnect"})
        await asyncio.wait_for(self.task, 30)

    def say(self, **event):
        event = {"type": "response.create", "model": "m", **event}
        self.sent.put_nowait({"type": "websocket.receive", "text": json.dumps(event)})

    async def hear(self):
        message = await asyncio.wait_for(self.heard.get(), 30)
        return json.loads(message["text"]) if message["type"] == "websocket.send" else message

    async def create(self, **event):
        """The events that answer a request."""
        self.say(**event)
        events = [await self.hear()]
        while events[-1]["type"] not in ("response.completed", "response.failed", "error"):
            events.append(await self.hear())
        return events


def run(url, conversation, **more):
    """Hold a conversation over one connection."""

    async def held():
        app = app_for(url, **more)
        try:
            async with Connection(app) as connection:
                return await conversation(connection)
        finally:
            await app._gateway.close()

    return asyncio.run(held())


def kinds(events):
    """Their types; deltas that arrive together are sent on as one."""
    return [kind for kind, _ in groupby(one["type"] for one in events)]


def test_a_request_is_answered_by_the_events_of_a_stream():
    async def conversation(connection):
        assert connection.opening == {"type": "websocket.accept"}
        told = await connection.create(input="Look.", store=False, **ASKS)
        body = {"model": "m", "input": "Look.", "store": False, "stream": True, **ASKS}
        data = json.dumps(body).encode()
        streamed = await ask(connection.app, "POST", "/v1/responses", data)
        return told, events_of(streamed.body)

    with StrictServer("kimi", [LOOKS[1]] * 2) as server:
        told, streamed = run(server.url, conversation)
    assert kinds(told) == kinds(streamed)
    assert [one["sequence_number"] for one in told] == list(range(len(told)))
    assert text_of(told[-1]["response"]) == "Milk."
    assert server.requests[0].json == server.requests[1].json


def test_a_warm_up_goes_nowhere_and_what_is_new_is_enough_though_nothing_is_stored():
    async def conversation(connection):
        wants = {"store": False, **ASKS}
        *_, ready = await connection.create(input="Look.", generate=False, **wants)
        assert ready["response"]["output"] == []
        assert not server.requests
        name = ready["response"]["id"]
        *_, first = await connection.create(input=[], previous_response_id=name, **wants)
        results = results_of(first["response"])
        name = first["response"]["id"]
        *_, last = await connection.create(input=results, previous_response_id=name, **wants)
        path = f"/v1/responses/{last['response']['id']}"
        assert (await ask(connection.app, "GET", path)).status == 404
        return last

    with StrictServer("anthropic", LOOKS) as server:
        last = run(server.url, conversation, model="anthropic/claude-sonnet-4-5")
    assert text_of(last["response"]) == "Milk."
    assert not server.refusals
    assert server.returned[-1]


def test_without_a_store_a_connection_remembers_its_thoughts():
    async def conversation(connection):
        connection.app._gateway.memory = Failing()
        *_, first = await connection.create(input="Look.", **ASKS)
        results = results_of(first["response"])
        name = first["response"]["id"]
        return await connection.create(input=results, previous_response_id=name, **ASKS)

    with StrictServer("anthropic", LOOKS) as server:
        *_, last = run(server.url, conversation, model="anthropic/claude-sonnet-4-5")
    assert text_of(last["response"]) == "Milk."
    assert not server.refusals
    assert server.returned[-1]


def test_what_is_stored_is_found_over_http_and_the_other_way_round():
    async def conversation(connection):
        *_, first = await connection.create(input="Look.")
        name = first["response"]["id"]
        fetched = await ask(connection.app, "GET", f"/v1/responses/{name}")
        assert fetched.json == first["response"]
        body = {"model": "m", "input": "Again.", "previous_response_id": name}
        made = await ask(connection.app, "POST", "/v1/responses", json.dumps(body).encode())
        name = made.json["id"]
        return await connection.create(input="And?", previous_response_id=name)

    with StrictServer("kimi", [LOOKS[1]] * 3) as server:
        *_, last = run(server.url, conversation)
    said = [m["content"] for m in server.requests[-1].json["messages"] if m["role"] == "user"]
    assert said == ["Look.", "Again.", "And?"]
    assert last["type"] == "response.completed"


def test_errors_are_events_and_the_connection_goes_on():
    async def conversation(connection):
        for wrong in ("nonsense", "[]", '{"type":"session.update"}', "[" * 9_000):
            connection.sent.put_nowait({"type": "websocket.receive", "text": wrong})
            error = await connection.hear()
            assert (error["type"], error["status"]) == ("error", 400)
        connection.sent.put_nowait({"type": "websocket.receive", "bytes": b"\xff"})
        assert (await connection.hear())["status"] == 400
        (error,) = await connection.create(input="q", previous_response_id="resp_0")
        (lane,) = await connection.create(input="q", model="none", stream_id="a")
        connection.say(type="response.steer", input="Stop.", previous_response_id="resp_0")
        steered = await connection.hear()
        return error, lane, steered, await connection.create(input="q", stream_id="b")

    with StrictServer("kimi", [LOOKS[1]]) as server:
        error, lane, steered, events = run(server.url, conversation)
    assert error == {
        "type": "error",
        "status": 400,
        "error": {
            "message": "Previous response with id 'resp_0' not found.",
            "type": "invalid_request_error",
            "param": "previous_response_id",
            "code": "previous_response_not_found",
        },
    }
    assert (lane["status"], lane["stream_id"]) == (404, "a")
    assert steered["type"] == "response.steer.failed"
    assert steered["steer"] == {"input": "Stop.", "previous_response_id": "resp_0"}
    assert {one["stream_id"] for one in events} == {"b"}
    assert events[-1]["type"] == "response.completed"


def test_a_refusal_of_the_upstream_keeps_its_words_and_when_to_come_back():
    said = {"error": {"message": "slow down", "type": "rate_limit"}}
    with ScriptedServer([Reply.json(said, 429, {"retry-after": "7"})]) as server:
        (error,) = run(server.url, lambda connection: connection.create(input="q"))
    assert error["status"] == 429
    assert "slow down" in error["error"]["message"]
    assert error["headers"] == {"retry-after": "7"}


def test_a_client_that_leaves_ends_the_upstreams_work():
    gate = Gate()
    chunk = {"choices": [{"index": 0, "delta": {"content": "Hm"}}]}

    async def conversation(connection):
        connection.say(input="q")
        await asyncio.to_thread(gate.wait_reached)

    with ScriptedServer([Reply.events(chunk, gate)]) as server:
        run(server.url, conversation)
        assert server.requests[0].wait_left()
        gate.open()


def test_a_client_hears_that_a_silent_answer_still_comes(monkeypatch):
    monkeypatch.setattr(streaming, "SILENCE", 0.05)
    gate = Gate()
    chunk = {"choices": [{"index": 0, "delta": {"content": "Hm"}, "finish_reason": "stop"}]}

    async def conversation(connection):
        connection.say(input="q")
        first = await connection.hear()
        gate.open()
        while (await connection.hear())["type"] != "response.completed":
            pass
        return first

    with ScriptedServer([Reply.events(gate, chunk)]) as server:
        assert run(server.url, conversation) == {"type": "keepalive"}


def test_a_connection_at_its_limit_is_closed_and_says_so(monkeypatch):
    async def conversation(connection):
        await connection.create(input="q")
        monkeypatch.setattr(sockets, "MOST_KEPT", 0)
        return *(await connection.create(input="q")), await connection.hear()

    with StrictServer("kimi", [LOOKS[1]]) as server:
        error, closing = run(server.url, conversation)
    assert error["error"]["code"] == "websocket_connection_limit_reached"
    assert closing["type"] == "websocket.close"


def test_a_token_is_checked_before_each_request():
    async def held():
        app = app_for(server.url, tokens=(ClientToken("team", hashed("right")),))
        async with Connection(app, authorization="Bearer right") as connection:
            *_, made = await connection.create(input="q")
            assert made["type"] == "response.completed"
            app._door = Door((ClientToken("team", hashed("new")),))
            (error,) = await connection.create(input="q")
        await app._gateway.close()
        return error

    with StrictServer("kimi", [LOOKS[1]]) as server:
        assert asyncio.run(held())["status"] == 401
    assert len(server.requests) == 1


def test_a_client_that_asks_without_waiting_is_let_go():
    gate = Gate()

    async def conversation(connection):
        for _ in range(sockets.MOST_WAITING + 2):
            connection.say(input="q")
        while (message := await connection.hear())["type"] != "websocket.close":
            pass
        return message

    with ScriptedServer([Reply.events(gate)]) as server:
        assert run(server.url, conversation)["code"] == 1008
        gate.open()


def test_what_waits_is_bounded_in_bytes_too(monkeypatch):
    monkeypatch.setattr(sockets, "MOST_BODY", 1_000)
    monkeypatch.setattr(streaming, "SILENCE", 0.05)
    gate = Gate()

    async def conversation(connection):
        connection.say(input="q")
        await connection.hear()  # it is being answered
        for _ in range(3):
            connection.say(input="q" * 500)
        while (message := await connection.hear())["type"] != "websocket.close":
            pass
        return message

    with ScriptedServer([Reply.events(gate)]) as server:
        assert run(server.url, conversation)["code"] == 1008
        gate.open()


def test_the_name_of_a_lane_is_not_repeated_without_end():
    async def conversation(connection):
        return await connection.create(input="q", stream_id="a" * 5_000)

    (error,) = run("http://127.0.0.1:9", conversation)
    assert "stream_id" in error["error"]["message"]
    assert len(str(error)) < 1_000


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/v1/other", {"authorization": "Bearer right"}, 404),
        ("/v1/responses", {}, 401),
        ("/v1/responses", {"authorization": "Bearer wrong"}, 401),
        ("/v1/responses", {"host": "evil.example"}, 403),
        ("/v1/responses", {"authorization": "Bearer right", "origin": "http://evil.example"}, 403),
        ("/v1/responses", {"authorization": "Bearer right", "origin": "http://127.0.0.1:1"}, 403),
    ],
    ids=str,
)
def test_who_may_not_come_in_is_told_why(path, headers, status):
    async def refused(extensions):
        app = app_for("http://127.0.0.1:9", tokens=(ClientToken("team", hashed("right")),))
        async with Connection(app, path, extensions, **headers) as connection:
            opening = connection.opening
        await app._gateway.close()
        return opening

    told = asyncio.run(refused(["websocket.http.response"]))
    assert (told["type"], told["status"]) == ("websocket.http.response.start", status)
    assert asyncio.run(refused([]))["type"] == "websocket.close"


def test_it_is_spoken_on_a_real_server(gateway):
    with StrictServer("kimi", [[Say("Milk.")]]) as server:
        models = {"m": ServedModel("moonshotai/kimi-k2.5", base_url=server.url)}
        with gateway(models) as url:
            assert handshake(url, "/v1/nowhere").startswith("HTTP/1.1 4")
            assert handshake(url, "/v1/responses").startswith("HTTP/1.1 101")


def handshake(url, path):
    """The first line that a server answers an upgrade with."""
    host = url.removeprefix("http://")
    key = base64.b64encode(os.urandom(16)).decode()
    head = (
        f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
    )
    name, port = host.split(":")
    with socket.create_connection((name, int(port)), timeout=30) as one:
        one.sendall(head.encode())
        line = one.recv(100).decode("latin-1")
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
    return line
