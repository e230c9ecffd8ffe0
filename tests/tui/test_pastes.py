"""Pasted text of many lines: a label in the line, the text itself in what is sent."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mull.neutral.messages import user
from mull.tui.conversation.attached import folded
from mull.tui.screen.pastes import Pastes

LONG = "\n".join(f"line {n}" for n in range(300))


def test_what_is_short_stands_for_itself():
    assert Pastes().label("one\ntwo") == "one\ntwo"


def test_what_is_long_is_a_label_and_comes_back_whole():
    pastes = Pastes()
    first, second = pastes.label(LONG), pastes.label("x" * 3000)
    assert first == "[Pasted text #1 +300 lines]"
    assert second == "[Pasted text #2 3,000 characters]"
    line = f"compare {first} with {second}!"
    assert pastes.whole(line) == f"compare {LONG} with {'x' * 3000}!"
    assert pastes.short(pastes.whole(line)) == line
    assert pastes.label_before(f"a {first}") == first
    assert pastes.label_before(f"a {first}b") == ""


def test_the_end_of_the_last_line_is_no_line():
    pastes = Pastes()
    label = pastes.label(f"{LONG}\n")
    assert label == "[Pasted text #1 +300 lines]"
    assert pastes.whole(label) == f"{LONG}\n"


def test_a_pasted_label_is_text():
    pastes = Pastes()
    label = pastes.label(LONG)
    other = pastes.label(f"{label}\n" * 20)
    assert pastes.whole(f"{other}{label}") == f"{label}\n" * 20 + LONG


@given(st.lists(st.text(), max_size=4))
def test_text_without_pastes_is_left_alone(texts):
    pastes = Pastes()
    pastes.label(LONG)
    for text in texts:
        assert pastes.whole(text) == text


def test_a_long_message_is_drawn_short_and_is_not_changed():
    message = user(LONG)
    lines = folded(message).text.split("\n")
    assert len(lines) == 21
    assert lines[10] == "[… 280 more lines …]"
    assert (lines[0], lines[-1]) == ("line 0", "line 299")
    assert message.text == LONG
    assert folded(user("one\ntwo")) == user("one\ntwo")
