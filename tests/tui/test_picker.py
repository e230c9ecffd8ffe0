"""Searching and choosing one of many."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mull.tui.screen.front import Item
from mull.tui.screen.picker import ROWS, Picker, matching, score
from mull.tui.screen.theme import theme_for
from mull.tui.text.width import cell_width

PLAIN = theme_for("plain", None, "none")
MODELS = [Item(n) for n in ("openai/gpt-5", "openai/gpt-5-mini", "anthropic/claude-opus", "x/mini")]
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=20)


def names(items):
    return [item.name for item in items]


def text_of(lines):
    return ["".join(span.text for span in line) for line in lines]


def test_letters_are_found_in_order_and_whole_words_first():
    assert names(matching(MODELS, "gpt5mini")) == ["openai/gpt-5-mini"]
    assert names(matching(MODELS, "mini")) == ["x/mini", "openai/gpt-5-mini"]  # just that one
    assert names(matching(MODELS, "min")) == ["openai/gpt-5-mini", "x/mini"]  # in their own order
    assert names(matching(MODELS, "gpt_5")) == ["openai/gpt-5", "openai/gpt-5-mini"]
    assert names(matching(MODELS, "claude anth")) == ["anthropic/claude-opus"]
    assert names(matching(MODELS, "zzz")) == []
    assert names(matching(MODELS, "  ")) == names(MODELS)


@given(NAMES, NAMES, NAMES)
def test_a_name_fits_every_part_of_itself(before, word, after):
    whole = before + word + after
    assert all(
        score(whole, part) is not None for part in word.lower().split() if part in whole.lower()
    )


def test_the_choice_stays_inside_and_begins_anew_with_each_search():
    picker = Picker("Which?", MODELS)
    picker.move(-3)
    assert picker.chosen == "openai/gpt-5"
    picker.move(99)
    assert picker.chosen == "x/mini"
    picker.search("claude")
    assert picker.chosen == "anthropic/claude-opus"
    picker.search("nothing like it")
    picker.move(1)
    assert picker.chosen is None
    assert "no match" in "\n".join(text_of(picker.lines(PLAIN, 40)))


@given(st.lists(st.tuples(NAMES, NAMES), max_size=30), st.integers(20, 100), st.integers(0, 40))
def test_the_choice_is_always_shown_and_no_row_is_too_wide(pairs, width, steps):
    picker = Picker("Which one of all these is it to be?", [Item(*pair) for pair in pairs])
    picker.move(steps)
    rows = text_of(picker.lines(PLAIN, width))
    assert all(cell_width(row) <= width for row in rows)
    assert len(rows) <= ROWS + 2
    assert sum(row.startswith("❯ ") for row in rows) == (1 if pairs else 0)


def test_the_choice_begins_at_the_one_in_use():
    items = [*MODELS[:2], Item("anthropic/claude-opus", "200k", current=True), MODELS[3]]
    picker = Picker("Which?", items)
    assert picker.chosen == "anthropic/claude-opus"
    assert text_of(picker.lines(PLAIN, 60))[3].split("  ")[-1] == "in use · 200k"
    picker.search("gpt")
    assert picker.chosen == "openai/gpt-5"
    picker.search("")
    assert picker.chosen == "anthropic/claude-opus"


def test_each_item_that_the_choice_moves_to_is_previewed_once():
    seen = []
    picker = Picker("Which?", MODELS, preview=seen.append)
    picker.search("")
    assert seen == []
    picker.move(1)
    picker.move(-1)
    picker.move(-1)
    picker.search("claude")
    picker.search("claude-")
    picker.search("nothing fits this")
    assert seen == ["openai/gpt-5-mini", "openai/gpt-5", "anthropic/claude-opus"]


def test_a_key_marks_the_item_that_the_choice_stands_on():
    marked = set()

    def mark(name):
        marked.symmetric_difference_update({name})
        return name in marked

    picker = Picker("Which?", MODELS, mark)
    picker.search("claude")
    picker.mark()
    assert marked == {"anthropic/claude-opus"}
    assert "favourite" in text_of(picker.lines(PLAIN, 60))[1]
    picker.search("")
    assert [("favourite" in row) for row in text_of(picker.lines(PLAIN, 60))[1:]] == [
        False, False, True, False,
    ]  # fmt: skip
    picker.search("claude")
    picker.mark()
    assert marked == set()
    Picker("Which?", MODELS).mark()
