"""JSON that is nested too deeply: what is deeper stays in its place, as text."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from growth import ends
from mull.history.log import Entry
from mull.neutral.assemble import assemble
from mull.neutral.blocks import OpaqueBlock
from mull.neutral.events import Finished, OpaqueReceived, ToolCallDelta
from mull.neutral.messages import assistant
from mull.neutral.nesting import DEEPEST, DEEPEST_STORED, is_deep, shallow
from mull.store.sessions.journal import decode_events
from mull.store.sessions.records import decode_record, encode_record
from mull.transcripts.reading import read_transcript


def nested(levels, inner=b'"x"'):
    return b'{"k":' * levels + inner + b"}" * levels


def depth_of(value):
    depth = 0
    while isinstance(value, dict | list) and value:
        value = value["k"] if isinstance(value, dict) else value[0]
        depth += 1
    return depth


values = st.recursive(
    st.one_of(st.none(), st.integers(), st.text()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


def levels_of(value):
    if isinstance(value, dict):
        return 1 + max(map(levels_of, value.values()), default=0)
    return 1 + max(map(levels_of, value), default=0) if isinstance(value, list) else 0


def cut(value, most):
    """What `shallow` is to do, told by recursion."""
    if isinstance(value, dict | list) and not most:
        return json.dumps(value)
    if isinstance(value, dict):
        return {key: cut(inner, most - 1) for key, inner in value.items()}
    return [cut(inner, most - 1) for inner in value] if isinstance(value, list) else value


@given(values, st.integers(1, 4))
def test_what_is_deeper_is_the_text_it_was_written_in(value, most):
    data = json.dumps(value).encode()
    assert json.loads(shallow(data, most)) == cut(value, most)
    assert is_deep(data, most) == (levels_of(value) > most)
    assert (shallow(data, most) is data) or levels_of(value) > most


@given(st.binary())
def test_whatever_is_no_json_does_no_harm(data):
    for most in (1, 2):
        assert not is_deep(shallow(data, most), most) or b'"' in data


@pytest.mark.sweep
@pytest.mark.parametrize(
    "data",
    [
        b"[" * 300_000,
        b'"' + b'\\"' * 300_000,
        b"[]" * 300_000,
        b"[" * 300 + b'"' + b'\\"' * 300_000,
    ],
)
def test_the_work_grows_with_the_text(data):
    with ends():
        shallow(data)
        is_deep(data)


@pytest.mark.parametrize("levels", [199, 201, 970, 50_000])
def test_arguments_that_are_too_deep_are_kept_as_the_text_they_are(levels):
    text = nested(levels).decode()
    message = assemble([ToolCallDelta(0, "c", "f", text), Finished("tool_calls")])
    (call,) = message.tool_calls
    assert (call.arguments == text) == (levels > DEEPEST)
    assert depth_of(call.input) == (levels if levels <= DEEPEST else 0)
    record = Entry(message, 1.0)
    assert decode_record(encode_record(record), "s", 0) == record


def deeper(frames, step):
    return step() if not frames else deeper(frames - 1, step)


@pytest.mark.parametrize("levels", [100, 280, 960, 5_000])
def test_a_stored_record_opens_on_any_stack(levels):
    """Earlier versions stored what was nested almost as deeply as the stack allowed."""
    plain = encode_record(Entry(assistant(OpaqueBlock({"k": 0})), 1.0))
    data = plain.replace(b'{"k":0}', nested(levels))
    shallow_there = decode_record(data, "s", 0)
    assert deeper(500, lambda: decode_record(data, "s", 0)) == shallow_there
    assert depth_of(shallow_there.message.blocks[0].data) == min(levels, DEEPEST_STORED - 4)
    assert deeper(500, lambda: encode_record(shallow_there))
    told = msgspec.json.encode([OpaqueReceived({"k": 0})]).replace(b'{"k":0}', nested(levels))
    assert len(deeper(500, lambda: decode_events(told))) == 1
    document = msgspec.json.encode({"messages": [{"role": "user", "content": "q"}]})
    deep = document.replace(b'"role"', b'"x":' + nested(levels) + b',"role"')
    assert len(deeper(500, lambda: read_transcript(deep)).records) == 1


_values = st.recursive(
    st.sampled_from([1, "[{", '"', "\\"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("a]"), inner),
    max_leaves=12,
)


def _depth(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return max(map(_depth, inner), default=0) + isinstance(value, dict | list)


@given(_values, st.integers(0, 8))
def test_json_is_deep_if_its_brackets_are(value, most):
    data = msgspec.json.encode(value)
    assert is_deep(data, most) == (_depth(value) > most)


@pytest.mark.parametrize("text", ["", "a [ in a {\n", "x" * 40_000])
@pytest.mark.parametrize("levels", [3, DEEPEST - 1, DEEPEST, DEEPEST + 50])
def test_a_document_is_as_deep_as_its_brackets_however_long_its_text(text, levels):
    data = msgspec.json.encode([text] * 300 + [0]).replace(b"0]", nested(levels) + b"]")
    assert is_deep(data) == (levels + 1 > DEEPEST)
    assert (shallow(data) == data) == (levels + 1 <= DEEPEST)
