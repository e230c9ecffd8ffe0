"""Requests over a transport of the caller's: limits, ends, errors and mistakes in one."""

from __future__ import annotations

import asyncio
import gc
import gzip
import ssl
import weakref
from contextlib import asynccontextmanager

import pytest

import mull
from conversations import snapshot, target
from loops import FakeClock, run_moved
from mull.client.access import Access
from mull.client.exchange import exchange
from mull.client.foreign import ForeignClient, client_over
from mull.client.http import HttpClient
from mull.client.transport import HttpRequest, HttpResponse
from mull.history.log import Log
from mull.neutral.assemble import assemble
from mull.neutral.errors import (
    ConfigError,
    LocalError,
    NetworkError,
    SilenceError,
    UnusableError,
)
from mull.neutral.events import Retrying
from mull.neutral.messages import user
from mull.policy.prepare import prepare
from mull.testing.server import Reply, ScriptedServer

YES = b'data: {"choices":[{"index":0,"delta":{"content":"yes"}}]}\n\n'
WHOLE = YES + b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
EVENTS = {"Content-Type": "text/event-stream"}


@pytest.fixture
def patient(monkeypatch):
    """The end of an answer may take its time, on a machine that has none."""
    monkeypatch.setattr("mull.client.foreign.DRAIN_SECONDS", 30)
    monkeypatch.setattr("mull.client.connection.DRAIN_SECONDS", 30)


class Scripted:
    """A transport whose chunks stand in a list: bytes, errors to raise, or things to wait for."""

    def __init__(self, *steps, status=200, headers=EVENTS, before=None):
        self.steps, self.status, self.headers, self.before = steps, status, headers, before
        self.requests, self.left, self.taken = [], [], 0

    @asynccontextmanager
    async def send(self, request):
        self.requests.append(request)
        try:
            if self.before is not None:
                await self._take(self.before)
            yield HttpResponse(self.status, self.headers, self._chunks())
        finally:
            self.left.append(request)

    async def _take(self, step):
        if isinstance(step, Exception):
            raise step
        return step if isinstance(step, bytes) else await step.wait()

    async def _chunks(self):
        for step in self.steps:
            self.taken += 1
            piece = await self._take(step)
            if isinstance(piece, bytes):
                yield piece


def converse(transport):
    async def main():
        request = prepare(Log([user("hi")]), snapshot(), target(dialect="openai-chat"))
        way = Access("https://model.example/v1", headers={"authorization": "Bearer canary"})
        events = []
        client = client_over(transport)
        try:
            async for batch in exchange(request, way, transport=client, clock=FakeClock()):
                events += batch
        except mull.RemoteError as error:
            return events, error
        return events, None

    return asyncio.run(main())


def test_an_answer_by_a_transport_of_ones_own():
    transport = Scripted(YES, b"", WHOLE[len(YES) :])
    events, error = converse(transport)
    assert (assemble(events).text, error) == ("yes", None)
    (request,) = transport.requests
    assert (request.method, request.url) == ("POST", "https://model.example/v1/chat/completions")
    assert request.headers["authorization"] == "Bearer canary"
    assert b'"hi"' in request.body
    assert repr(request) == "HttpRequest(POST model.example)"
    assert transport.left == [request]


def test_what_it_compresses_is_decompressed():
    headers = {"Content-Encoding": "GZIP"}
    events, error = converse(Scripted(gzip.compress(WHOLE), headers=headers))
    assert (assemble(events).text, error) == ("yes", None)


@pytest.mark.parametrize(
    ("raised", "kind", "attempts"),
    [
        (NetworkError("no way"), NetworkError, 4),
        (ConnectionResetError(104, "reset by peer"), NetworkError, 4),
        (TimeoutError(), NetworkError, 4),
        (ssl.SSLError(1, "made by hand"), NetworkError, 4),
        (UnusableError("never"), UnusableError, 1),
    ],
)
def test_errors_before_the_answer(raised, kind, attempts):
    transport = Scripted(before=raised)
    events, error = converse(transport)
    assert (type(error), len(transport.requests)) == (kind, attempts)
    assert [type(event) for event in events] == [Retrying] * (attempts - 1)
    assert len(transport.left) == attempts


