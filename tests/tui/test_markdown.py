"""Markdown as lines: each block looks as it should, on the screen and in its styles."""

import pytest

from mull.tui.screen.theme import theme_for
from mull.tui.text.lines import Span, Style, plain_text
from mull.tui.text.markdown import MarkdownStream, markdown_lines
from tui.screens import BARE, DARK


def drawn(text, width=40, theme=BARE):
    return plain_text(markdown_lines(text, theme, width)).split("\n")


def styles(text, theme=DARK):
    """Each word of the text with its style."""
    lines = markdown_lines(text, theme, 200)
    return {span.text.strip(): span.style for line in lines for span in line}


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("one\ntwo\n\nthree", ["one", "two", "", "three"]),
        ("one  \ntwo\\\nthree", ["one", "two", "three"]),
        ("one line that must be broken somewhere else",
         ["one line that must be broken somewhere", "else"]),
        ("# One\ntext\n## Two ##\n\ntext", ["One", "text", "", "Two", "", "text"]),
        ("Title\n=====\ntext", ["Title", "text"]),
        ("- a\n- b\n  - c\n\n- d", ["• a", "• b", "  • c", "", "• d"]),
        ("1. a\n1. b\n\n   more\n7. c", ["1. a", "2. b", "", "   more", "3. c"]),
        ("3) a\n4) b", ["3) a", "4) b"]),
        ("- [ ] open\n- [x] done", ["☐ open", "☑ done"]),
        ("- a list item that is longer than its line",
         ["• a list item that is longer than its", "  line"]),
        ("1. a\n  - not far enough in", ["1. a", "   • not far enough in"]),
        ("-\n- b", ["•", "• b"]),
        ("> a\n> b\nlazy\n\nout", ["▎ a", "▎ b", "▎ lazy", "", "out"]),
        ("> a\n>\n> > b", ["▎ a", "▎", "▎ ▎ b"]),
        ("- > a\n  > b", ["• ▎ a", "  ▎ b"]),
        ("a\n\n---\nb", ["a", "", "─" * 40, "", "b"]),
        ("a\n```py\nx = 1\n\ny\n```\nb", ["a", "", "  py", "  x = 1", "", "  y", "", "b"]),
        ("~~~\n```\n~~~", ["  ```"]),
        ("    code\n\n    more", ["  code", "", "  more"]),
        ("- a\n  ```\n  x\n  ```\n- b", ["• a", "    x", "• b"]),
        ("```\nnever closed", ["  never closed"]),
        ("[a](http://b.c) and <http://d.e>", ["a (http://b.c) and http://d.e"]),
        ("[http://b.c](http://b.c)", ["http://b.c"]),
        ("![alt](i.png)", ["alt (i.png)"]),
        ("[a][b] [c]\n\n[b]: d", ["[a][b] [c]", "", "[b]: d"]),
        ("a &lt;b&gt; &amp; &#27;[1m", ["a <b> & [1m"]),
        ("<div>*a*</div>", ["<div>a</div>"]),
        ("a<br>b", ["a", "b"]),
        ("1986. was a year", ["1986. was a year"]),
        ("It was\n1986. Then", ["It was", "1986. Then"]),
        ("\n\n\na\n\n\n\nb\n\n", ["a", "", "b"]),
        ("", [""]),
    ],
)  # fmt: skip
def test_blocks_are_drawn(source, lines):
    assert drawn(source) == lines


def test_marks_become_styles():
    found = styles("plain **strong** *lean* ***both*** ~~gone~~ `code` [link](u)")
    assert found["plain"] == Style()
    assert found["strong"] == Style(bold=True)
    assert found["lean"] == Style(italic=True)
    assert found["both"] == Style(bold=True, italic=True)
    assert found["gone"] == Style(strike=True)
    assert found["code"] == DARK.code
    assert found["link"] == DARK.link
    assert found["(u)"] == DARK.url


def test_marks_add_to_the_style_they_stand_in():
    assert styles("> **a**")["a"] == DARK.quote._replace(bold=True)
    assert styles("# `a`")["a"] == DARK.code._replace(bold=True)
    assert styles("### a")["a"] == Style(bold=True)


def test_scripts_without_spaces_can_be_marked():
    assert styles("**「強調」**と")["「強調」"] == Style(bold=True)


def test_without_styles_the_marks_that_matter_are_kept():
    plain = theme_for("auto", None, "none")
    assert drawn("## Two\n\nuse `x` **now**", theme=plain) == ["## Two", "", "use `x` now"]


def test_code_has_light_colours():
    code = '```python\ndef f(a):\n    """two\n    lines"""\n    return a + 12  # why\n```'
    lines = markdown_lines(code, DARK, 80)
    assert lines[0] == (Span("  ", DARK.note), Span("python", DARK.note))
    assert lines[1][1:] == (Span("def", DARK.keyword), Span(" f(a):", DARK.code_block))
    assert lines[2][-1] == Span('"""two', DARK.string)
    assert lines[3][-1] == Span('    lines"""', DARK.string)
    assert lines[4][2:] == (
        Span("return", DARK.keyword),
        Span(" a + ", DARK.code_block),
        Span("12", DARK.number),
        Span("  ", DARK.code_block),
        Span("# why", DARK.comment),
    )


