"""The instant prompt shows what the editor will: the same text, in the same rows and colours."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.layout import BufferControl, Window
from prompt_toolkit.layout.mouse_handlers import MouseHandlers
from prompt_toolkit.layout.screen import Screen, WritePosition

import mull
from effort import tried
from mull.tui.instant.rows import NEXT, PROMPT, Rows
from mull.tui.instant.typed import Typed
from mull.tui.screen.colour import Rgb
from mull.tui.screen.ground import THEMES, prompt_codes
from mull.tui.screen.terminal import sift
from mull.tui.screen.theme import theme_for
from mull.tui.text.lines import Span
from mull.tui.text.sgr import encode_line

LETTERS = st.sampled_from("ab é漢ラ-/@")
REPLIES = st.sampled_from(
    [b"\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\", b"\x1b]11;rgb:0/0/0\x07", b"\x1b[?62;22c"]
)


def pasted(text):
    return b"\x1b[200~" + text.encode() + b"\x1b[201~"


def typed(*pieces):
    found = Typed()
    for piece in pieces:
        found.feed(piece)
    return found


KEYS = st.one_of(
    LETTERS.map(str.encode),
    st.just(b"\x7f"),
    st.just(b"\b"),
    REPLIES,
    st.text("ab漢\r\n", max_size=5).map(pasted),
)


@tried(1)
@given(st.lists(KEYS), st.lists(st.integers(0, 400)))
def test_however_it_is_read_the_text_is_the_same(keys, cuts):
    data = b"".join(keys)
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[a:b] for a, b in itertools.pairwise(places)]
    assert typed(*pieces).text == typed(*keys).text
    assert not typed(*pieces).is_unclear


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"ab\x7fc", "ac"),
        (b"\x7f\x7fa", "a"),
        ("é漢".encode() + b"\x7f", "é"),
        (b"a" + pasted("b\r\nc\rd") + b"e", "ab\nc\nde"),
        (pasted("x\n" * 30) + b"!", "[Pasted text #1 +30 lines]!"),
        (pasted("x\n" * 30) + b"\x7f", ""),
        (b"a\x1b[?62;22cb", "ab"),
    ],
)
def test_letters_backspace_and_pasted_text_are_shown(data, text):
    assert (typed(data).text, typed(data).is_unclear) == (text, False)


@pytest.mark.parametrize(
    "key", [b"\r", b"\n", b"\t", b"\x03", b"\x04", b"\x1b", b"\x1b[D", b"\x1bOA", b"\x1bb", b"\xff"]
)
def test_nothing_is_shown_from_a_key_on_that_only_the_editor_knows(key):
    found = typed(b"ab", key, b"cd")
    assert found.text == "ab"


def test_what_an_escape_in_pasted_text_would_do_is_not_done():
    assert typed(b"a", pasted("\x1b[2J"), b"b").text == "a"


@tried(1)
@given(st.lists(st.one_of(KEYS, st.just(b"\x1b"), st.just(b"\x1b[D"))))
def test_replies_are_told_from_what_is_typed(keys):
    replies = [key for key in keys if key.startswith((b"\x1b]", b"\x1b[?"))]
    found = sift(b"".join(keys))
    assert found.typed == b"".join(key for key in keys if key not in replies)
    colours = [reply for reply in replies if reply.startswith(b"\x1b]")]
    assert found.background == (colours[0] if colours else b"")
    assert found.is_answered == (len(colours) < len(replies))


def editor_rows(text, columns):
    """The rows that the editor draws, without blanks at their ends, and its cursor."""
    buffer = Buffer(document=Document(text), multiline=True)
    buffer.load_history_if_not_yet_loaded = lambda: None  # it would need a loop
    window = Window(
        BufferControl(buffer),
        wrap_lines=True,
        get_line_prefix=lambda line, wrap: NEXT if line or wrap else PROMPT,
    )
    screen = Screen()
    window.write_to_screen(
        screen, MouseHandlers(), WritePosition(0, 0, columns, 9), "", False, None
    )
    cursor = window.render_info.cursor_position
    rows = []
    for y in range(cursor.y + 1):
        cells, x, row = screen.data_buffer[y], 0, ""
        while x < columns:
            row += cells[x].char
            x += max(1, cells[x].width)
        rows.append(row.rstrip())
    return rows, cursor.x


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ab",
        "\n",
        "a" * 9,
        "a" * 10,
        "a" * 11,
        "漢" * 5,
        "a" + "漢" * 5,
        "é漢 a" * 6,
        "a\n\nb" * 3,
    ],
)
@pytest.mark.parametrize("columns", [12, 13])
def test_rows_are_those_of_the_editor(text, columns):
    rows = Rows(text, columns)
    assert ([row.rstrip() for row in rows.rows], rows.column) == editor_rows(text, columns)


@pytest.mark.parametrize("depth", ["truecolor", "256", "16", "mono", "none"])
@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize("background", [None, Rgb(30, 30, 46), Rgb(255, 250, 240), Rgb(90, 90, 90)])
def test_colours_are_those_of_the_theme(name, background, depth):
    theme = theme_for(name, background, depth)
    wanted = [theme.user_mark, theme.status._replace(bold=True)]
    codes = prompt_codes(name, background, depth)
    for code, style in zip(codes, wanted, strict=True):
        drawn = encode_line((Span("x", style),), depth).partition("x")[0]
        assert sorted(code[2:-1].split(";")) == sorted(drawn[2:-1].split(";"))


def test_nothing_is_imported_for_it_that_takes_a_while():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "import mull.cli.main, mull.tui.instant.prompt; print(*sys.modules)"
    )
    source = str(Path(mull.__file__).parents[1])
    command = [sys.executable, "-ISc", code, source]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    slow = {"typing", "re", "enum", "signal", "contextlib", "threading", "argparse", "msgspec"}
    assert not slow & set(done.stdout.split())
