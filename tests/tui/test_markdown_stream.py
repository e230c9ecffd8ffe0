"""Markdown that streams: the same lines however it is cut, at a cost that grows with the text."""

import re
import sys
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mull.markdown import inline, reader
from mull.tui.text import markdown_table
from mull.tui.text.lines import line_width, plain_text
from mull.tui.text.markdown import MarkdownStream, markdown_lines
from tui.screens import BARE, DARK, cells, streamed

TEXT = [
    "# h\n", "- a\n", "  - b\n", "1. x\n", "> q\n", "```py\n", "```\n", "~~~\n", "\n", "d`\n",
    "text **bold\n", "more** `c\n", "---\n", "===\n", "    code\n", "\t", " ", " " * 30, "[a](b",
    "](", ")", "y" * 30, "日本語", "👩\u200d👩\u200d👧 ", "e\u0301", "https://a.b/c ", "- [ ] t\n",
    "*", "_", "~~", "![", "\\", "\r\n", "\r",
]  # fmt: skip
REST = ["| a | b |\n", "|---|---|\n", "\x1b[31m", "&amp;", "<br>", "\u202e", "\x9b", "\x07"]
texts = st.lists(st.sampled_from(TEXT), max_size=25).map("".join)
documents = st.lists(st.sampled_from(TEXT + REST), max_size=25).map("".join)
widths = st.sampled_from([10, 13, 20, 40, 80])


@contextmanager
def small_limits():
    """The limits of what can be open, small enough to be met by small texts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "LONG_LINE", 40)
        patch.setattr(reader, "_ENOUGH", 30)
        patch.setattr(inline, "REACH", 25)
        patch.setattr(inline, "_LONGEST_RUN", 6)
        patch.setattr(markdown_table, "SAMPLE", 2)
        yield


def assert_cuts_do_not_matter(text, width, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    whole = cells(markdown_lines(text, DARK, width))
    assert cells(streamed(text, cuts, width)) == whole
    assert cells(streamed(text, list(range(len(text))), width)) == whole


@settings(deadline=None, max_examples=60)
@given(documents, widths, st.data())
def test_however_the_text_is_cut_the_lines_are_the_same(text, width, data):
    assert_cuts_do_not_matter(text, width, data)


@settings(deadline=None, max_examples=60)
@given(documents, widths, st.data())
def test_that_holds_beyond_every_limit(text, width, data):
    with small_limits():
        assert_cuts_do_not_matter(text, width, data)


@given(documents, widths, st.integers(0, 200))
def test_no_line_is_too_wide_nor_holds_a_control_character(text, width, at):
    stream = MarkdownStream(DARK, width)
    stream.feed(text[:at])
    lines = stream.commit() + stream.open_lines()
    lines += markdown_lines(text, DARK, width)
    for line in lines:
        assert line_width(line) <= width
        said = "".join(span.text for span in line)
        assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", said)


@given(texts, widths)
def test_no_letter_is_lost_and_none_changes_its_place(text, width):
    def letters(said):
        return re.findall(r"[^\W\d_]", said)

    assert letters(plain_text(markdown_lines(text, DARK, width))) == letters(text)


ENDLESS = {
    "prose in one line": "some words and `code` or **bold** ones ",
    "one word": "x",
    "marks that open": "*a ",
    "brackets": "[a](",
    "code": "x = 'a'  # b\n",
    "rows": "| a | b |\n",
    "items": "- a\n  - b\n",
    "wide": "日本語",
    "newlines": "\n",
    "blanks": " ",
}


def steps(text):
    """Calls of functions that drawing a stream takes, with a repaint after every 50 characters."""
    count = 0

    def tick(frame, event, value):
        nonlocal count
        count += event == "call"

    stream = MarkdownStream(BARE, 80)
    before = sys.getprofile()
    sys.setprofile(tick)
    try:
        for start in range(0, len(text), 50):
            stream.feed(text[start : start + 50])
            stream.commit()
            stream.open_lines()
        stream.close()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("kind", ENDLESS)
def test_the_work_grows_with_the_text_and_not_with_its_square(kind):
    part = ENDLESS[kind]
    head = {"code": "```py\n", "rows": "| a | b |\n|---|---|\n"}.get(kind, "")
    with small_limits():
        once = steps(head + part * (2500 // len(part)))
        twice = steps(head + part * (5000 // len(part)))
    assert twice < 2.2 * once


@pytest.mark.parametrize("kind", ENDLESS)
def test_what_is_open_stays_small_however_long_the_text(kind):
    part = ENDLESS[kind]
    head = {"code": "```py\n", "rows": "| a | b |\n|---|---|\n"}.get(kind, "")
    stream = MarkdownStream(BARE, 80)
    stream.feed(head + part * (12_000 // len(part)))
    stream.commit()
    assert len(stream.open_lines()) <= 60
