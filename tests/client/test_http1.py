"""HTTP/1.1 framing: golden answers in every cut, and h11 as an independent judge."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.client.http1 import AnswerReader, ProtocolError, encode_head


def read(data: bytes, cuts: list[int] | None = None, *, method: str = "POST", ends: bool = False):
    reader, body = AnswerReader(method), b""
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts or []), len(data)]
    for start, end in pairwise(edges):
        if end > start:
            body += reader.feed(data[start:end])
    if ends:
        reader.close()
    return reader, body


GOLDEN = [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, b"hello", True),
    (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 200, b"", True),
    (b"HTTP/1.1 204 \r\n\r\n", 204, b"", True),
    (b"HTTP/1.1 304 x\r\ncontent-length: 5\r\n\r\n", 304, b"", True),
    (b"HTTP/1.1 200\r\nContent-Length: 2, 2\r\n\r\nhi", 200, b"hi", True),
    (
        b"HTTP/1.1 100 Continue\r\nx: y\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na",
        200,
        b"a",
        True,
    ),
    (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\ncontent-length: 99\r\n\r\n"
        b"5;ext=1\r\nhello\r\n00A\r\n worldwide\r\n0\r\nx-trailer: 1\r\n\r\n",
        200,
        b"hello worldwide",
        True,
    ),
    (b"HTTP/1.1 200 OK\ncontent-length: 2\n\nhi", 200, b"hi", True),
    (b"HTTP/1.1 200 OK\r\nconnection: Close\r\ncontent-length: 2\r\n\r\nhi", 200, b"hi", False),
    (b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nhi", 200, b"hi", False),
    (
        b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nhi",
        200,
        b"hi",
        True,
    ),
    (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi and junk", 200, b"hi", False),
    (b"\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", 200, b"hi", True),
    (
        b"\n\n\nHTTP/1.1 103 x\r\n\r\n\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na",
        200,
        b"a",
        True,
    ),
]


@pytest.mark.parametrize(("data", "status", "body", "reusable"), GOLDEN)
@given(cuts=st.lists(st.integers(0, 500), max_size=6))
def test_answers_do_not_depend_on_the_cuts(data, status, body, reusable, cuts):
    reader, got = read(data, cuts)
    assert (reader.status, got, reader.done, reader.reusable) == (status, body, True, reusable)


@pytest.mark.parametrize(("data", "status", "body", "reusable"), GOLDEN)
def test_one_byte_at_a_time(data, status, body, reusable):
    reader, got = read(data, list(range(len(data))))
    assert (reader.status, got, reader.done) == (status, body, True)


def test_an_answer_without_a_length_ends_with_the_connection():
    data = b"HTTP/1.1 200 OK\r\n\r\nall of it"
    reader, body = read(data)
    assert (body, reader.done) == (b"all of it", False)
    reader, body = read(data, ends=True)
    assert (body, reader.done, reader.reusable) == (b"all of it", True, False)


def test_a_head_alone():
    reader, body = read(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", method="HEAD")
    assert (body, reader.done, reader.reusable) == (b"", True, True)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "it was closed before it answered"),
        (b"HTTP/1.1 200 OK\r\ncontent-le", "it was closed before it answered"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhell",
            "it was closed in the middle of the response",
        ),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
            "it was closed in the middle of the response",
        ),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello!\r\n",
            "a chunk is longer than its size",
        ),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhell\r\n5\r\nhello\r\n",
            "a chunk is shorter than its size",
        ),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-5\r\nhello\r\n",
            "a chunk without a size",
        ),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0x5\r\nhello\r\n",
            "a chunk without a size",
        ),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 5, 6\r\n\r\n",
            "its content-length is not a number of bytes",
        ),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n",
            "its content-length is not a number of bytes",
        ),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: " + b"1" * 5_000 + b"\r\n\r\n",
            "its content-length is not a number of bytes",
        ),
        (
            b"HTTP/1.1 200 OK\r\nx-a: b\0c\r\ncontent-length: 0\r\n\r\n",
            "the head of its response contains a NUL byte",
        ),
        (b"\r\n" * 200_000, "the head of the response has no end"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "its response is not HTTP"),
        (b"HTTP/1.1 2000 OK\r\n\r\n", "its response is not HTTP"),
        (b"x" * 300_000, "the head of the response has no end"),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"1" * 20_000,
            "a line between two chunks has no end",
        ),
    ],
)
def test_what_is_not_http(data, said):
    with pytest.raises(ProtocolError, match=f"^{said}"):
        read(data, ends=True)


@given(st.binary(max_size=200), st.lists(st.integers(0, 300), max_size=4))
def test_nothing_but_protocol_errors(junk, cuts):
    for start in (
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 x\r\ntransfer-encoding:chunked\r\n\r\n",
    ):
        with suppress(ProtocolError):
            read(start + junk, cuts, ends=True)


pieces = st.lists(st.binary(min_size=1, max_size=50), max_size=8)


@given(pieces, st.booleans(), st.lists(st.integers(0, 1000), max_size=8))
def test_as_h11_writes_it(body, chunked, cuts):
    server = h11.Connection(h11.SERVER)
    server.receive_data(encode_head("POST", "/v1", {"host": "h", "content-length": "0"}))
    assert isinstance(server.next_event(), h11.Request)
    server.next_event()
    size = str(sum(map(len, body)))
    framing = ("transfer-encoding", "chunked") if chunked else ("content-length", size)
    data = server.send(h11.Response(status_code=200, headers=[framing, ("x-y", "z")])) or b""
    for piece in body:
        data += server.send(h11.Data(data=piece)) or b""
    data += server.send(h11.EndOfMessage()) or b""
    reader, got = read(data, cuts)
    assert (got, reader.done, reader.reusable) == (b"".join(body), True, True)
    assert reader.headers["x-y"] == "z"


CHUNKED = b"HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n"
sizes = (b"%x", b"%X", b"0%x", b"%x ", b" %x", b"%x;a=b", b"0x%x", b"+%x", b"-%x", b"%x_0", b"%xg")
spellings = st.builds(bytes.__add__, st.sampled_from(sizes), st.sampled_from([b"\r\n", b"\n"]))
ends = st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n", b"", b"x\r\n", b"\r"])
chunks = st.lists(
    st.tuples(
        st.one_of(st.just(b"%x\r\n"), spellings),
        st.one_of(st.binary(min_size=1, max_size=20), st.just(b"x" * 300)),
        st.one_of(st.just(b"\r\n"), ends),
    ),
    max_size=6,
)


def outcome(data, cuts):
    """The body and the end, or what is wrong."""
    try:
        reader, body = read(data, cuts, ends=True)
    except ProtocolError as error:
        return str(error)
    return body, reader.done, reader.reusable


@given(chunks, st.lists(st.integers(0, 3000), max_size=8))
def test_however_chunks_are_written_the_cuts_do_not_matter(chunks, cuts):
    parts = [spelling % len(body) + body + end for spelling, body, end in chunks]
    data = CHUNKED + b"".join(parts) + b"0\r\n\r\n"
    assert outcome(data, cuts) == outcome(data, []) == outcome(data, list(range(len(data))))


def test_a_request_as_h11_reads_it():
    server = h11.Connection(h11.SERVER)
    server.receive_data(encode_head("POST", "/v1?a=b", {"host": "h", "x-key": "ä \t~"}))
    request = server.next_event()
    assert (request.method, request.target) == (b"POST", b"/v1?a=b")
    assert dict(request.headers)[b"x-key"] == "ä \t~".encode("latin-1")


@pytest.mark.parametrize(
    ("target", "headers"),
    [
        ("/a b", {}),
        ("/a\r\nx: y", {}),
        ("/ü", {}),
        ("/", {"x": "canary\r\nhost: evil"}),
        ("/", {"x": "canary\n"}),
        ("/", {"x": "canary\0"}),
        ("/", {"x": "canary€"}),
        ("/", {"x y": "canary"}),
        ("/", {"": "canary"}),
    ],
)
def test_what_cannot_be_sent_is_refused_without_its_value(target, headers):
    with pytest.raises(ProtocolError) as caught:
        encode_head("POST", target, headers)
    assert "canary" not in str(caught.value)
