"""The pictures in docs/ are of real runs: each cell in its place, nothing from outside."""

import re
import sys
from decimal import Decimal
from xml.etree import ElementTree

import pytest
from tools.pictures import scene
from tools.pictures.__main__ import COLUMNS, IMAGES, PICTURES
from tools.pictures.screen import TerminalScreen
from tools.pictures.svg import COLUMN, DARK, LIGHT, LINE, picture
from tools.pseudo_terminal import PseudoTerminal, Timeout

TERMINALS = ["terminal-dark.svg", "terminal-light.svg"]


def elements(svg, kind):
    return [e for e in ElementTree.fromstring(svg).iter() if e.tag.endswith("}" + kind)]


def drawn(written, columns=40):
    screen = TerminalScreen(columns, 6)
    screen.feed(written.replace("\n", "\r\n").encode())
    return picture(screen.rows())


def words(svg):
    """The text of each row, from the left."""
    rows = {}
    for e in elements(svg, "text"):
        rows.setdefault(float(e.get("y")), []).append((float(e.get("x")), e.text))
    return [" ".join(text for _, text in sorted(row)) for _, row in sorted(rows.items())]


def test_each_style_is_drawn_and_ends_where_it_ends():
    svg = drawn("$ mull\n\x1b[2;3ma <thought>\ngoes on\x1b[0m the \x1b[1m& \x1b[4manswer")
    look = [(e.text, e.get("fill"), e.get("font-style")) for e in elements(svg, "text")]
    faint = "#" + DARK.faint
    assert look == [
        ("$ mull", None, None),
        ("a <thought>", faint, "italic"),
        ("goes on", faint, "italic"),
        ("the", None, None),
        ("&", None, None),
        ("answer", None, None),
    ]
    *_, strong, lined = elements(svg, "text")
    assert (strong.get("font-weight"), strong.get("text-decoration")) == ("bold", None)
    assert (lined.get("font-weight"), lined.get("text-decoration")) == ("bold", "underline")


def test_normal_ends_faint_and_bold_alike():
    svg = drawn("\x1b[2mfaint\x1b[22m plain")
    assert [e.get("fill") for e in elements(svg, "text")] == ["#" + DARK.faint, None]


@pytest.mark.parametrize(
    ("code", "colour"),
    [("38;2;138;180;248", "8ab4f8"), ("38;5;208", "ff8700"), ("31", "cd3131")],
)
def test_colours_are_those_of_the_terminal(code, colour):
    [text] = elements(drawn(f"\x1b[{code}mword"), "text")
    assert text.get("fill") == f"#{colour}"


def test_a_shade_lies_under_its_cells_and_the_words_over_it():
    svg = drawn("ab\x1b[3;48;2;40;41;46m cd \x1b[0mef")
    [_, shade] = elements(svg, "rect")
    before, inside, after = elements(svg, "text")
    assert shade.get("fill") == "#28292e"
    assert float(shade.get("x")) == pytest.approx(float(before.get("x")) + 2 * COLUMN, abs=0.1)
    assert float(shade.get("width")) == pytest.approx(4 * COLUMN, abs=0.1)
    assert float(inside.get("x")) == pytest.approx(float(shade.get("x")) + COLUMN, abs=0.1)
    assert float(after.get("x")) == pytest.approx(float(shade.get("x")) + 4 * COLUMN, abs=0.1)


def test_shades_of_rows_below_each_other_leave_no_gap():
    svg = drawn("\x1b[48;2;40;41;46mab\ncd\x1b[0m")
    _, first, second = elements(svg, "rect")
    assert float(second.get("y")) - float(first.get("y")) == float(first.get("height")) == LINE


def test_a_wide_character_has_two_columns():
    wide, after = elements(drawn("思\x1b[1mx"), "text")
    assert float(wide.get("textLength")) == pytest.approx(2 * COLUMN, abs=0.1)
    assert float(after.get("x")) - float(wide.get("x")) == pytest.approx(2 * COLUMN, abs=0.1)


def test_empty_rows_at_the_end_are_cut_off():
    assert drawn("one\n\n\n") == drawn("one")


@pytest.mark.parametrize("name", TERMINALS)
def test_a_picture_needs_nothing_from_outside(name):
    svg = (IMAGES / name).read_text()
    ours = svg.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(
        r"https?:|href|url\(|@import|<script|<image|<foreignObject|file:|/tmp", ours
    )