@pytest.mark.parametrize(
    ("language", "line", "word", "role"),
    [
        ("js", "const a = `x", "`x", "string"),
        ("rust", "fn f<'a>(x: &'a str) {}", "fn", "keyword"),
        ("sql", "SELECT a -- b", "-- b", "comment"),
        ("sql", "select a", "select", "keyword"),
        ("sh", "echo $# # c", "# c", "comment"),
        ("json", '{"a": true}', "true", "keyword"),
        ("c", "int a; /* b", "/* b", "comment"),
        ("diff", "+new", "+new", "added"),
        ("diff", "-old", "-old", "removed"),
        ("nolanguage", "if x", "if x", "code_block"),
    ],
)
def test_languages_of_several_families_are_known(language, line, word, role):
    _, spans = markdown_lines(f"```{language}\n{line}\n```", DARK, 80)
    assert Span(word, getattr(DARK, role)) in spans


def test_what_stands_beside_a_fence_is_kept():
    assert drawn('```python title="a.py"\nx\n```') == ['  python title="a.py"', "  x"]


def test_a_long_line_of_code_goes_on_after_a_mark():
    lines = drawn("```\nabcdefghijkl\n```", width=12)
    assert lines == ["  abcdefgh", "  ↪ ijkl"]


def test_a_table_is_aligned():
    source = "| Name | Size | Where |\n|:--|--:|:-:|\n| a.py | 12 | x |\n| **b** | 1234 | y \\| z |"
    assert drawn(source) == [
        "Name  Size  Where",
        "────  ────  ─────",
        "a.py    12    x",
        "b     1234  y | z",
    ]


def test_a_table_may_follow_its_introduction_at_once_and_ends_without_a_bar():
    assert drawn("See:\n| a | b |\n|---|---|\n| 1 | 2 |\nDone.") == [
        "See:", "", "a  b", "─  ─", "1  2", "", "Done.",
    ]  # fmt: skip


def test_cells_that_are_too_wide_break_inside_their_column():
    source = "| a | text |\n|---|---|\n| 1 | some words that are too many |"
    assert drawn(source, width=20) == [
        "a  text",
        "─  ─────────────────",
        "1  some words that",
        "   are too many",
    ]


def test_rows_stand_below_each_other_where_columns_have_no_room():
    source = "| name | size | more |\n|---|---|---|\n| one | long words here | x |\n| two | y | z |"
    assert drawn(source, width=14) == [
        "name: one",
        "size: long",
        "words here",
        "more: x",
        "",
        "name: two",
        "size: y",
        "more: z",
    ]


def test_cells_beyond_the_header_are_kept():
    assert drawn("| a | b |\n|---|---|\n| 1 | 2 | 3 |")[-1] == "1  2 | 3"


def test_two_lines_with_bars_are_no_table_without_the_line_of_dashes():
    assert drawn("a | b\nc | d") == ["a | b", "c | d"]


def test_open_marks_look_closed_while_they_stream():
    stream = MarkdownStream(DARK, 40)
    stream.feed("now **strong and `code")
    assert stream.commit() == []
    (line,) = stream.open_lines()
    assert [(s.text, s.style) for s in line] == [
        ("now ", Style()),
        ("strong and ", Style(bold=True)),
        ("code", DARK.code._replace(bold=True)),
    ]


@pytest.mark.parametrize("partial", ["#", "- ", "``", "| a", "---", "12.", "> ", "- [", "**"])
def test_a_line_that_may_become_anything_is_not_shown_yet(partial):
    stream = MarkdownStream(BARE, 40)
    stream.feed("text\n\n" + partial)
    assert plain_text(stream.commit()) == "text"
    assert stream.open_lines() == []


def test_a_closing_fence_is_not_shown_as_code():
    stream = MarkdownStream(BARE, 40)
    stream.feed("```\na\n``")
    assert plain_text(stream.commit()) == "  a"
    assert stream.open_lines() == []


def test_code_is_committed_line_by_line():
    stream = MarkdownStream(BARE, 40)
    stream.feed("```py\na = 1\nb =")
    assert plain_text(stream.commit()) == "  py\n  a = 1"
    assert plain_text(stream.open_lines()) == "  b ="


def test_rows_of_a_table_are_committed_once_its_columns_are_settled():
    stream = MarkdownStream(BARE, 40)
    stream.feed("| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 19)
    assert stream.commit() == []
    assert len(stream.open_lines()) == 21
    stream.feed("| 1 | 2 |\n")
    assert len(stream.commit()) == 22
    stream.feed("| wider | x |\n")
    assert plain_text(stream.commit()) == "w  x\ni\nd\ne\nr"


def test_another_width_holds_for_what_is_not_committed():
    stream = MarkdownStream(BARE, 40)
    stream.feed("first line\nsecond line of the text\nthird line of it\n")
    assert plain_text(stream.commit()) == "first line\nsecond line of the text"
    stream.resize(12)
    assert plain_text(stream.close()) == "third line\nof it"
