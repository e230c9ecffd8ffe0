"""Frames from bytes: every line ending, every cut, every bad habit of servers."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.dialects.sse import Parsed, SseReader, parse_payload


def read(*chunks, limit=10_000):
    reader = SseReader(limit)
    frames = [frame for chunk in chunks for frame in reader.feed(chunk)]
    return frames + reader.close()


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_every_line_ending(end):
    stream = end.join([b"event: a", b"data: 1", b"", b"data:2", b"", b""])
    assert read(stream) == [("a", b"1"), (None, b"2")]
    assert read(*(stream[i : i + 1] for i in range(len(stream)))) == read(stream)


def test_mixed_line_endings_and_a_crlf_cut_in_two():
    assert read(b"data: a\r", b"\n\r", b"\ndata: b\n\r\n") == [(None, b"a"), (None, b"b")]


def test_only_one_space_is_taken_from_data():
    assert read(b"data:  two\n\ndata:none\n\ndata:\n\n") == [
        (None, b" two"),
        (None, b"none"),
        (None, b""),
    ]


def test_lines_of_data_are_joined():
    assert read(b'data: {"a":\ndata: 1}\n\n') == [(None, b'{"a":\n1}')]


def test_c02_comments_are_signs_of_life_and_nothing_else():
    reader = SseReader()
    frames = reader.feed(b": OPENROUTER PROCESSING\n\n:x\ndata: 1\n\n: ping\n\n")
    assert frames == [(None, b"1")]
    assert reader.comments == 3


def test_other_fields_are_ignored_and_the_event_name_lasts_one_frame():
    stream = b"id: 7\nretry: 3\nevent: error\ndata: 1\n\ndata: 2\n\n"
    assert read(stream) == [("error", b"1"), (None, b"2")]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_a_named_event_begins_a_frame_where_the_blank_line_is_missing(end):
    lines = [
        b"event: a",
        b"data: 1",
        b"event: b",
        b"data: 2",
        b"",
        b"data: 3",
        b"event: c",
        b"",
        b"",
    ]
    expected = [("a", b"1"), ("b", b"2"), ("c", b"3")]
    stream = end.join(lines)
    assert read(stream) == expected
    assert read(*(stream[i : i + 1] for i in range(len(stream)))) == expected


@pytest.mark.parametrize("before", [b"event: a", b"id: 7", b"retry: 3", b": ping", b" ", b"junk "])
def test_a_line_that_lost_its_end_does_not_hide_the_data_after_it(before):
    name = "a" if before == b"event: a" else None
    for data in (b'{"x":1}', b"[DONE]"):
        assert read(b"data: 0\n\n" + before + b"data: " + data + b"\n\ndata: 1\n\n") == [
            (None, b"0"),
            (name, data),
            (None, b"1"),
        ]


def test_data_made_a_comment_stays_one():
    assert read(b':data: {"x":1}\n: data: {"x":1}\ndata: 1\n\n') == [(None, b"1")]


def test_a_last_frame_without_its_blank_line_is_read():
    assert read(b"data: 1\n\ndata: 2") == [(None, b"1"), (None, b"2")]


def test_a_byte_order_mark_is_skipped():
    assert read(b"\xef\xbb\xbfdata: 1\n\n") == [(None, b"1")]


def test_a_bare_object_in_the_stream_is_data():
    assert read(b'data: 1\n\n{"error":1}\n\n') == [(None, b"1"), (None, b'{"error":1}')]


def test_unicode_line_separators_do_not_end_a_line():
    text = "a\u2028b\u0085c\x0bd\x0ce"
    assert read(f"data: {text}\n\n".encode()) == [(None, text.encode())]


@pytest.mark.parametrize(
    "chunks",
    [[b"data: " + b"x" * 60, b"y" * 60], [b"data: " + b"x" * 40 + b"\n"] * 3],
)
def test_an_endless_event_is_given_up_and_memory_stays_bounded(chunks):
    reader = SseReader(limit=100)
    for chunk in chunks:
        assert reader.feed(chunk) == []
    assert reader.overflowed
    assert reader.feed(b"\n\ndata: 1\n\n") == []
    assert reader.close() == []


@pytest.mark.parametrize(
    "chunks",
    [
        [b"data: a\n", b"\ndata: b\n", b"\n"],
        [b"data: a", b"\n", b"\n", b"\n", b"\n", b"data: b\n\n"],
        [b"data: a\r\n", b"\r", b"\n", b"data: b\r\n\r\n"],
        [b"data: a\n", b"\r", b"\ndata: b\r\n\r\n"],
    ],
)
def test_a_blank_line_cut_in_two_ends_its_frame_at_once(chunks):
    reader = SseReader()
    assert [frame for chunk in chunks for frame in reader.feed(chunk)] == [
        (None, b"a"),
        (None, b"b"),
    ]


lines = st.lists(
    st.sampled_from([b"data: {}", b"data: 1", b"", b": c", b"event: e", b"junk", b"data"])
    | st.binary(max_size=6),
    max_size=10,
)


@given(lines, st.sampled_from([b"\n", b"\r", b"\r\n"]), st.lists(st.integers(0, 80), max_size=5))
def test_any_cut_gives_the_same_frames(parts, end, cuts):
    stream = end.join(parts)
    points = sorted({0, len(stream), *(min(cut, len(stream)) for cut in cuts)})
    chunks = [stream[a:b] for a, b in itertools.pairwise(points)]
    assert read(*chunks) == read(stream)
    assert read(*(stream[i : i + 1] for i in range(len(stream)))) == read(stream)


def test_payloads_are_json():
    assert parse_payload(b' {"a": [1, null]} ') == Parsed([{"a": [1, None]}])


@pytest.mark.parametrize(
    "data",
    [b'{"a":1}{"b":2}', b'{"a":1}\n{"b":2}', b'{"a":1}data: {"b":2}', b'{"a":1} data:{"b":2}'],
)
def test_glued_frames_are_taken_apart_and_reported(data):
    parsed = parse_payload(data)
    assert parsed.values == [{"a": 1}, {"b": 2}]
    assert parsed.problem == "2 several events in one frame were separated"


@pytest.mark.parametrize("data", [b'{"a":1}\n[DONE]', b'{"a":1}data: [DONE]', b'{"a":1}[DONE]'])
def test_c05_an_end_glued_to_the_last_event_is_an_end(data):
    parsed = parse_payload(data)
    assert (parsed.values, parsed.done, parsed.lost) == ([{"a": 1}], True, b"")


@pytest.mark.parametrize(
    "field", ["event: b\n", "id: 7\n", "retry: 10\n", ": ping\n", "event: bdata:"]
)
def test_fields_glued_between_events_are_no_data(field):
    parsed = parse_payload(f'{{"a":1}}{field}data: {{"b":2}}'.encode())
    assert (parsed.values, parsed.lost) == ([{"a": 1}, {"b": 2}], b"")
    last = parse_payload(f'{{"a":1}}{field.partition("data:")[0]}'.encode())
    assert (last.values, last.problem, last.lost) == ([{"a": 1}], None, b"")


@pytest.mark.parametrize(
    "bad", ['{"b":"half', '{"b":{"c":[{"d":1}', '{"b":{"c":"data: ', "garbage", "{"]
)
@pytest.mark.parametrize("glue", ["data: ", "data:", "", "\n", "\ndata: "])
def test_a_bad_event_does_not_take_a_good_one_with_it(bad, glue):
    good = '{"a":{"text":"data: {}","more":[{"x":1}]}}'
    value = {"a": {"text": "data: {}", "more": [{"x": 1}]}}
    parsed = parse_payload(f"{bad}{glue}{good}".encode())
    assert parsed.values[-1] == value
    assert parsed.lost.decode().strip() in bad + glue
    assert parsed.problem is None
    both = parse_payload(f"{good}{bad}{glue}{good}{glue}[DONE]".encode())
    assert (both.values[0], both.values[-1], both.done) == (value, value, True)
    assert both.lost


def test_what_cannot_be_read_is_named_and_what_came_before_is_kept():
    parsed = parse_payload(b'{"a":1}{"b":')
    assert (parsed.values, parsed.lost) == ([{"a": 1}], b'{"b":')


def test_c01_invalid_bytes_do_not_stall():
    parsed = parse_payload(b'{"a":"x\xffy"}')
    assert parsed.values == [{"a": "x\ufffdy"}]
    assert parsed.problem == "invalid UTF-8 was replaced"


def test_deep_nesting_is_survived():
    parsed = parse_payload(b"[" * 100_000)
    assert parsed.values == []
    assert parsed.lost


@given(st.binary(max_size=60))
def test_any_bytes_can_be_parsed_or_reported(data):
    parsed = parse_payload(data)
    assert (
        parsed.values
        or parsed.lost
        or not data.replace(b"data:", b"").replace(b"[DONE]", b"").strip(b" \t\r\n")
    )


@given(st.recursive(st.none() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_any_json_is_itself(value):
    assert parse_payload(json.dumps(value).encode()).values == [value]
