"""Lines as bytes of a terminal: every style arrives, with few escapes, and nothing else does."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.tui.screen.colour import Rgb
from mull.tui.text.lines import PLAIN, Span, Style
from mull.tui.text.sgr import encode, encode_line

byte = st.integers(0, 255)
colour = st.one_of(st.none(), byte, st.builds(Rgb, byte, byte, byte))
styles = st.builds(Style, colour, colour, *[st.booleans()] * 6)
spans = st.builds(Span, st.text("abc é日", min_size=1, max_size=4), styles)
_ON = {1: "bold", 3: "italic", 2: "dim", 4: "underline", 7: "reverse", 9: "strike"}
_OFF = {23: "italic", 24: "underline", 27: "reverse", 29: "strike"}


def colour_of(codes):
    """The colour at the head of some codes, and what is left of them."""
    head, *rest = codes
    if head % 10 < 8:
        return head % 10 + (8 if head >= 90 else 0), rest
    if rest[0] == 2:
        return Rgb(*rest[1:4]), rest[4:]
    return rest[1], rest[2:]


def obey(style, codes):
    """What a terminal makes of the codes of one sequence."""
    while codes:
        code = codes[0]
        if code == 0:
            style, codes = PLAIN, codes[1:]
        elif code in _ON:
            style, codes = style._replace(**{_ON[code]: True}), codes[1:]
        elif code == 22:
            style, codes = style._replace(bold=False, dim=False), codes[1:]
        elif code in _OFF:
            style, codes = style._replace(**{_OFF[code]: False}), codes[1:]
        elif code in (39, 49):
            style, codes = style._replace(**{"fg" if code == 39 else "bg": None}), codes[1:]
        else:
            ground = "fg" if code // 10 in (3, 9) else "bg"
            value, codes = colour_of(codes)
            style = style._replace(**{ground: value})
    return style


def cells(text):
    """Each character with the style that a terminal would give it, and the style at the end."""
    seen, style = [], PLAIN
    first, *rest = re.split(r"\x1b\[([\d;]*)m", text)
    seen += [(c, style) for c in first]
    for codes, words in zip(rest[::2], rest[1::2], strict=True):
        style = obey(style, [int(code or 0) for code in codes.split(";")])
        seen += [(c, style) for c in words]
    return seen, style


@given(st.lists(spans, max_size=6))
def test_a_terminal_sees_every_character_in_its_style(line):
    seen, left = cells(encode_line(tuple(line), "truecolor"))
    assert seen == [(c, span.style) for span in line for c in span.text]
    assert left == PLAIN


def test_only_what_changes_is_said():
    bold, both = Style(bold=True), Style(bold=True, italic=True)
    line = (Span("a", bold), Span("b", both), Span("c", bold), Span("d", PLAIN))
    assert encode_line(line, "truecolor") == "\x1b[1ma\x1b[3mb\x1b[23mc\x1b[md"


def test_ending_bold_keeps_dim():
    line = (Span("a", Style(bold=True, dim=True)), Span("b", Style(dim=True)))
    assert cells(encode_line(line, "16"))[0][1] == ("b", Style(dim=True))


@pytest.mark.parametrize(
    ("depth", "codes"),
    [
        ("truecolor", "38;2;30;30;46;48;5;236;1"),
        ("256", "38;5;234;48;5;236;1"),
        ("16", "30;100;1"),
        ("mono", "1"),
    ],
)
def test_colours_are_rounded_to_the_depth(depth, codes):
    line = (Span("a", Style(Rgb(30, 30, 46), 236, bold=True)),)
    assert encode_line(line, depth) == f"\x1b[{codes}ma\x1b[m"


def test_bright_colours_have_codes_of_their_own():
    assert encode_line((Span("a", Style(fg=9, bg=12)),), "256") == "\x1b[91;104ma\x1b[m"


def test_without_depth_there_is_no_escape_and_no_padding():
    lines = [(Span("a", Style(1, 2, True)), Span("   ", Style(bg=3))), ()]
    assert encode(lines, "none") == "a\n\n"


@given(st.text(max_size=20), st.sampled_from(["truecolor", "none"]))
def test_whatever_a_span_holds_only_styles_get_through(text, depth):
    out = encode_line((Span(text, PLAIN),), depth)
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", out)
