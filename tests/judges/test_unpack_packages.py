"""br and zstd with the real packages: in any cut, in bounded pieces, with what follows left out."""

from __future__ import annotations

import gzip
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from growth import ends
from mull.client.unpack import UNPACKED, unpacker

pytestmark = pytest.mark.slow
brotli = pytest.importorskip("brotli")
zstandard = pytest.importorskip("zstandard")
pytest.importorskip("backports.zstd")

TEXT = b"data: {}\n\n" * 500
ZSTD = zstandard.compress(TEXT[:2000]) + zstandard.compress(TEXT[2000:])
SKIPPED = b"\x50\x2a\x4d\x18\x03\0\0\0abc"
ALL = {"brotli", "brotlicffi", "compression.zstd", "backports.zstd", "zstandard"}

FORMS = {
    "brotli": ("br", brotli.compress(TEXT), "brotli"),
    "brotlicffi": ("br", brotli.compress(TEXT), "brotlicffi"),
    "backports.zstd": ("zstd", ZSTD, "backports.zstd"),
    "backports.zstd, skipped": ("zstd", ZSTD + SKIPPED, "backports.zstd"),
    "zstandard": ("zstd", ZSTD, "zstandard"),
}


@pytest.fixture(params=FORMS.values(), ids=FORMS)
def form(request):
    coding, data, package = request.param
    with pytest.MonkeyPatch.context() as patch:
        for other in ALL - {package}:
            patch.setitem(sys.modules, other, None)
        yield coding, data


def unpacked(coding, data, cuts=(), most=UNPACKED):
    reader, body = unpacker(coding), b""
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, end in pairwise(edges):
        body += reader.feed(data[start:end])
        while reader.holds_more:
            piece = reader.feed(b"")
            assert len(piece) <= most
            body += piece
    assert reader.fault is None
    return body


def test_bodies_do_not_depend_on_the_cuts(form):
    @given(cuts=st.lists(st.integers(0, 10_000), max_size=8))
    def check(cuts):
        assert unpacked(*form, cuts) == TEXT

    check()
    assert unpacked(*form, range(len(form[1]))) == TEXT


def test_a_fault_is_told(form):
    reader = unpacker(form[0])
    reader.feed(b"\xff\xff\xff\xff\xff nonsense")
    assert reader.fault is not None


@pytest.mark.parametrize(
    ("coding", "package"),
    [("br", "brotli"), ("br", "brotlicffi"), ("zstd", "backports.zstd"), ("zstd", "zstandard")],
)
def test_a_bomb_comes_in_bounded_pieces(coding, package, monkeypatch):
    for other in ALL - {package}:
        monkeypatch.setitem(sys.modules, other, None)
    long = b"\0" * (32 << 20)
    bomb = brotli.compress(long) if coding == "br" else zstandard.compress(long)
    reader, size, largest = unpacker(coding), 0, 0
    piece = reader.feed(bomb)
    while True:
        size, largest = size + len(piece), max(largest, len(piece))
        if not reader.holds_more:
            break
        piece = reader.feed(b"")
    assert (reader.fault, size) == (None, len(long))
    assert largest <= (16 << 20)


def test_many_members_take_linear_time():
    data = gzip.compress(b"x") * 200_000
    with ends():
        assert unpacked("gzip", data) == b"x" * 200_000
