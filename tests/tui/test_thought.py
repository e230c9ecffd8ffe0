"""Thoughts on the screen: live and later alike, in three modes, never an empty box."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.neutral.blocks import ThinkingBlock
from mull.tui.conversation.thought import MODES, ThoughtView, render_thought, thought_label
from mull.tui.screen.theme import theme_for
from mull.tui.text.lines import line_width, plain_text
from tui.screens import DARK, cells

PLAIN = theme_for("auto", None, "none")
THOUGHT = (
    "The user asks for a list.\n\n"
    "I could use a table, but few rows do not need one. So a plain list."
)
PARTS = [
    "a ",
    "word ",
    "long" * 9,
    "\n",
    "\n\n",
    "  ",
    "**t**",
    "**",
    "\t",
    "日本",
    "\x1b[1m",
    "\r\n",
]
texts = st.lists(st.sampled_from(PARTS), max_size=20).map("".join)


def shown(text, mode, width=44, seconds=12.3, tokens=None, **more):
    block = ThinkingBlock(text, **more)
    return plain_text(render_thought(block, seconds, tokens, mode, PLAIN, width)).split("\n")


@pytest.mark.parametrize(
    ("seconds", "tokens", "exact", "running", "label"),
    [
        (12.3, 1240, True, False, "Thought for 12 s · 1,240 tokens"),
        (12.3, 340, False, True, "Thinking… 12 s · ~340 tokens"),
        (0.2, None, True, False, "Thought for 0.2 s"),
        (0.01, None, True, False, "Thought for 0.1 s"),
        (0.2, None, True, True, "Thinking… 0 s"),
        (125, None, True, False, "Thought for 2 min 05 s"),
        (3725, None, True, True, "Thinking… 1 h 02 min"),
        (None, 7, True, False, "Thought · 7 tokens"),
        (1, 1, False, False, "Thought for 1 s · ~1 token"),
        (None, None, True, True, "Thinking…"),
        (None, 0, True, False, "Thought"),
    ],
)
def test_a_label_says_what_is_known(seconds, tokens, exact, running, label):
    assert thought_label(seconds, tokens, exact=exact, running=running) == label


def test_in_full_the_text_comes_first_and_what_it_took_below():
    assert shown(THOUGHT, "full") == [
        "│ The user asks for a list.",
        "│",
        "│ I could use a table, but few rows do not",
        "│ need one. So a plain list.",
        "│ Thought for 12 s · ~24 tokens",
    ]


def test_a_preview_is_one_line_with_the_last_words():
    assert shown(THOUGHT, "preview", width=60) == [
        "│ Thought for 12 s · ~24 tokens · So a plain list."
    ]
    assert shown(THOUGHT, "preview", width=44) == ["│ Thought for 12 s · ~24 tokens"]


@pytest.mark.parametrize(
    ("text", "gist"),
    [
        ("One thing. Then another.", "Then another."),
        ("First line\nlast line", "last line"),
        ("It is so, and it must be. Yes.", "It is so, and it must be. Yes."),
        ("考える。答えは四十二です。", "考える。 答えは四十二です。"),
        ("**Reading**\n\nI read.\n\n**Deciding**\n\nI decide.", "Reading · Deciding"),
        ("- so `this` is **it**, surely", "so this is it, surely"),
    ],
)
def test_the_preview_is_what_the_thought_came_to(text, gist):
    (line,) = shown(text, "preview", width=90, seconds=None, tokens=5)
    assert line == f"│ Thought · 5 tokens · {gist}"


def test_r02_hidden_draws_nothing_not_even_a_label():
    assert render_thought(ThinkingBlock(THOUGHT), 12, 40, "hidden", DARK, 60) == []
    view = ThoughtView(DARK, 60, "hidden")
    view.feed(THOUGHT)
    assert view.commit() + view.open_lines(3.0) + view.close(4.0) == []
    assert view.label(3.0) == "Thinking… 3 s · ~24 tokens"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("text", ["", "\n\n", "  \n\t"])
def test_r03_blank_thoughts_are_not_drawn(text, mode):
    assert render_thought(ThinkingBlock(text), 3, 5, mode, DARK, 60) == []
    view = ThoughtView(DARK, 60, mode)
    view.feed(text)
    assert view.commit() + view.close(3.0, 5) == []


@pytest.mark.parametrize(
    ("carrier", "why"),
    [
        ("signature", "the provider sent only its signature."),
        ("encrypted", "the provider sent it encrypted."),
        ("redacted", "the provider sent it encrypted."),
    ],
)
def test_r03_thoughts_without_text_are_explained_in_one_line(carrier, why):
    said = f"Thinking without readable text: {why}"
    assert shown("\n", "full", width=80, **{carrier: "x"}) == [said]
    assert shown("", "preview", width=80, **{carrier: "x"}) == [said]
    assert shown("", "hidden", **{carrier: "x"}) == [""]


def test_the_length_of_a_summary_is_not_taken_for_the_length_of_the_thought():
    assert shown("**Reading**\n\nI read.", "full", kind="summary") == [
        "│ Reading",
        "│",
        "│ I read.",
        "│ Thought for 12 s",
    ]
    assert shown("I read.", "full", kind="summary", tokens=900)[-1].endswith("· 900 tokens")


def test_titles_of_a_summary_are_bold_and_what_is_no_markdown_is_left_alone():
    title = render_thought(ThinkingBlock("**A**", kind="summary"), 1, 1, "full", DARK, 60)[0]
    assert DARK.thinking._replace(bold=True) in [span.style for span in title]
    assert shown("2 ** 3 ** `x`", "full")[0] == "│ 2 ** 3 ** `x`"


@given(texts, st.sampled_from(MODES), st.integers(20, 80))
def test_shaded_lines_reach_both_edges(text, mode, width):
    for line in render_thought(ThinkingBlock(text), 1, None, mode, DARK, width):
        assert line_width(line) == width
        assert {span.style.bg for span in line} == {DARK.thinking.bg}


@given(texts, st.sampled_from(MODES), st.sampled_from(["raw", "summary"]), st.data())
def test_r01_a_thought_looks_the_same_live_and_later(text, mode, kind, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    view, lines = ThoughtView(DARK, 30, mode, kind), []
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        view.feed(text[start:end])
        lines += view.commit()
        assert all(line_width(line) <= 30 for line in view.open_lines(1.0))
    lines += view.close(12.0)
    stored = render_thought(ThinkingBlock(text, kind=kind), 12.0, None, mode, DARK, 30)
    assert cells(lines) == cells(stored)


def test_while_it_runs_a_preview_shows_the_last_rows_below_its_label():
    view = ThoughtView(PLAIN, 30, "preview")
    view.feed("one two three four five six seven eight nine ten eleven twelve thirteen fourteen")
    assert view.commit() == []
    assert plain_text(view.open_lines(4.4)).split("\n") == [
        "│ Thinking… 4 s · ~20 tokens",
        "│ six seven eight nine ten",
        "│ eleven twelve thirteen",
        "│ fourteen",
    ]


def test_while_it_runs_in_full_its_label_stays_below_the_text():
    view = ThoughtView(PLAIN, 30, "full")
    view.feed("one two three four five\n\nsix seven")
    assert plain_text(view.commit()) == "│ one two three four five"
    assert plain_text(view.open_lines(2)) == "│\n│ six seven\n│ Thinking… 2 s · ~9 tokens"