@pytest.mark.parametrize("name", TERMINALS)
def test_a_picture_shows_the_whole_turn(name):
    svg = (IMAGES / name).read_text()
    shown = "\n".join(words(svg))
    assert f"❯ {scene.QUESTION}" in shown
    assert len(re.findall(r"Thought for [\d.]+ s · ~\d+ tokens", shown)) == 2
    bare = re.sub(r"\s", "", shown)  # words that changed are marked, each a text of its own
    for row in (*scene.OLD.splitlines(), *scene.NEW.splitlines()):
        assert re.sub(r"\s", "", row) in bare
    assert f"edited {scene.FILE} (+2 −2)" in shown
    assert re.search(r'>>> total\(\[ ?"9.99" ?, ?"0.51" ?\]\) +# was 12.49', shown)
    assert scene.ANSWER.strip().splitlines()[-1] in shown
    assert scene.MODEL in words(svg)[-1]


def is_under(shade, text):
    top, left = float(shade.get("y")), float(shade.get("x"))
    inside = top <= float(text.get("y")) < top + float(shade.get("height"))
    return inside and left <= float(text.get("x")) < left + float(shade.get("width"))


def test_thoughts_are_slanted_on_a_shade_that_differs_from_the_background():
    for name, look in zip(TERMINALS, (DARK, LIGHT), strict=True):
        svg = (IMAGES / name).read_text()
        thought = next(e for e in elements(svg, "text") if e.text.startswith("A cent off"))
        whole, *shades = elements(svg, "rect")
        assert thought.get("font-style") == "italic"
        assert whole.get("fill") == f"#{look.back}"
        [shade] = [e for e in shades if is_under(e, thought)]
        assert shade.get("fill") != f"#{look.back}"


def test_what_the_model_says_in_the_pictures_is_true():
    before, after = {}, {}
    assert scene.SOURCE.count(scene.OLD) == 1
    exec(scene.SOURCE, before)
    exec(scene.SOURCE.replace(scene.OLD, scene.NEW), after)
    assert (before["total"](["9.99", "0.51"]), "# was 12.49" in scene.ANSWER) == (12.49, True)
    assert after["total"](["9.99", "0.51"]) == Decimal("12.50")
    assert "Decimal('12.50')" in scene.ANSWER
    assert Decimal("10.50") * Decimal("1.19") == Decimal("12.495") > Decimal(10.50 * 1.19)


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", TERMINALS)
def test_the_pictures_are_what_the_program_shows_today(name):
    def timeless(svg):
        # the count holds the name of the folder, which is another one each time
        rows = [re.sub(r"for [\d.]+ s", "for a while", row) for row in words(svg)]
        return [re.sub(r"[\d.]+k?/1M", "some/1M", row) for row in rows]

    assert timeless(PICTURES[name](COLUMNS)) == timeless((IMAGES / name).read_text())


ASKS = """
import os, sys, termios, tty
tty.setcbreak(0, termios.TCSANOW)
os.write(1, sys.argv[1].encode().decode("unicode_escape").encode())
heard = b""
while not heard.endswith(sys.argv[2].encode()):
    heard += os.read(0, 99)
print(ascii(heard), os.get_terminal_size())
"""


def at_terminal(tmp_path, question, ending):
    return PseudoTerminal(
        [sys.executable, "-c", ASKS, question, ending],
        environment={"PATH": "/bin"},
        folder=tmp_path,
        size=(70, 20),
        colours=("d0d0d0", "102030"),
        cursor=lambda: (3, 7),
    )


@pytest.mark.parametrize(
    ("question", "ending", "reply"),
    [
        (r"\x1b]11;?\x1b\\", "\\", r"\x1b]11;rgb:1010/2020/3030\x1b\\"),
        (r"\x1b]10;?\x07", "\\", r"\x1b]10;rgb:d0d0/d0d0/d0d0\x1b\\"),
        (r"\x1b[c", "c", r"\x1b[?62;22c"),
        (r"\x1b[6n", "R", r"\x1b[3;7R"),
    ],
)
def test_the_terminal_answers_what_it_is_asked(tmp_path, question, ending, reply):
    with at_terminal(tmp_path, question, ending) as terminal:
        heard = terminal.read_until(lambda heard: b"lines=" in heard)
    assert f"b'{reply}'" in heard.decode()
    assert b"columns=70, lines=20" in heard


def test_waiting_for_what_never_comes_ends(tmp_path):
    with at_terminal(tmp_path, "nothing", "x") as terminal, pytest.raises(Timeout, match="nothing"):
        terminal.read_until(lambda heard: b"something" in heard, seconds=0.4)
