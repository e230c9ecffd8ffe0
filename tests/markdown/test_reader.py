"""One reader for every place that shows Markdown: its events, the same however the text is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.markdown.events import (
    BOLD,
    IMAGE,
    LINK,
    SOFT,
    URL,
    Code,
    CodeLine,
    CodePart,
    Item,
    Piece,
    Pieces,
    Row,
    Sign,
    Table,
    Text,
)
from mull.markdown.reader import LONG_LINE, Reader, read

TEXT = [
    "# h\n", "- a\n", "  - b\n", "1. x\n", "> q\n", "```py\n", "```\n", "\n", "d`\n", "**bold\n",
    "more** `c\n", "---\n", "    code\n", "\t", " ", "[a](b", "](", ")", "y" * 70, "https://a.b/c ",
    "- [ ] t\n", "*", "__", "name", "~~", "![", "\\", "| a | b |\n", "|---|---|\n", "&amp;", "<br>",
]  # fmt: skip


def text(said, level=0):
    return [Text(level), Pieces([Piece(said, 0)]), Sign.DONE]


@pytest.mark.parametrize(
    ("source", "events"),
    [
        ("a\n\n\n# b\n***\n", [*text("a"), Sign.BLANK, *text("b", 1), Sign.RULE]),
        ("> 3. a\n> 5. b", [Sign.QUOTE, Item(3, ".", True), *text("a"), Sign.END,
                            Item(4, ".", False), *text("b"), Sign.END, Sign.END]),
        ("- [x] a\n* b", [Item(None, "-", True, True), *text("a"), Sign.END,
                          Item(None, "*", True), *text("b"), Sign.END]),
        ("```py a\nx\n\n```", [Code("py a"), CodeLine("x"), CodeLine(""), Sign.DONE]),
        ("    x\n\n\ty\n\n", [Code(""), CodeLine("x"), CodeLine(""), CodeLine("y"), Sign.DONE,
                             Sign.BLANK]),
        ("|a|\n|-:|\n|1|2|\n", [Table([[Piece("a", 0)]], [">"]), Row([[Piece("1 | 2", 0)]]),
                                Sign.DONE]),
        ("![a](b) **[c](d)**", [Text(0), Pieces([
            Piece("a", LINK | IMAGE, "b"), Piece(" (b)", URL), Piece(" ", 0),
            Piece("c", LINK | BOLD, "d"), Piece(" (d)", URL | BOLD)]), Sign.DONE]),
        ("x" * 80 + "\ny\n  z", [Text(0), Pieces([Piece("x" * 80, 0), Piece("\n", SOFT),
         Piece("y", 0), Piece("\n  ", 0), Piece("z", 0)]), Sign.DONE]),
        ("", []),
    ],
)  # fmt: skip
def test_events_are_told(source, events):
    assert read(source) == events


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2*3*4", "2*3*4"),
        ("**2**nd", "2nd"),
        ("a __init__ b", "a __init__ b"),
        ("__Note__ __two words__", "Note two words"),
        (r"\(x\) \[y\] \*", r"\(x\) \[y\] *"),
        ("a&#8238;&nbsp;&Tab;&#27;b", "a\xa0 b"),
        ("http:// x", "http:// x"),
    ],
)
def test_what_models_mean_is_kept(text, shown):
    (_, content, _) = read(text)
    assert "".join(piece.text for piece in content.pieces) == shown


def test_a_very_long_line_of_code_comes_in_parts():
    line = "x" * (LONG_LINE + 1)
    assert read(f"```\n{line}\n```") == [
        *(Code(""), CodePart(line), CodePart("", is_last=True), Sign.DONE),
    ]


def told(events):
    """Events in which text is a character at a time, so that its cuts are not seen."""
    for event in events:
        if isinstance(event, Pieces):
            for text, flags, address in event.pieces:
                yield from ((c, flags, address) for c in text)
        else:
            yield event


@given(st.lists(st.sampled_from(TEXT), max_size=20).map("".join), st.data())
def test_however_the_text_is_cut_the_events_are_the_same(text, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    reader = Reader()
    events = []
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        reader.feed(text[start:end])
        events += reader.take()
        reader.rest()
    assert list(told([*events, *reader.close()])) == list(told(read(text)))


@given(st.lists(st.sampled_from(TEXT), max_size=20).map("".join), st.integers(0, 200))
def test_what_is_taken_and_the_rest_are_whole_together(text, at):
    reader = Reader()
    reader.feed(text[:at])
    depth, leaves = 0, 0
    for event in [*reader.take(), *reader.rest()]:
        depth += (event is Sign.QUOTE or isinstance(event, Item)) - (event is Sign.END)
        leaves += isinstance(event, Text | Code | Table) - (event is Sign.DONE)
        assert depth >= 0
        assert leaves in (0, 1)
    assert (depth, leaves) == (0, 0)