def test_an_error_in_the_middle_keeps_what_came():
    events, error = converse(Scripted(YES, ConnectionResetError(104, "reset by peer")))
    assert error is None
    assert assemble(events).text == "yes"
    assert events[-1].text.startswith("the connection to model.example broke: ")


def test_errors_of_a_transport_that_are_mistakes_stay_what_they_are():
    with pytest.raises(ZeroDivisionError):
        converse(Scripted(before=ZeroDivisionError()))


def limited(transport, moves, **limits):
    """Read all with time moving on; what came, and the error."""

    async def main(loop):
        heard = []

        async def listen():
            request = HttpRequest("POST", "https://model.example/v1", {}, b"{}")
            async with ForeignClient(transport).send(request, **limits) as answer:
                if "closing" in moves:
                    answer.finish_within(5)
                async for chunk in answer:
                    heard.append(chunk)

        task = asyncio.create_task(listen())
        await loop.advance(0)
        for move in moves:
            if move != "closing":
                assert not task.done()
                await loop.advance(move)
        await asyncio.wait([task])
        return heard, task.exception()

    return run_moved(main)


@pytest.mark.parametrize("where", ["before", "in the middle"])
def test_silence_is_noticed_at_the_stated_time(where):
    never = asyncio.Event()
    transport = Scripted(before=never) if where == "before" else Scripted(b"x", never)
    heard, error = limited(transport, (119, 1.1), idle=120)
    assert (type(error), str(error)) == (SilenceError, "model.example sent nothing for 120 s")
    assert len(transport.left) == 1
    assert heard == ([] if where == "before" else [b"x"])


def test_the_total_limit_is_another_thing():
    heard, error = limited(Scripted(b"x", asyncio.Event()), (99, 1.1), idle=300, total=100)
    assert (type(error), heard) == (NetworkError, [b"x"])
    assert str(error) == "model.example was not finished after 100 s, the time limit"


def test_an_answer_that_is_closing_ends_when_its_time_is_up():
    transport = Scripted(b"x", asyncio.Event())
    assert limited(transport, ("closing", 4.9, 0.2), idle=300) == ([b"x"], None)
    assert len(transport.left) == 1


def leave(transport, how):
    async def main():
        request = HttpRequest("GET", "https://model.example")
        client = ForeignClient(transport)
        async with client.send(request) as answer:
            await anext(answer)
            if how == "drain":
                answer.drain()
        return transport.taken

    return asyncio.run(main())


def test_leaving_early_reads_on_only_to_keep_the_connection():
    assert leave(Scripted(b"a", b"b", b"c"), "leave") == 1
    assert leave(Scripted(b"a", b"b", b"c"), "drain") == 3
    assert leave(Scripted(b"a", *[b"x" * 40_000] * 9), "drain") == 3
    assert leave(Scripted(b"a", ConnectionResetError()), "drain") == 2


def test_cancelling_leaves_at_once():
    transport = Scripted(b"x", asyncio.Event())

    async def main():
        heard = asyncio.Event()

        async def listen():
            async with ForeignClient(transport).send(HttpRequest("GET", "https://h")) as answer:
                async for _ in answer:
                    heard.set()

        task = asyncio.create_task(listen())
        await heard.wait()
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(main())
    assert len(transport.left) == 1


class Coroutine:
    async def send(self, request):
        raise AssertionError


def test_a_send_that_returns_no_context_manager():
    with pytest.raises(LocalError, match=r"asynchronous context manager.*not a coroutine$"):
        converse(Coroutine())


def test_a_key_that_cannot_be_sent_is_not_shown():
    request = HttpRequest("POST", "https://h.example/", {"x-api-key": "canary\nkey"}, b"canary")

    async def main():
        async with ForeignClient(Scripted()).send(request):
            raise AssertionError

    with pytest.raises(ConfigError, match="'x-api-key'") as caught:
        asyncio.run(main())
    assert "canary" not in f"{caught.value!r}{caught.value.__cause__!r}"


@pytest.mark.parametrize("given", [7, Scripted, object(), "corp"])
def test_what_is_no_client(given):
    with pytest.raises(ConfigError):
        mull.Conversation("openai/gpt-5", key="k", http_client=given)


