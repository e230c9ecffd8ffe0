"""Everything that reads foreign bytes reads or refuses them, whatever they are.

`tools/fuzz/readers.py` says what must hold of each reader. Every input that ever broke one, or took
a path of its own, is in the corpus and is replayed here; properties mutate them.
"""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.fuzz.readers import CORPUS, READERS, Reader, try_reader

from answers import FIXTURES
from effort import tried

TOKENS = [
    *(b"", b"\x00", b"\xff", b"\xed\xa0\x80", b"\r", b"\n\n", b"\x1b", b'"', b"\\", b"\\ud800"),
    *(b"{", b"}", b"[", b"]", b"null", b"true", b"-1", b"1e999", b'""', b"{}", b"[]", b":", b","),
    *(b"<think>", b"</think>", b"<|channel|>", b"[DONE]", b"data: ", b"event: ", b"$(", b"`", b";"),
    *(b"9" * 400, b"[" * 300, b'{"a":' * 300, b"a" * 3000),
]


@cache
def seeds(name):
    own = [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]
    dialect = name.removeprefix("answer-")
    return own + [body for (of, _), body in FIXTURES.items() if name != dialect and of == dialect]


@st.composite
def mutated(draw, name):
    """An input of the corpus, cut, repeated, spliced and peppered in a few places."""
    data = draw(st.sampled_from(seeds(name)))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.sampled_from([0, 0, 1, 2, 8, 40, 400])))
        middle = draw(
            st.sampled_from([*TOKENS, data[start:end] * 2])
            | st.binary(max_size=4)
            | st.sampled_from(seeds(name))
        )
        data = data[:start] + middle + data[end:]
    return data


def test_every_reader_has_a_corpus_and_no_corpus_is_left_over():
    assert {path.name for path in CORPUS.iterdir()} == set(READERS)


@pytest.mark.parametrize("name", READERS)
def test_the_corpus_is_read(name):
    for data in seeds(name):
        try_reader(name, data)


@pytest.mark.parametrize("name", READERS)
@tried(1)
@given(data=st.data())
def test_mutations_of_the_corpus_are_read_or_refused(name, data):
    try_reader(name, data.draw(mutated(name)))


@pytest.mark.parametrize("name", READERS)
@tried(0.5)
@given(data=st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(name, data):
    try_reader(name, data)


def test_what_a_reader_may_not_raise_comes_through(monkeypatch):
    def broken(data):
        raise KeyError(data)

    monkeypatch.setitem(READERS, "broken", Reader(broken, (ValueError,)))
    with pytest.raises(KeyError):
        try_reader("broken", b"x")
