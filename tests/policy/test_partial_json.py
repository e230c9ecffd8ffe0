"""A JSON text that is cut anywhere shows what is certain of it, and grows into the whole."""

import json

from hypothesis import given
from hypothesis import strategies as st

from mull.policy.partial_json import PartialJson


def partial_value(text):
    """What a text says by itself."""
    return PartialJson().read(text)


texts = st.text(st.characters(codec="utf-8"), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
containers = st.lists(values, max_size=4) | st.dictionaries(texts, values, max_size=4)


def is_beginning(part, whole):
    """Whether the part can grow into the whole."""
    if isinstance(part, str) and isinstance(whole, str):
        return whole.startswith(part)
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all(map(is_beginning, part, whole))
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and is_beginning(part[key], whole[key]) for key in part)
    return part == whole and type(part) is type(whole)


@given(containers, st.booleans(), st.sampled_from([None, 1]))
def test_every_cut_shows_a_beginning_that_only_grows(value, ascii_only, indent):
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    before, reading = None, PartialJson()
    for cut in range(len(text) + 1):
        part = reading.read(text[:cut])
        assert part == partial_value(text[:cut])
        if part is not None:
            assert is_beginning(part, value), text[:cut]
            assert before is None or is_beginning(before, part)
            before = part
    assert partial_value(text) == value


def test_what_may_still_change_is_left_out():
    assert partial_value('{"a": 1') == {}
    assert partial_value('{"a": 1,') == {"a": 1}
    assert partial_value('{"a": tru') == {}
    assert partial_value('{"a": [1, "x\\') == {"a": [1, "x"]}
    assert partial_value('{"a": "\\ud83d') == {"a": ""}
    assert partial_value('{"a": "\\ud83d\\ude00') == {"a": "😀"}
    assert partial_value('{"ab') == {}


def test_words_around_the_value_are_skipped():
    assert partial_value('```json\n{"a": "b') == {"a": "b"}
    assert partial_value('Here it is: ["1", 2]. "Done') == ["1", 2]


def test_nothing_is_none():
    for text in ("", "   ", "Let me", "}", "]"):
        assert partial_value(text) is None
