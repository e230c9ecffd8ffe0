"""Faults are where they are told to be, and the proxy passes on everything else unharmed."""

from __future__ import annotations

import http.client
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.testing import (
    CUT,
    RESET,
    STALL,
    Call,
    Fault,
    FaultProxy,
    Pause,
    Reply,
    Say,
    ScriptedServer,
    StrictServer,
    Think,
)
from mull.testing.faults import KINDS, Response, inflict
from mull.testing.proxy import read_response
from naive_clients import CHAIN, CLIENTS, post

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
STREAM = Response(HEAD, [b"data: 1\n\nda", b"ta: 2\n\n", b"data: 3\n\n"])
ENDED = b"0\r\n\r\n"
bodies = st.lists(st.binary(min_size=1, max_size=9), max_size=5)


def chunk(data):
    return b"%x\r\n%b\r\n" % (len(data), data)


def sent(steps):
    return b"".join(step for step in steps if isinstance(step, bytes))


@given(bodies, st.booleans())
def test_the_pieces_are_all_of_it(chunks, chunked):
    response = Response(HEAD, chunks, chunked)
    whole = b"".join(response.pieces("chunk"))
    assert b"".join(response.pieces("byte")) == whole
    assert b"".join(response.events) == response.body
    assert sent(inflict(response, None)) == whole


@given(bodies, st.integers(0, 200), st.sampled_from(["byte", "chunk", "event"]))
def test_what_only_waits_loses_nothing(chunks, at, unit):
    response = Response(HEAD, chunks)
    whole = b"".join(response.pieces(unit))
    for kind in ("delay", "throttle"):
        assert sent(inflict(response, Fault(kind, at, unit))) == whole
    for kind, end in (("cut", CUT), ("reset", RESET)):
        before, *rest = inflict(response, Fault(kind, at, unit))
        assert before == b"".join(response.pieces(unit)[:at])
        assert rest == [end]


def test_events_are_altered_whole_and_framed_anew():
    one, two, three = (chunk(b"data: %d\n\n" % n) for n in (1, 2, 3))
    for kind, expected in (
        ("drop", [one, three]),
        ("duplicate", [one, two, two, three]),
        ("reorder", [one, three, two]),
    ):
        assert inflict(STREAM, Fault(kind, 2, "event")) == [HEAD + b"".join(expected) + ENDED]
    (corrupted,) = inflict(STREAM, Fault("corrupt", 2, "event"))
    assert len(corrupted) == len(HEAD + one + two + three + ENDED)
    assert corrupted != HEAD + one + two + three + ENDED


def test_positions_count_from_the_head():
    assert inflict(STREAM, Fault("cut", 0)) == [b"", CUT]
    assert inflict(STREAM, Fault("cut", 4)) == [b"HTTP", CUT]
    assert inflict(STREAM, Fault("cut", 1, "chunk")) == [HEAD, CUT]
    assert inflict(STREAM, Fault("stall", 1, "event"))[:2] == [HEAD, STALL]
    assert inflict(STREAM, Fault("delay", 1, "event", 2.5))[1] == Pause(2.5)
    (dropped,) = inflict(STREAM, Fault("drop", 0))
    assert dropped.startswith(b"TTP/1.1")


@pytest.mark.parametrize("kind", KINDS)
def test_behind_the_end_nothing_is_harmed(kind):
    assert sent(inflict(STREAM, Fault(kind, 99, "event"))) == b"".join(STREAM.pieces("event"))


@given(bodies, st.booleans())
def test_a_response_is_read_as_it_was_written(chunks, chunked):
    head = (
        HEAD
        if chunked
        else b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % sum(map(len, chunks))
    )
    response = Response(head, chunks if chunked else [b"".join(chunks)], chunked)
    assert read_response(b"".join(response.pieces("chunk"))) == response


@pytest.mark.parametrize(
    "raw", [b"", b"nonsense\r\n\r\n", HEAD, HEAD + b"5\r\nab", HEAD + b"x\r\n"]
)
def test_what_is_not_whole_is_no_response(raw):
    with pytest.raises(ValueError, match=r"."):
        read_response(raw)


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_an_unharmed_conversation_passes(provider):
    with StrictServer(provider, CHAIN) as server, FaultProxy(server.url + "/x") as proxy:
        assert CLIENTS[provider](proxy.url).ask("go") == "Done."
    assert server.refusals == []
    assert len(proxy.responses) == len(server.requests) == 5
    assert server.requests[0].path.startswith("/x/")


def test_each_request_takes_the_next_fault():
    faults = [None, Fault("cut", 10), Fault("reset", 40)]
    script = [Reply.json({"n": n}) for n in range(4)]
    broken = OSError, http.client.HTTPException
    with ScriptedServer(script) as server, FaultProxy(server.url, faults) as proxy:
        assert json.loads(post(proxy.url, {})) == {"n": 0}
        for _ in range(2):
            with pytest.raises(broken):
                post(proxy.url, {})
        assert json.loads(post(proxy.url, {})) == {"n": 3}
    assert proxy.faults == [*faults, None]


def test_nobody_behind_the_proxy_is_told():
    with ScriptedServer() as gone:
        pass
    with FaultProxy(gone.url) as proxy:
        connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=10)
        connection.request("GET", "/")
        assert connection.getresponse().status == 502
        connection.close()


def test_a_stalled_answer_waits_for_the_client_to_leave():
    script = [[Think("x"), Say("y"), Call("f")]]
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "q"}]}
    with (
        StrictServer("kimi", script) as server,
        FaultProxy(server.url, [Fault("stall", 1, "event")]) as proxy,
    ):
        connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=10)
        connection.request("POST", "/chat/completions", json.dumps(body))
        answer = connection.getresponse()
        assert answer.status == 200
        answer.close()
        connection.close()
        assert proxy.requests[0].wait_left()
