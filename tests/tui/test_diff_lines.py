"""Diffs on the screen: numbers, colours of the language, marks on the words that changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.agent.tools.compare import diff
from mull.tui.screen.colour import Rgb, contrast
from mull.tui.screen.theme import theme_for
from mull.tui.text.diff_lines import diff_lines
from mull.tui.text.lines import line_width, plain_text
from tui.screens import BARE, DARK

BEFORE = "def f(x):\n    return x + 1  # one\n\n\nkept = 'yes'\n"
AFTER = "def f(x):\n    return x + 22  # one\n\n\nkept = 'yes'\nnew = 3\n"


def said(text, width=60, theme=BARE, most=None):
    lines = diff_lines(text, theme, width, most)
    return [row.rstrip() for row in plain_text(lines).split("\n")]


def test_every_line_has_its_number_in_the_file_it_stands_in():
    assert said(diff(BEFORE, AFTER, "a.py").text) == [
        "  1   def f(x):",
        "  2 -     return x + 1  # one",
        "  2 +     return x + 22  # one",
        "  3",
        "  4",
        "  5   kept = 'yes'",
        "  6 + new = 3",
    ]


def test_lines_keep_the_colours_of_their_language_and_changed_words_are_marked():
    lines = diff_lines(diff(BEFORE, AFTER, "a.py").text, DARK, 60)
    removed, added = lines[1], lines[2]
    styles = {span.text: span.style for span in added}
    assert styles["return"].fg == DARK.keyword.fg
    assert styles["return"].bg == DARK.added_line.bg
    assert styles["22"].bg == DARK.added_word.bg
    assert {span.text: span.style for span in removed}["1"].bg == DARK.removed_word.bg
    assert all(line_width(line) == 60 for line in (removed, added))


@pytest.mark.parametrize("ground", [Rgb(0, 0, 0), Rgb(30, 30, 46), Rgb(255, 255, 255)])
def test_everything_can_be_read_on_its_band(ground):
    theme = theme_for("auto", ground, "truecolor")
    text = "#".join(("def f(x):\n    return 'a' + str(1.5)  ", " what\n"))
    for line in diff_lines(diff(text, text.replace("a", "b"), "a.py").text, theme, 60):
        for words, style in line:
            if words.strip() and isinstance(style.fg, Rgb) and isinstance(style.bg, Rgb):
                assert contrast(style.fg, style.bg) >= 4.4, (words, style)


def test_lines_that_have_nothing_in_common_have_no_marks():
    lines = diff_lines(diff("alpha beta\n", "1 2 3 4\n", "a.txt").text, DARK, 40)
    backs = {span.style.bg for line in lines for span in line}
    assert backs == {DARK.added_line.bg, DARK.removed_line.bg}


def test_hunks_files_and_missing_ends_are_told_apart():
    before = "".join(f"{n}\n" for n in range(40))
    two = diff(before, before.replace("3\n", "x\n", 1).replace("37\n", "y"), "a").text
    assert "  ⋯" in said(two)
    assert said(diff("a\n", "a", "b").text)[-1] == "  \\ No newline at end of file"
    both = "\n".join((diff("a\n", "b\n", "one.py").text, diff("c\n", "d\n", "two.py").text))
    assert [row for row in said(both) if row.endswith(".py")] == ["  one.py", "  two.py"]


def test_what_is_long_is_cut_and_what_is_wide_goes_on():
    new = diff("", "".join(f"line {n}\n" for n in range(50)), "a").text
    rows = said(new, most=10)
    assert rows[9] == "  10 + line 9"
    assert rows[10:] == ["  … 40 more lines"]
    assert said(diff("", "x" * 30 + "\n", "a").text, width=20) == [
        "  1 + " + "x" * 14,
        "    ↪ " + "x" * 14,
        "    ↪ xx",
    ]


def test_what_is_no_diff_is_shown_as_it_is():
    assert said("deletes a.bin: binary, 3 bytes") == ["  deletes a.bin: binary, 3 bytes"]


lines = st.lists(st.text("ab '\"#\t{é中", max_size=12), max_size=12)


@given(lines, lines, st.sampled_from(["a.py", "a.rs", "a", "a.unknown"]), st.integers(24, 80))
def test_no_text_is_lost_and_nothing_is_too_wide(before, after, name, width):
    old, new = ("".join(f"{row}\n" for row in rows) for rows in (before, after))
    text = diff(old, new, name).text
    for theme in (BARE, DARK):
        drawn = diff_lines(text, theme, width)
        assert all(line_width(line) <= width for line in drawn)
    rows = [row[1:] for row in text.split("\n")[2:] if not row.startswith("@@")]
    whole = "".join("".join(row.split()) for row in rows)
    shown = "".join("".join(row[6:].split()) for row in said(text, 500)) if text else ""
    assert sorted(shown.replace("⋯", "")) == sorted(whole)
