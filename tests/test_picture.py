"""The picture of a terminal shows its text, each piece in its place and style."""

from xml.etree import ElementTree

from tools.picture import picture

FAINT = "\x1b[2;3ma <thought>\nthat goes on\x1b[0m\x1b[39m\x1b[49m the & answer\n$\n\n"


def texts(svg):
    return [e for e in ElementTree.fromstring(svg) if e.tag.endswith("}text")]


def test_styles_hold_until_they_end_also_across_lines():
    drawn = texts(picture(f"$ mull\n{FAINT}"))
    assert [(e.text, e.get("font-style")) for e in drawn] == [
        ("$ mull", None),
        ("a <thought>", "italic"),
        ("that goes on", "italic"),
        (" the & answer", None),
    ]


def test_lines_and_columns_have_their_place():
    first, second, third, after = texts(picture(f"$ mull\n{FAINT}", "a & b"))
    assert float(second.get("y")) > float(first.get("y"))
    assert third.get("y") == after.get("y")
    assert float(after.get("x")) > float(third.get("x")) == float(first.get("x"))
