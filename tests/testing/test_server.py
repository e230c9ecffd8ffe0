"""The scripted server, seen by clients that are not mull's: urllib and bare sockets."""

from __future__ import annotations

import asyncio
import gc
import http.client
import socket
import threading
import urllib.error
import urllib.request
from contextlib import suppress

import pytest

from mull.testing.server import CUT, STALL, Gate, Reply, ScriptedServer


def ask(server, path="/v1/x", body=b"{}"):
    request = urllib.request.Request(server.url + path, body, {"X-Test": "Yes"}, method="POST")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return opener.open(request, timeout=5)


def connected(server):
    return socket.create_connection(("127.0.0.1", server.port), timeout=5)


def test_replies_come_in_order_and_requests_are_recorded():
    script = [Reply.json({"a": 1}), Reply.json({"b": 2}, 201, {"x-more": "1"})]
    with ScriptedServer(script) as server:
        with ask(server, body=b'{"n": 1}') as answer:
            assert (answer.status, answer.read()) == (200, b'{"a":1}')
        with ask(server, "/other") as answer:
            assert (answer.status, answer.read(), answer.headers["x-more"]) == (
                201,
                b'{"b":2}',
                "1",
            )
    first, second = server.requests
    assert (first.method, first.path, first.json) == ("POST", "/v1/x", {"n": 1})
    assert first.headers["x-test"] == "Yes"
    assert second.path == "/other"


def test_a_request_beyond_the_script_is_told_so():
    with ScriptedServer([]) as server, pytest.raises(urllib.error.HTTPError) as caught:
        ask(server, "/surprise")
    with caught.value as error:
        assert error.status == 404
        assert b"no reply is scripted for /surprise" in error.read()


def test_a_function_may_answer():
    with ScriptedServer(lambda request: Reply.json({"path": request.path})) as server:
        for path in ("/a", "/b"):
            with ask(server, path) as answer:
                assert answer.read() == f'{{"path":"{path}"}}'.encode()


def test_events_are_chunks_of_their_own():
    script = [Reply.events({"x": 1}, b": ping\n\n", "[DONE]")]
    with ScriptedServer(script) as server, connected(server) as client:
        client.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        data = b""
        while not data.endswith(b"0\r\n\r\n"):
            data += client.recv(4096)
    head, _, body = data.partition(b"\r\n\r\n")
    assert b"transfer-encoding: chunked" in head
    assert body == (
        b'f\r\ndata: {"x":1}\n\n\r\n8\r\n: ping\n\n\r\ne\r\ndata: [DONE]\n\n\r\n0\r\n\r\n'
    )


def test_a_gate_holds_the_rest_back():
    gate = Gate()
    with ScriptedServer([Reply(steps=(b"one", gate, b"two"))]) as server, ask(server) as answer:
        assert answer.read(3) == b"one"
        assert gate.wait_reached()
        gate.open()
        assert answer.read() == b"two"


def test_an_open_gate_holds_nobody():
    gate = Gate()
    gate.open()
    script = [Reply(steps=(gate, b"x"), before=(gate,))]
    with ScriptedServer(script) as server, ask(server) as answer:
        assert answer.read() == b"x"


def test_cut_in_the_middle():
    broken = (http.client.IncompleteRead, ConnectionError)
    server = ScriptedServer([Reply(steps=(b"half", CUT, b"never"))])
    with server, ask(server) as answer, pytest.raises(broken):
        answer.read()


def test_hanging_up():
    broken = (http.client.RemoteDisconnected, ConnectionError)
    with ScriptedServer([Reply.hang_up()]) as server, pytest.raises(broken):
        ask(server)


def test_it_notices_who_leaves():
    with ScriptedServer([Reply(steps=(b"x", STALL)), Reply.json({})]) as server:
        with ask(server) as answer:
            assert answer.read(1) == b"x"
            assert not server.requests[0].wait_left(0)
        assert server.requests[0].wait_left()
        with ask(server) as answer:
            answer.read()
        assert not server.requests[1].wait_left(0)


def test_ends_by_length_and_by_closing():
    replies = [
        Reply(headers={"content-length": "3"}, steps=(b"abc",)),
        Reply(headers={"connection": "close"}, steps=(b"abcd",)),
    ]
    with ScriptedServer(replies) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
        for expected in (b"abc", b"abcd"):
            connection.request("GET", "/")
            assert connection.getresponse().read() == expected
        connection.close()
    assert [request.connection for request in server.requests] == [0, 0]


def test_asynchronous_use():
    async def main():
        async with ScriptedServer([Reply.json([1])]) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"GET /q HTTP/1.1\r\n\r\n")
            assert (await reader.readuntil(b"[1]")).startswith(b"HTTP/1.1 200 ")
            writer.close()
            await writer.wait_closed()
        assert server.requests[0].path == "/q"

    asyncio.run(main())


def test_who_leaves_while_the_reply_is_being_sent_has_left():
    """However much of it was out by then."""
    with ScriptedServer([Reply(steps=[b"x" * 100_000] * 100)] * 20) as server:
        for number in range(20):
            client = connected(server)
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert client.recv(1 + number * 5_000)
            client.close()
            assert server.requests[-1].wait_left()


def test_nothing_is_left_behind():
    before = set(threading.enumerate())
    with ScriptedServer([Reply(steps=(STALL,))]) as server:
        client = connected(server)
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert server.wait_requests()
    assert set(threading.enumerate()) <= before
    with client, suppress(ConnectionError):
        while client.recv(4096):  # the end comes, or an error
            pass
    with pytest.raises(OSError, match=r"refused"):
        connected(server)


def test_waiting_for_what_does_not_come():
    with ScriptedServer([]) as server:
        assert not server.wait_requests(timeout=0)


def test_who_comes_at_the_last_moment_is_let_go():
    """What asyncio is just letting in while it closes would be left to the garbage collector."""
    for _ in range(20):
        callers = [socket.socket() for _ in range(20)]
        with ScriptedServer([]) as server:
            for caller in callers:
                caller.setblocking(False)
                caller.connect_ex(("127.0.0.1", server.port))
        for caller in callers:
            caller.close()
    gc.collect()
