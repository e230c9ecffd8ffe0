"""However the bytes of an answer are cut, broken off, damaged or odd: no dialect loses a word.

Streams and documents are the fixtures of every dialect. Damage to framing and to values is tried
on all of them in the same way, so that a new dialect is tried by having fixtures.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answers import DIALECTS, FIXTURES, assembled, read, target_of
from effort import tried
from mull.dialects.registry import interpreter_of
from mull.neutral.assemble import assemble
from mull.neutral.blocks import OpaqueBlock, TextBlock, ThinkingBlock, ToolCallBlock
from mull.neutral.events import Failed, Finished, Warned
from mull.neutral.messages import Message

NAMES = sorted(FIXTURES)
STREAMED = [one for one in NAMES if not one[1].endswith(".json")]
places = st.integers(0, 2**16)


def as_document(name: str) -> str:
    return name.rpartition(".")[0] + ".json"


BOTH = [(dialect, name) for dialect, name in STREAMED if (dialect, as_document(name)) in FIXTURES]


def where(dialect: str, name: str) -> Any:
    return target_of(dialect, name.partition(".")[0])


def spoken(message: Message) -> tuple[str, str]:
    return "".join(block.thought for block in message.thinking), message.text


# Cuts


@pytest.mark.parametrize(("dialect", "name"), NAMES)
def test_byte_by_byte_gives_the_same_events(dialect, name):
    body, to = FIXTURES[dialect, name], where(dialect, name)
    events = read(body, to)
    one_by_one = read(body, to, [*range(len(body))])
    assert assemble(one_by_one) == assemble(events)
    assert [type(e) for e in one_by_one if isinstance(e, Warned)] == [
        type(e) for e in events if isinstance(e, Warned)
    ]
    assert one_by_one[-1] == events[-1]


@tried(4)
@given(st.sampled_from(NAMES), st.lists(places, max_size=12))
def test_any_cut_gives_the_same_answer(one, cuts):
    body, to = FIXTURES[one], where(*one)
    assert assembled(body, to, cuts) == assembled(body, to)


@pytest.mark.parametrize(("dialect", "name"), BOTH)
def test_a_stream_and_its_document_are_the_same_answer(dialect, name):
    """REQ-THINK-003.2: a whole response gives the same blocks as its stream."""
    to = where(dialect, name)
    document = FIXTURES[dialect, as_document(name)]
    assert assembled(FIXTURES[dialect, name], to) == assembled(document, to)


# What breaks off


@tried(4)
@given(st.sampled_from(STREAMED), places)
def test_what_breaks_off_is_a_beginning_of_the_whole(one, at):
    body, to = FIXTURES[one], where(*one)
    whole = assembled(body, to)
    part = assembled(body[: at % (len(body) + 1)], to)
    for short, long in zip(spoken(part), spoken(whole), strict=True):
        assert long.startswith(short[: _sure(short)])  # half a mark is still text
    for short, long in zip(part.blocks, whole.blocks, strict=False):
        if isinstance(short, ThinkingBlock) and isinstance(long, ThinkingBlock):
            assert short.signature in (None, long.signature)
            assert short.encrypted in (None, long.encrypted)
            assert short.redacted in (None, long.redacted)


# Damage


@tried(6)
@given(
    st.sampled_from(STREAMED),
    places,
    st.binary(max_size=8),
    st.integers(0, 40),
    st.none() | st.integers(0, 7),
)
def test_damage_keeps_what_came_before_it(one, at, noise, lost, flipped):
    body, to = bytearray(FIXTURES[one]), where(*one)
    at %= len(body)
    before = assembled(bytes(body[:at]), to)
    if flipped is None:
        body[at : at + lost] = noise
    else:
        body[at] ^= 1 << flipped
    events = read(bytes(body), to)
    assert isinstance(events[-1], Finished | Failed)
    for kept, found in zip(spoken(before), spoken(assemble(events)), strict=True):
        assert found.startswith(kept[: _sure(kept)])


def _sure(text: str) -> int:
    """How much of what came before stays where it is: a mark that closes may move the last."""
    return max(0, len(text) - 12)


@given(st.sampled_from(DIALECTS), st.lists(st.binary(max_size=40), max_size=5))
def test_no_bytes_ever_raise(dialect, chunks):
    events = read(b"".join(chunks), target_of(dialect))
    assert isinstance(events[-1], Finished | Failed)
    assemble(events)


# Odd values


def _words(value: Any) -> set[str]:
    """Every name and short text in a JSON value."""
    if isinstance(value, dict):
        return set(value).union(*map(_words, value.values()))
    if isinstance(value, list):
        return set().union(*map(_words, value))
    return {value} if isinstance(value, str) and len(value) < 30 else set()


def _documents(dialect: str) -> list[Any]:
    return [
        msgspec.json.decode(body)
        for (spoken_in, name), body in FIXTURES.items()
        if spoken_in == dialect and name.endswith(".json")
    ]


VOCABULARY = {name: sorted(_words(_documents(name))) for name in DIALECTS}
"""The words of each dialect, as its documents use them."""


def odd_values(dialect: str) -> st.SearchStrategy[Any]:
    """JSON of any shape, in the words of a dialect."""
    words = st.sampled_from(VOCABULARY[dialect])
    return st.recursive(
        st.none() | st.booleans() | st.integers(-3, 3) | words | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=5),
        max_leaves=20,
    )


@pytest.mark.parametrize("dialect", DIALECTS)
@tried(2)
@given(data=st.data())
def test_no_shape_is_too_odd(dialect, data):
    made = interpreter_of
    values = data.draw(st.lists(odd_values(dialect), max_size=6))
    one = made(target_of(dialect), None)
    events = [event for value in values for event in one.take(None, value)]
    assemble([*events, *one.end(data.draw(st.booleans()))])
    for value in values:
        assemble(made(target_of(dialect), None).whole(value))


def _spoil(value: Any, at: int, odd: Any) -> Any:
    """The value with one of its parts, wherever it is, replaced by an odd one."""
    nodes: list[tuple[Any, Any]] = []

    def walk(inner: Any) -> None:
        items = inner.items() if isinstance(inner, dict) else enumerate(inner)
        for key, part in items:
            nodes.append((inner, key))
            if isinstance(part, dict | list):
                walk(part)

    walk(value)
    if nodes:
        holder, key = nodes[at % len(nodes)]
        holder[key] = odd
    return value


@pytest.mark.parametrize("dialect", DIALECTS)
@tried(2)
@given(data=st.data(), at=places)
def test_one_odd_part_does_not_lose_the_document(dialect, data, at):
    document = data.draw(st.sampled_from(_documents(dialect)))
    spoiled = _spoil(document, at, data.draw(odd_values(dialect)))
    events = read(msgspec.json.encode(spoiled), target_of(dialect))
    assert isinstance(events[-1], Finished | Failed)
    message = assemble(events)
    assert all(
        isinstance(block, TextBlock | ThinkingBlock | ToolCallBlock | OpaqueBlock)
        for block in message.blocks
    )
