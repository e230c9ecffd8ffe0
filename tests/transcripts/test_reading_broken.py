"""What is no conversation is refused with its place and the reason; nothing is taken from it."""

from __future__ import annotations

import contextlib
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import tried
from mull.neutral.errors import ConfigError
from mull.transcripts.reading import read_transcript
from mull.transcripts.transcript import Transcript


def _read(value) -> Transcript:
    return read_transcript(json.dumps(value).encode())


U = {"role": "user", "content": "q"}


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ([U, "x"], "messages[1] is text, not an object"),
        ([U, {"role": "narrator"}], "messages[1].role is 'narrator': it must be system, user, ass"),
        ([U, {"content": "x"}], "messages[1].role is None: it must be"),
        ([{"role": "user", "content": 5}], "messages[0].content is a number, not a list"),
        ([{"role": "user", "content": [5]}], "messages[0].content[0] is a number, not an object"),
        ([U, {"role": "assistant", "content": 5}], "messages[1].content is a number, not text"),
        ([U, {"role": "assistant", "content": [1]}], "messages[1].content[0] is a number, not an"),
        ([U, {"role": "assistant", "tool_calls": 1}], "messages[1].tool_calls is a number, not a"),
        (
            [U, {"role": "assistant", "tool_calls": [{"id": "c"}]}],
            "messages[1].tool_calls[0].function is missing, not an object",
        ),
        ({"system": 5, "messages": [U]}, "system is a number, not a list"),
        (
            {"system": "", "messages": [{"role": "bard"}]},
            "messages[0].role is 'bard': it must be u",
        ),
        (
            {"system": "", "messages": [{"role": "user", "content": [1]}]},
            "messages[0].content[0] is",
        ),
        ({"contents": [{"role": "user"}]}, "contents[0].parts is missing, not a list"),
        ({"contents": 5}, "contents is a number, not a list"),
        ({"input": [{"type": "function_call_output"}]}, "input[0].call_id is missing, not text"),
        ({"input": [{"role": "nobody", "content": "x"}]}, "input[0].role is 'nobody': it must be"),
        ([{"role": "user", "blocks": [{"type": "x"}]}], "messages[0] is not a message: Invalid"),
        ([], "the conversation is empty"),
        ({"messages": []}, "the conversation is empty"),
        ({"messages": 5}, "not a conversation that mull knows"),
        ({"hello": "world"}, "not a conversation that mull knows"),
        (None, "not a conversation that mull knows"),
        ("text", "not a conversation that mull knows"),
        ({"type": "session", "version": 9}, "the file has version 9, from a newer mull"),
    ],
)
def test_what_is_no_conversation_is_refused_with_its_place(value, complaint):
    with pytest.raises(ConfigError) as refused:
        _read(value)
    assert str(refused.value).startswith(complaint)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "the file is empty"),
        (b" \n ", "the file is empty"),
        (b'[\n{"role": "user",\n "content": }]', "line 3: not JSON: JSON is malformed"),
        (b'[\n{"role": "user"', "line 2: not JSON: input data was truncated"),
        (b"# Turn 1\n\nhello", "line 1: not JSON"),
        (b'["\xff"]', "not text in UTF-8"),
        (b"[" * 100_000, "line 1: not JSON: input data was truncated"),
        (b'{"role":"user","content":"q"}\n{"role":"user"\n', "line 2: not JSON"),
        (
            b'{"messages":[]}\n{"messages":[]}\n',
            "a file of lines must contain one session, or one message",
        ),
        (b'{"type":"session","version":1}\n{"type":"x"}\n', "line 2 is not a record"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(data, complaint):
    with pytest.raises(ConfigError) as refused:
        read_transcript(data)
    assert re.match(re.escape(complaint), str(refused.value), re.IGNORECASE), str(refused.value)


json_like = st.recursive(
    st.none() | st.integers(0, 3) | st.sampled_from(["", "x", "user", "assistant", "text", "tool"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "type", "text", "tool_calls", "parts", "blocks",
                             "messages", "contents", "input", "id", "thinking", "source"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)  # fmt: skip


@tried(2)
@given(json_like)
def test_whatever_is_in_a_file_it_is_read_or_refused(value):
    with contextlib.suppress(ConfigError):
        assert _read(value).records
