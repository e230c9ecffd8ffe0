"""Lines of so many cells, whatever the text and however it was cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.tui.text.lines import PLAIN, Span, Style, line_width, padded, plain_text
from mull.tui.text.width import clusters
from mull.tui.text.wrap import Wrapper, chopped, wrapped

BOLD = Style(bold=True)
FAMILY = "👩\u200d👩\u200d👧"
PARTS = ["a", "bc", "-", " ", "  ", "日", "本", "。", FAMILY, "e\u0301", "🇩🇪"]
words = st.lists(st.sampled_from(PARTS), max_size=30).map("".join)
spans = st.lists(st.tuples(words, st.sampled_from([PLAIN, BOLD])), max_size=8)


def lines_of(text, width):
    return plain_text(wrapped(text, PLAIN, width)).split("\n")


def set_in(pieces, width):
    wrapper, lines = Wrapper(width), []
    for text, style in pieces:
        wrapper.add(text, style)
        lines += wrapper.take()
    return lines + wrapper.finish()


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("one two three", 7, ["one two", "three"]),
        ("one two three", 8, ["one two", "three"]),
        ("one   two", 5, ["one", "two"]),
        ("abcdefgh ij", 3, ["abc", "def", "gh", "ij"]),
        ("a abcdefgh", 4, ["a", "abcd", "efgh"]),
        ("日本語です", 4, ["日本", "語で", "す"]),
        ("日本語。です", 6, ["日本", "語。で", "す"]),
        ("see 日本", 6, ["see 日", "本"]),
        ("    in\nout", 10, ["    in", "out"]),
        ("a\n\nb", 10, ["a", "", "b"]),
        ("a\tb", 10, ["a   b"]),
        ("x" * 3 + FAMILY * 2, 5, ["xxx" + FAMILY, FAMILY]),
    ],
)
def test_words_are_set_into_lines(text, width, lines):
    assert lines_of(text, width) == lines


@given(spans, st.integers(2, 12))
def test_no_line_is_wider_and_nothing_but_spaces_is_lost(pieces, width):
    lines = set_in(pieces, width)
    assert all(line_width(line) <= width for line in lines)
    said = "".join(text for text, _ in pieces).replace(" ", "")
    assert plain_text(lines).replace("\n", "").replace(" ", "") == said


@given(words, st.integers(2, 12), st.data())
def test_however_text_is_cut_the_lines_are_the_same(text, width, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    ends = zip([0, *cuts], [*cuts, len(text)], strict=True)
    pieces = [(text[a:b], PLAIN) for a, b in ends]
    assert plain_text(set_in(pieces, width)) == plain_text(set_in([(text, PLAIN)], width))


@given(words, st.integers(2, 9))
def test_no_cluster_is_cut(text, width):
    kept = [c for line in set_in([(text, PLAIN)], width) for s in line for c, _ in clusters(s.text)]
    assert [c for c in kept if c != " "] == [c for c, _ in clusters(text) if c != " "]


def test_styles_keep_their_words():
    lines = set_in([("one tw", PLAIN), ("o thr", BOLD), ("ee", PLAIN)], 7)
    assert lines == [
        (Span("one tw", PLAIN), Span("o", BOLD)),
        (Span("thr", BOLD), Span("ee", PLAIN)),
    ]


def test_another_width_holds_for_what_is_not_out_yet():
    wrapper = Wrapper(11)
    wrapper.add("one two three fou", PLAIN)
    assert plain_text(wrapper.take()) == "one two"
    wrapper.resize(5)
    wrapper.add("r five", PLAIN)
    assert plain_text(wrapper.finish()).split("\n") == ["three", "four", "five"]


def test_a_copy_goes_its_own_way():
    wrapper = Wrapper(20)
    wrapper.add("one", PLAIN)
    twin = wrapper.fork()
    twin.add(" two", PLAIN)
    wrapper.add(" three", PLAIN)
    assert plain_text(twin.finish()) == "one two"
    assert plain_text(wrapper.finish()) == "one three"


@given(spans, st.integers(2, 9))
def test_chopped_rows_are_full_and_keep_everything(pieces, width):
    rows = list(chopped([Span(*piece) for piece in pieces], width))
    assert all(line_width(row) <= width for row in rows)
    assert all(line_width(row) >= width - 1 for row in rows[:-1])
    assert plain_text(rows).replace("\n", "") == "".join(text for text, _ in pieces)


def test_padding_reaches_the_edge_and_not_beyond():
    assert padded((Span("日", PLAIN),), 4, BOLD) == (Span("日", PLAIN), Span("  ", BOLD))
    assert padded((Span("full", PLAIN),), 4, BOLD) == (Span("full", PLAIN),)
