"""Amazon's event streams: any cut gives the same frames, and damage is told, never read."""

from __future__ import annotations

import struct
from itertools import pairwise
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answers import FIXTURES, read, target_of
from growth import ends
from mull.dialects.eventstream import (
    ERROR,
    EXCEPTION,
    MESSAGE_LIMIT,
    EventStreamReader,
    message,
    stamp,
)
from mull.neutral.events import Failed, TextDelta

HERE = target_of("bedrock-converse")
names = st.text(st.characters(codec="ascii", exclude_categories=["C"]), max_size=20)
frames = st.lists(st.tuples(names, st.binary(min_size=1, max_size=60)), max_size=6)


def joined(given_frames):
    return b"".join(message(stamp(name), payload) for name, payload in given_frames)


def cut(data, cuts):
    reader = EventStreamReader()
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    found = [frame for a, b in pairwise(edges) for frame in reader.feed(data[a:b])]
    return found + reader.close(), reader


@given(frames, st.lists(st.integers(0, 2000), max_size=12))
def test_any_cut_gives_the_same_frames(given_frames, cuts):
    found, reader = cut(joined(given_frames), cuts)
    assert found == given_frames
    assert reader.damage is None


@given(frames.filter(bool), st.data())
def test_a_bit_that_flips_is_damage_and_what_came_before_stands(given_frames, data):
    whole = bytearray(joined(given_frames))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= 1 << data.draw(st.integers(0, 7))
    found, reader = cut(bytes(whole), data.draw(st.lists(st.integers(0, 2000), max_size=5)))
    assert found == given_frames[: len(found)]
    assert len(found) < len(given_frames)
    starts = [len(joined(given_frames[:n])) for n in range(len(given_frames))]
    assert len(found) == max(n for n, start in enumerate(starts) if start <= at)
    assert reader.damage is not None


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=5))
def test_no_bytes_ever_raise(data, cuts):
    found, reader = cut(data, cuts)
    assert not found or reader.damage is None


def prelude(size, headers):
    head = struct.pack(">II", size, headers)
    return head + struct.pack(">I", crc32(head))


@pytest.mark.parametrize(
    ("size", "headers"), [(MESSAGE_LIMIT + 1, 0), (15, 0), (20, 5), (0, 0), (2**32 - 1, 2**32 - 1)]
)
def test_a_length_that_cannot_be_is_damage_at_once(size, headers):
    reader = EventStreamReader()
    assert reader.feed(prelude(size, headers)) == []
    assert reader.damage == f"a message claims {size:,} bytes with {headers:,} bytes of headers"


def test_after_damage_nothing_is_read():
    reader = EventStreamReader()
    good = message(stamp("a"), b"{}")
    assert reader.feed(good + b"\0" * 12 + good) == [("a", b"{}")]
    assert reader.feed(good) == []


def header(name, kind, value):
    return bytes((len(name),)) + name.encode() + bytes((kind,)) + value


def test_headers_of_every_type_are_passed_over():
    head = b"".join(
        [
            header("t", 0, b""),
            header("f", 1, b""),
            header("byte", 2, b"x"),
            header("short", 3, b"xx"),
            header("int", 4, b"xxxx"),
            header("long", 5, b"x" * 8),
            header("bytes", 6, b"\0\3abc"),
            header("time", 8, b"x" * 8),
            header("uuid", 9, b"x" * 16),
            header(":message-type", 7, b"\0\5event"),
            header(":event-type", 7, b"\0\4mine"),
        ]
    )
    assert EventStreamReader().feed(message(head, b"1")) == [("mine", b"1")]


def test_exceptions_and_errors_are_marked():
    thrown = message(stamp("throttlingException", "exception"), b'{"message":"slow"}')
    failed = message(
        header(":message-type", 7, b"\0\5error")
        + header(":error-code", 7, b"\0\3Bad")
        + header(":error-message", 7, b"\0\4oops"),
        b"",
    )
    assert EventStreamReader().feed(thrown + failed) == [
        (EXCEPTION + "throttlingException", b'{"message":"slow"}'),
        (ERROR + "Bad", b'{"message":"oops"}'),
    ]


def test_a_damaged_answer_keeps_what_came_and_says_why_it_ends():
    body = bytearray(FIXTURES["bedrock-converse", "thinking_then_tools.eventstream"])
    body[-200] ^= 1
    events = read(bytes(body), HERE)
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "I will look."
    assert events[-1] == Failed(
        "the stream is damaged: the checksum of a message is wrong", "damaged"
    )


def test_one_that_is_cut_is_interrupted_not_damaged():
    body = FIXTURES["bedrock-converse", "thinking_then_tools.eventstream"]
    assert read(body[:700], HERE)[-1].status == "interrupted"


def test_reading_byte_by_byte_grows_with_the_length_alone():
    one = message(stamp("contentBlockDelta"), b'{"text":"' + b"x" * 100_000 + b'"}')

    reader = EventStreamReader()
    with ends():
        frames = [frame for at in range(len(one)) for frame in reader.feed(one[at : at + 1])]
    assert len(frames) == 1