def test_mulls_own_client_is_a_transport_that_another_can_wrap(patient):
    class Counting:
        def __init__(self):
            self.inner, self.statuses = HttpClient(), []

        @asynccontextmanager
        async def send(self, request):
            async with self.inner.send(request) as response:
                self.statuses.append(response.status)
                yield response

    counting = Counting()
    body = gzip.compress(WHOLE)
    replies = [Reply(headers={"content-encoding": "gzip"}, steps=(body,))] * 2
    with ScriptedServer(replies) as server:
        talk = mull.Conversation("openai-compatible/m", base_url=server.url, http_client=counting)
        assert talk.ask("hi").text == "yes"
        assert talk.fork().ask("again").text == "yes"
    assert counting.statuses == [200, 200]
    assert [request.connection for request in server.requests] == [0, 0]


@pytest.mark.parametrize("option", ["proxy", "verify", "cert"])
def test_options_of_ones_own_client_are_not_for_another(option):
    with pytest.raises(ConfigError, match=f"^{option} has no effect on an http_client: "):
        mull.Conversation("openai/gpt-5", key="k", http_client=Scripted(), **{option: "x"})


def test_a_conversation_goes_before_its_engine():
    engine = mull.Engine(isolated=True, http_client=Scripted(WHOLE))
    options = {"key": "k", "base_url": "https://h.example", "engine": engine}
    assert mull.Conversation("openai-compatible/m", **options).ask("hi").text == "yes"
    mine = Scripted(WHOLE)
    mull.ask("hi", "openai-compatible/m", http_client=mine, **options)
    assert len(mine.requests) == 1
    with ScriptedServer([Reply(headers=EVENTS, steps=(WHOLE,))]) as server:
        options["base_url"] = server.url
        assert mull.ask("hi", "openai-compatible/m", proxy=False, **options).text == "yes"


def test_connections_are_shared_by_those_who_were_given_the_same(patient):
    with ScriptedServer(lambda _: Reply(headers=EVENTS, steps=(WHOLE,))) as server:
        for options in ({}, {}, {"proxy": False}, {"proxy": False}, {"verify": False}):
            mull.ask("hi", "openai-compatible/m", base_url=server.url, **options)
    connections = [request.connection for request in server.requests]
    assert connections[0] == connections[1]
    assert connections[2] == connections[3]
    assert len(set(connections)) == 3


def test_a_context_for_each_call_does_not_pile_up_clients():
    engine = mull.Engine(isolated=True)
    usual = engine.client({})
    first = weakref.ref(engine.client({"verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)}))
    for _ in range(40):
        engine.client({"verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)})
    gc.collect()
    assert first() is None
    assert engine.client({}) is usual


def test_an_engine_says_what_it_does_not_know():
    with pytest.raises(TypeError, match=r"^Engine\(\) got an unexpected keyword argument 'verfy'$"):
        mull.Engine(isolated=True, verfy=False)


def test_the_config_file_goes_before_the_environment_and_arguments_before_it(tmp_path, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:8")
    config = tmp_path / "config.toml"
    config.write_text('[connection]\nproxy = "http://127.0.0.1:9"\n')
    engine = mull.Engine(mull.load_setup(config=config))
    with ScriptedServer(lambda _: Reply(headers=EVENTS, steps=(WHOLE,))) as server:
        options = {
            "base_url": server.url,
            "engine": engine,
            "limits": mull.ExchangeOptions(retry=mull.RetryRules(attempts=1)),
        }
        with pytest.raises(NetworkError, match=r"refused\n\(through the proxy given as proxy=\)$"):
            mull.ask("hi", "openai-compatible/m", **options)
        assert mull.ask("hi", "openai-compatible/m", proxy=False, **options).text == "yes"
    both = '[connection]\nhttp_client = "corp"\nproxy = "http://127.0.0.1:9"\n'
    config.write_text(both)
    engine = mull.Engine(mull.load_setup(config=config))  # nothing is wrong until it is used
    with pytest.raises(ConfigError, match="proxy has no effect on an http_client"):
        mull.ask("hi", "openai-compatible/m", base_url="http://h.example", engine=engine)
