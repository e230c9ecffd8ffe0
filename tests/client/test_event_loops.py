"""On which event loops the asynchronous calls work: asyncio's, uvloop's, anyio over both; not trio.

uvloop, anyio and trio are development tools of this project: where one is missing these tests fail.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from functools import partial

import anyio
import pytest
import trio
import trustme
import uvloop

import mull
from mull.client.http import HttpClient
from mull.client.transport import HttpRequest
from mull.neutral.errors import LocalError, NetworkError, SilenceError
from mull.testing import CUT, STALL, Reply, Say, ScriptedServer, StrictServer, Think


def over_anyio(coroutine, **options):
    async def main():
        return await coroutine

    return anyio.run(main, backend_options=options)


RUNS = {
    "asyncio": asyncio.run,
    "uvloop": uvloop.run,
    "anyio": over_anyio,
    "anyio over uvloop": partial(over_anyio, use_uvloop=True),
}


@pytest.fixture(params=RUNS)
def run(request):
    return RUNS[request.param]


MODELS = [
    ("kimi", "moonshotai/kimi-k2-thinking"),
    ("anthropic", "anthropic/claude-sonnet-4-5"),
    ("gemini", "google/gemini-3-pro-preview"),
    ("openai", "openai/gpt-5"),
]


def look(at: str) -> str:
    """Look at something."""
    return f"saw {at}"


@pytest.mark.parametrize(("provider", "model"), MODELS)
def test_a_conversation_on_every_loop(run, provider, model):
    script = [[Think(f"thought {n}"), Say(f"answer {n}")] for n in range(3)]
    with StrictServer(provider, script) as server:

        async def main():
            async with mull.Conversation(model, base_url=server.url, key="k") as talk:
                texts = [(await talk.ask_async("q")).text]
                stream = talk.stream_async("q")
                kinds = {type(event).__name__ async for event in stream}
                texts.append(stream.result.text)
                texts.append((await talk.ask_async("q")).text)
            return texts, kinds

        texts, kinds = run(main())
    assert texts == ["answer 0", "answer 1", "answer 2"]
    assert {"ThinkingDelta", "TextDelta", "Finished"} <= kinds
    assert not server.refusals


def ask(run, url, path="", body=b"{}", **limits):
    async def main():
        transport = HttpClient(connect_seconds=5)
        try:
            request = HttpRequest("POST", url + path, {}, body)
            async with transport.send(request, **limits) as answer:
                return b"".join([piece async for piece in answer])
        finally:
            await transport.close()

    return run(main())


def test_connections_are_kept(run):
    with ScriptedServer(lambda _: Reply.json("x")) as server:

        async def main():
            transport = HttpClient()
            for _ in range(4):
                async with transport.send(HttpRequest("POST", server.url)) as answer:
                    await answer.read(9)
            await transport.close()

        run(main())
        assert [one.connection for one in server.requests] == [0, 0, 0, 0]


def test_tls(run, tmp_path, monkeypatch):
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    with ScriptedServer(lambda _: Reply(steps=(b"a" * 3_000_000, b"b")), tls=context) as server:
        with pytest.raises(NetworkError, match="cannot trust"):
            ask(run, server.url)
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        assert ask(run, server.url) == b"a" * 3_000_000 + b"b"
        assert ask(run, server.url.replace("127.0.0.1", "localhost"))[-1:] == b"b"


def test_large_bodies_both_ways(run):
    with ScriptedServer([Reply(steps=[b"x" * 200_000] * 50)]) as server:
        assert ask(run, server.url, body=b"y" * 5_000_000) == b"x" * 10_000_000
        assert len(server.requests[0].body) == 5_000_000


@pytest.mark.parametrize("reply", [Reply.hang_up(), Reply(steps=(b"half", CUT))])
def test_what_breaks(run, reply):
    with ScriptedServer([reply]) as server, pytest.raises(NetworkError, match=" broke: "):
        ask(run, server.url)


def test_nobody_listens(run):
    with pytest.raises(NetworkError) as caught:
        ask(run, "http://127.0.0.1:9")
    assert str(caught.value) == "cannot connect to 127.0.0.1:9: connection refused"


@pytest.mark.parametrize("reply", [Reply(before=(STALL,)), Reply(steps=(b"x", STALL))])
def test_silence(run, reply):
    with ScriptedServer([reply]) as server:
        with pytest.raises(SilenceError):
            ask(run, server.url, idle=0.1)
        assert server.wait_requests()
        assert server.requests[0].wait_left()


@pytest.mark.parametrize("reply", [Reply(before=(STALL,)), Reply(steps=(b"x", STALL))])
def test_cancelling_closes_the_socket(run, reply):
    with ScriptedServer([reply]) as server:

        async def main():
            transport, heard = HttpClient(), asyncio.Event()

            async def read():
                async with transport.send(HttpRequest("POST", server.url)) as answer:
                    async for _ in answer:
                        heard.set()

            task = asyncio.ensure_future(read())
            assert await asyncio.to_thread(server.wait_requests)
            if reply.steps:
                await heard.wait()
            task.cancel()
            assert await asyncio.to_thread(server.requests[0].wait_left)
            with pytest.raises(asyncio.CancelledError):
                await task
            await transport.close()

        run(main())


@pytest.mark.parametrize("loop", ["anyio", "anyio over uvloop"])
def test_a_scope_that_is_left_closes_the_socket(loop):
    with ScriptedServer([Reply(steps=(b"x", STALL))]) as server:

        async def main():
            transport = HttpClient()
            with anyio.CancelScope() as scope:
                async with transport.send(HttpRequest("POST", server.url)) as answer:
                    async for _ in answer:
                        scope.cancel()
            assert scope.cancelled_caught
            assert await asyncio.to_thread(server.requests[0].wait_left)
            await transport.close()

        RUNS[loop](main())


def test_an_address_that_says_nothing_does_not_hold_up_the_others(run, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    with socket.socket() as silent, ScriptedServer(lambda _: Reply.json("x")) as server:
        silent.bind(("127.0.0.1", 0))
        silent.listen(0)
        addresses = [silent.getsockname(), ("127.0.0.1", server.port)]

        async def find(_, host, port, **__):
            found = addresses if host == b"model.example" else [(host, port)]
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", where) for where in found]

        async def main():
            monkeypatch.setattr(type(asyncio.get_running_loop()), "getaddrinfo", find)
            transport = HttpClient(connect_seconds=50)
            async with transport.send(HttpRequest("POST", "http://model.example")) as answer:
                came = await answer.read(9)
            await transport.close()
            return came

        with socket.socket() as first, socket.socket() as second:
            for filler in (first, second):
                filler.setblocking(False)
                filler.connect_ex(silent.getsockname())  # until its queue is full
            assert run(main()) == b'"x"'


def test_trio_is_told_what_to_do():
    async def main():
        async with HttpClient().send(HttpRequest("POST", "http://127.0.0.1:9")):
            pass

    with pytest.raises(LocalError) as caught:
        trio.run(main)
    assert str(caught.value) == (
        "mull's asynchronous calls need asyncio (its own event loop, uvloop's, or anyio over"
        " either), and none is running here: under trio, run the blocking calls in a thread"
    )


async def _every(events):
    return [event async for event in events]


async def _opened(**place):
    session = await mull.open_session_async(**place)
    await session.ask_async("q")


ENTRANCES = {
    "ask": lambda **place: mull.ask_async("q", **place),
    "ask with tools": lambda **place: mull.ask_async("q", tools=[len], **place),
    "stream": lambda **place: _every(mull.stream_async("q", **place)),
    "complete": lambda **place: mull.complete_async([mull.user("q")], **place),
    "complete stream": lambda **place: _every(
        mull.complete_stream_async([mull.user("q")], **place)
    ),
    "conversation": lambda **place: mull.Conversation(**place).ask_async("q"),
    "conversation stream": lambda **place: _every(mull.Conversation(**place).stream_async("q")),
    "session": _opened,
    "batch": lambda **place: mull.batch_async(["a", "b"], **place).results(),
    "batch, one by one": lambda **place: _every(mull.batch_async(["a", "b"], **place)),
}


@pytest.mark.parametrize("loop", ["trio", "none"])
@pytest.mark.parametrize("entrance", ENTRANCES)
def test_every_asynchronous_call_tells_what_to_do_without_asyncio(entrance, loop):
    async def main():
        model = "openai-compatible/m"
        await ENTRANCES[entrance](model=model, base_url="http://127.0.0.1:9", key="k")

    with pytest.raises(LocalError, match="under trio, run the blocking calls in a thread"):
        trio.run(main) if loop == "trio" else main().send(None)


def test_nothing_is_recorded_of_a_question_that_cannot_be_asked():
    talk = mull.Conversation("openai-compatible/m", base_url="http://127.0.0.1:9", key="k")
    with pytest.raises(LocalError, match="under trio"):
        trio.run(talk.ask_async, "q")
    assert len(talk.log) == 0


def test_the_blocking_calls_work_under_trio():
    with StrictServer("kimi", [[Think("hm"), Say("yes")]]) as server:
        ask = partial(mull.ask, "q", MODELS[0][1], base_url=server.url, key="k")
        assert trio.run(trio.to_thread.run_sync, ask).text == "yes"
