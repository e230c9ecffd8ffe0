"""Compressed bodies: every form that servers send, in any cut, in bounded pieces."""

from __future__ import annotations

import asyncio
import gzip
import sys
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.client.http import HttpClient
from mull.client.transport import HttpRequest
from mull.client.unpack import UNPACKED, unpacker
from mull.neutral.errors import UnusableError
from mull.testing.server import Reply, ScriptedServer

TEXT = b"data: {}\n\n" * 500


def deflated(data, wbits):
    squeeze = zlib.compressobj(wbits=wbits)
    return squeeze.compress(data) + squeeze.flush()


FORMS = {
    "gzip": ("gzip", gzip.compress(TEXT)),
    "two members": ("gzip", gzip.compress(TEXT[:2000]) + gzip.compress(TEXT[2000:])),
    "an empty member": ("gzip", gzip.compress(b"") + gzip.compress(TEXT) + gzip.compress(b"")),
    "padded": ("gzip", gzip.compress(TEXT) + b"\0" * 40),
    "old name": ("x-gzip", gzip.compress(TEXT)),
    "deflate with its header": ("deflate", deflated(TEXT, 15)),
    "deflate of a small window": ("deflate", deflated(TEXT, 9)),
    "deflate without its header": ("deflate", deflated(TEXT, -15)),
    "deflate that is gzip": ("deflate", gzip.compress(TEXT)),
}


def unpacked(coding, data, cuts=()):
    reader, body = unpacker(coding), b""
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, end in pairwise(edges):
        body += reader.feed(data[start:end])
        while reader.holds_more:
            piece = reader.feed(b"")
            assert len(piece) <= UNPACKED
            body += piece
    assert reader.fault is None
    return body


@pytest.mark.parametrize(("coding", "data"), FORMS.values(), ids=FORMS)
@given(cuts=st.lists(st.integers(0, 10_000), max_size=8))
def test_bodies_do_not_depend_on_the_cuts(coding, data, cuts):
    assert unpacked(coding, data, cuts) == TEXT


@pytest.mark.parametrize(("coding", "data"), FORMS.values(), ids=FORMS)
def test_one_byte_at_a_time(coding, data):
    assert unpacked(coding, data, range(len(data))) == TEXT


@given(st.binary(max_size=300), st.sampled_from([0, 1, 6, 9]))
def test_raw_deflate_is_told_from_that_with_a_header(data, level):
    for wbits in (15, -15):
        squeeze = zlib.compressobj(level, wbits=wbits)
        assert unpacked("deflate", squeeze.compress(data) + squeeze.flush()) == data


def test_what_is_flushed_comes_out_at_once():
    reader, squeeze = unpacker("deflate"), zlib.compressobj(wbits=-15)
    for event in (b"data: 1\n\n", b"data: 2\n\n"):
        assert reader.feed(squeeze.compress(event) + squeeze.flush(zlib.Z_SYNC_FLUSH)) == event


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_what_is_no_such_data_is_a_fault(coding):
    reader = unpacker(coding)
    assert reader.feed(b"\xff\xff\xff\xff nonsense") == b""
    assert reader.fault is not None
    assert (reader.feed(b"more"), reader.holds_more) == (b"", False)


def ask(reply):
    async def main():
        client = HttpClient()
        try:
            async with client.send(HttpRequest("GET", server.url)) as answer:
                return answer.headers, await answer.read(100_000)
        finally:
            await client.close()

    with ScriptedServer([reply]) as server:
        return asyncio.run(main())


def test_the_headers_are_those_of_the_body_that_is_given_out():
    told = {"content-encoding": "deflate", "x-a": "b"}
    headers, body = ask(Reply(headers=told, steps=(deflated(TEXT, -15),)))
    assert body == TEXT
    assert "content-encoding" not in headers
    assert headers["x-a"] == "b"


@pytest.mark.parametrize(("coding", "package"), [("br", "brotli"), ("zstd", "backports.zstd")])
def test_a_missing_package_is_named(coding, package, monkeypatch):
    for name in ("brotli", "brotlicffi", "compression.zstd", "backports.zstd", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UnusableError, match=f"\\({coding}\\).*\n.*`pip install {package}`"):
        ask(Reply(headers={"content-encoding": coding}, steps=(b"xx",)))
