"""The transport against real sockets: live chunks, cancellation, silence, and what it says."""

from __future__ import annotations

import asyncio
import math
import zlib

import pytest

from loops import run_moved, until
from mull.client.http import HttpClient
from mull.client.transport import HttpRequest, host_of
from mull.neutral.errors import ConfigError, NetworkError, SilenceError
from mull.testing.server import CUT, STALL, Gate, Reply, ScriptedServer


@pytest.fixture(autouse=True)
def _no_detours(monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def post(server, path="/v1/x", body=b"{}", **headers):
    return HttpRequest("POST", server.url + path, headers, body)


def run(step):
    async def main():
        transport = HttpClient()
        try:
            return await step(transport)
        finally:
            await transport.close()

    return asyncio.run(main())


async def arrival(server):
    """The request is there, and this side, which has sent it, waits for what comes."""
    assert await asyncio.to_thread(server.wait_requests)


async def read_all(transport, request, heard=None, **limits):
    heard = [] if heard is None else heard
    async with transport.send(request, **limits) as answer:
        async for chunk in answer:
            heard.append(chunk)
    return heard


def test_the_request_arrives_as_given():
    with ScriptedServer([Reply.json({"ok": True}, 201, {"X-Thing": "A"})]) as server:

        async def step(transport):
            request = post(server, body=b'{"a":1}', authorization="Bearer k1", accept="x/y")
            async with transport.send(request) as answer:
                assert (answer.status, answer.headers["x-thing"]) == (201, "A")
                return await answer.read(100)

        assert run(step) == b'{"ok":true}'
    (got,) = server.requests
    assert (got.method, got.path, got.body) == ("POST", "/v1/x", b'{"a":1}')
    assert got.headers["authorization"] == "Bearer k1"
    assert got.headers["accept"] == "x/y"
    assert got.headers["accept-encoding"] == "identity"
    assert got.headers["user-agent"].startswith("mull/")


def test_chunks_arrive_live_and_as_they_were_sent():
    gates = [Gate(), Gate()]
    steps = (b"data: a\n\n", gates[0], b": ping\n\n", gates[1], b"x" * 100_000)
    with ScriptedServer([Reply(steps=steps)]) as server:

        async def step(transport):
            got = b""
            async with transport.send(post(server)) as answer:
                assert await anext(answer) == b"data: a\n\n"
                gates[0].open()  # only now: the first chunk was not held back
                assert await anext(answer) == b": ping\n\n"
                gates[1].open()
                async for chunk in answer:
                    assert type(chunk) is bytes
                    got += chunk
            return got

        assert run(step) == b"x" * 100_000


def test_read_is_cut_at_its_limit():
    with ScriptedServer([Reply(steps=(b"a" * 90, b"b" * 90, STALL))]) as server:

        async def step(transport):
            async with transport.send(post(server)) as answer:
                return await answer.read(100)

        assert run(step) == b"a" * 90 + b"b" * 10


def test_one_connection_serves_several_requests():
    with ScriptedServer(lambda _: Reply.events("x")) as server:

        async def step(transport):
            for _ in range(3):
                await read_all(transport, post(server))

        run(step)
    assert [request.connection for request in server.requests] == [0, 0, 0]


def test_a_fresh_connection_that_breaks_is_an_error():
    with ScriptedServer([Reply.hang_up(), Reply.json(2)]) as server:

        async def step(transport):
            with pytest.raises(NetworkError):
                await read_all(transport, post(server))

        run(step)
    assert len(server.requests) == 1


def test_a_connection_kept_too_long_is_not_used():
    with ScriptedServer(lambda _: Reply.json(1)) as server:

        async def main(loop):
            transport = HttpClient()
            await read_all(transport, post(server))
            await loop.advance(60)
            await read_all(transport, post(server))
            await transport.close()

        run_moved(main)
    assert [request.connection for request in server.requests] == [0, 1]


def test_a_transport_outlives_its_event_loop():
    transport = HttpClient()
    with ScriptedServer(lambda _: Reply.json(1)) as server:

        async def step():
            pieces = await read_all(transport, post(server))
            await transport.close()
            return pieces

        assert asyncio.run(step()) == asyncio.run(step()) == [b"1"]


def test_an_early_answer_to_a_large_body_is_heard():
    with ScriptedServer(lambda _: Reply.json({"error": "too large"}, 413)) as server:

        async def step(transport):
            async with transport.send(post(server, body=b"x" * 5_000_000)) as answer:
                return answer.status

        assert run(step) == 413


def test_a_slow_reader_holds_the_endpoint_back():
    piece = b"x" * 200_000
    with ScriptedServer([Reply(steps=[piece] * 50)]) as server:

        async def step(transport):
            size = 0
            async with transport.send(post(server)) as answer:
                await asyncio.sleep(0.05)
                assert answer._connection._size < 2_000_000
                async for chunk in answer:
                    size += len(chunk)
            return size

        assert run(step) == 50 * len(piece)


@pytest.mark.parametrize("reply", [Reply(steps=(b"x", STALL)), Reply(before=(STALL,))])
def test_cancelling_closes_the_socket_at_once(reply):
    with ScriptedServer([reply]) as server:

        async def step(transport):
            task = asyncio.create_task(read_all(transport, post(server)))
            await arrival(server)
            task.cancel()
            assert await asyncio.to_thread(server.requests[0].wait_left)
            with pytest.raises(asyncio.CancelledError):
                await task

        run(step)


def test_leaving_the_block_closes_the_socket_at_once():
    with ScriptedServer([Reply(steps=(b"x", STALL))]) as server:

        async def step(transport):
            async with transport.send(post(server)) as answer:
                await anext(answer)
            assert await asyncio.to_thread(server.requests[0].wait_left)

        run(step)


def test_packed_bodies_are_unpacked_as_they_come():
    packer = zlib.compressobj(wbits=31)
    first = packer.compress(b"data: one\n\n") + packer.flush(zlib.Z_SYNC_FLUSH)
    second = packer.compress(b"data: two\n\n") + packer.flush()
    gate = Gate()
    reply = Reply(headers={"content-encoding": "gzip"}, steps=(first, gate, second))
    with ScriptedServer([reply]) as server:

        async def step(transport):
            async with transport.send(post(server)) as answer:
                assert await anext(answer) == b"data: one\n\n"
                gate.open()
                assert b"".join([chunk async for chunk in answer]) == b"data: two\n\n"

        run(step)


def test_redirects_are_not_followed():
    with ScriptedServer() as elsewhere:
        reply = Reply(307, {"location": elsewhere.url, "content-length": "0"})
        with ScriptedServer([reply]) as server:

            async def step(transport):
                async with transport.send(post(server, authorization="Bearer k1")) as answer:
                    return answer.status, answer.headers["location"]

            assert run(step) == (307, elsewhere.url)
    assert elsewhere.requests == []


def test_repeated_headers_are_joined():
    answer = b"HTTP/1.1 200 x\r\nset-cookie: a\r\nSet-Cookie: b\r\ncontent-length: 0\r\n\r\n"

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    async def main():
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            transport = HttpClient()
            async with transport.send(HttpRequest("GET", url)) as got:
                assert got.headers["set-cookie"] == "a, b"
            await transport.close()

    asyncio.run(main())


async def silence(loop, server, *, pieces, wait, **limits):
    """Let the transport read so many pieces, after which it waits for good; then move the time."""
    transport, heard = HttpClient(), []
    task = asyncio.create_task(read_all(transport, post(server), heard, **limits))
    await arrival(server)
    await until(lambda: len(heard) == pieces)
    outcomes = []
    for seconds in wait:
        await loop.advance(seconds)
        outcomes.append(task.done())
    try:
        await task
    except NetworkError as error:
        outcomes.append(error)
    await transport.close()
    return outcomes


@pytest.mark.parametrize(
    ("reply", "pieces"), [(Reply(steps=(b"x", STALL)), 1), (Reply(before=(STALL,)), 0)]
)
def test_silence_is_noticed_at_the_stated_time(reply, pieces):
    def listen(loop):
        return silence(loop, server, pieces=pieces, wait=(119, 1.1), idle=120)

    with ScriptedServer([reply]) as server:
        outcome = run_moved(listen)
        assert outcome[:1] == [False]
        assert type(outcome[-1]) is SilenceError
        assert str(outcome[-1]) == f"127.0.0.1:{server.port} sent nothing for 120 s"
        assert server.requests[0].wait_left()


def test_the_total_limit_is_another_thing():
    def listen(loop):
        return silence(loop, server, pieces=1, wait=(99, 1.1), idle=300, total=100)

    with ScriptedServer([Reply(steps=(b"x", STALL))]) as server:
        outcome = run_moved(listen)
        assert outcome[:1] == [False]
        assert type(outcome[-1]) is NetworkError
        assert str(outcome[-1]) == (
            f"127.0.0.1:{server.port} was not finished after 100 s, the time limit"
        )


def test_two_hundred_slow_deltas_are_no_silence():
    gates = [Gate() for _ in range(200)]
    steps = [step for gate in gates for step in (b"data: {}\n\n", gate)]

    async def main(loop):
        transport, heard = HttpClient(), asyncio.Queue()

        async def listen():
            async with transport.send(post(server), idle=120) as answer:
                async for _ in answer:
                    heard.put_nowait(None)

        task = asyncio.create_task(listen())
        for gate in gates:
            await heard.get()
            await asyncio.sleep(0)  # the reader waits again
            await loop.advance(119)
            assert not task.done()
            gate.open()
        await task
        await transport.close()
        return loop.moved

    with ScriptedServer([Reply(steps=steps)]) as server:
        assert run_moved(main) == 200 * 119


def test_a_slow_reader_is_not_the_endpoints_silence():
    gate = Gate()
    with ScriptedServer([Reply(steps=(b"a", gate, b"b"))]) as server:

        async def main(loop):
            transport = HttpClient()
            async with transport.send(post(server), idle=120, total=5_000) as answer:
                await anext(answer)
                await loop.advance(1_000)  # the caller is busy elsewhere
                gate.open()
                assert await anext(answer) == b"b"
            await transport.close()

        run_moved(main)


def test_a_long_upload_is_not_silence_yet():
    body = b"x" * (64 * 1024 * 100)
    with ScriptedServer([Reply(before=(STALL,))]) as server:

        async def main(loop):
            transport = HttpClient()
            request = HttpRequest("POST", server.url, {}, body)
            task = asyncio.create_task(read_all(transport, request, idle=120))
            await arrival(server)
            await loop.advance(219)
            assert not task.done()
            await loop.advance(1.5)
            with pytest.raises(SilenceError):
                await task
            await transport.close()

        run_moved(main)


def test_after_a_long_upload_silence_counts_as_ever():
    body = b"x" * (64 * 1024 * 100)
    with ScriptedServer([Reply(steps=(b"x", STALL))]) as server:

        async def main(loop):
            transport = HttpClient()
            request = HttpRequest("POST", server.url, {}, body)
            async with transport.send(request, idle=120) as answer:
                await anext(answer)
                task = asyncio.ensure_future(anext(answer))
                await asyncio.sleep(0)
                await loop.advance(121)
                with pytest.raises(SilenceError):
                    await task
            await transport.close()

        run_moved(main)


def test_cancelling_from_outside_stays_a_cancellation():
    with ScriptedServer([Reply(before=(STALL,))]) as server:

        async def main(loop):
            transport = HttpClient()
            task = asyncio.create_task(read_all(transport, post(server), idle=120))
            await arrival(server)
            loop.moved += 121
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await transport.close()

        run_moved(main)


def failure(request, **options):
    async def main():
        transport = HttpClient(**options)
        try:
            await read_all(transport, request)
        finally:
            await transport.close()

    with pytest.raises((NetworkError, ConfigError)) as caught:
        asyncio.run(main())
    return caught.value


def test_nobody_listens():
    error = failure(HttpRequest("POST", "http://127.0.0.1:9/v1?key=canary"))
    assert type(error) is NetworkError
    assert str(error) == "cannot connect to 127.0.0.1:9: connection refused"


def test_no_such_host():
    error = failure(HttpRequest("POST", "http://user:canary@no-such-host.invalid/v1"))
    assert type(error) is NetworkError
    assert str(error).startswith("cannot find no-such-host.invalid: ")
    assert "canary" not in str(error)


def test_hanging_up_before_the_answer():
    with ScriptedServer([Reply.hang_up()]) as server:
        error = failure(post(server))
    assert str(error).startswith(f"the connection to 127.0.0.1:{server.port} broke: ")


@pytest.mark.parametrize("headers", [{}, {"content-length": "100"}])
def test_breaking_in_the_middle(headers):
    with ScriptedServer([Reply(headers=headers, steps=(b"half", CUT))]) as server:
        error = failure(post(server))
    assert type(error) is NetworkError
    assert str(error).startswith(f"the connection to 127.0.0.1:{server.port} broke: ")


def test_a_connection_that_never_stands():
    # A listening socket whose queue is full answers nothing.
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        with socket.socket() as first, socket.socket() as second:
            for filler in (first, second):
                filler.setblocking(False)
                filler.connect_ex(listener.getsockname())
            port = listener.getsockname()[1]
            request = HttpRequest("POST", f"http://127.0.0.1:{port}/")
            error = failure(request, connect_seconds=0.1)
    told = "no answer within 0.1 s"
    assert str(error) == f"cannot connect to 127.0.0.1:{port}: {told}"


@pytest.mark.parametrize("url", ["nonsense", "ftp://host/x", "http://host:99999/", "http://"])
def test_addresses_that_are_none(url):
    assert type(failure(HttpRequest("POST", url))) is ConfigError


def test_a_key_that_cannot_be_sent_is_not_shown():
    request = HttpRequest("POST", "http://127.0.0.1:9/", {"x-api-key": "canary\nkey"}, b"canary")
    error = failure(request)
    assert type(error) is ConfigError
    assert "'x-api-key'" in str(error)
    assert "canary" not in f"{error!r}{error.__cause__!r}{request!r}"
    assert error.__suppress_context__


def test_hosts_as_people_see_them():
    assert host_of("https://user:secret@h.example:8443/v1?key=secret") == "h.example:8443"
    assert host_of("nonsense") == host_of("http://[x") == "the endpoint"


def test_no_limits_means_no_timer():
    with ScriptedServer([Reply(steps=(b"x", STALL))]) as server:

        async def main(loop):
            transport = HttpClient()
            async with transport.send(post(server), idle=math.inf) as answer:
                await anext(answer)
                task = asyncio.ensure_future(anext(answer))
                await loop.advance(1e6)
                assert not task.done()
                task.cancel()
                await asyncio.wait([task])
            await transport.close()

        run_moved(main)
