"""Lines out of bytes, however they are cut; and one that is too long costs no memory."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.agent.mcp.lines import Lines, LongLine


def feed(data, size, longest=20):
    lines = Lines(longest)
    return [line for i in range(0, len(data), size) for line in lines.feed(data[i : i + size])]


@given(st.lists(st.binary(max_size=40).filter(lambda b: b"\n" not in b)), st.integers(1, 50))
def test_how_the_bytes_are_cut_makes_no_difference(lines, size):
    found = feed(b"".join(line + b"\n" for line in lines), size)
    assert [line if isinstance(line, bytes) else line.size for line in found] == [
        line if len(line) <= 20 else len(line) for line in lines
    ]


def test_what_has_no_end_is_no_line_yet():
    lines = Lines(20)
    assert lines.feed(b"one\ntw") == [b"one"]
    assert lines.feed(b"o\n\n") == [b"two", b""]


def test_a_line_beyond_the_limit_is_not_kept():
    lines = Lines(1000)
    for _ in range(100):
        assert lines.feed(b"x" * 1000) == []
        assert len(lines._kept) <= 1256
    assert lines.feed(b"end\nnext\n") == [
        LongLine(100_003, b"x" * 256, b"x" * 253 + b"end"),
        b"next",
    ]


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ({"jsonrpc": "2.0", "id": 7, "result": {"text": "x" * 999}}, 7),
        ({"id": 7, "result": {"text": "x" * 999}}, 7),
        ({"result": {"text": "x" * 999}, "jsonrpc": "2.0", "id": 7}, 7),
        ({"result": {"text": "x" * 999}, "id": 7, "jsonrpc": "2.0"}, 7),
        (
            {"jsonrpc": "2.0", "method": "notifications/x", "params": {"id": 7, "x": "x" * 999}},
            None,
        ),
        ({"result": {"x": "x" * 999, "id": 7}}, None),
        ({"result": {"id": 7, "x": "x" * 999}, "jsonrpc": "2.0"}, None),
    ],
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_which_request_a_long_line_answers(message, found, separators):
    data = json.dumps(message, separators=separators).encode()
    (line,) = feed(data + b"\n", 100, longest=500)
    assert line.request_id == found
    assert line.size == len(data)
