"""A thought that is written word by word is, in the end, the same text in the same lines."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.tui.conversation.thought import boxed, room_in
from mull.tui.conversation.thought_flow import ThoughtFlow
from mull.tui.conversation.thought_text import ThoughtText
from mull.tui.screen.colour import Rgb
from mull.tui.screen.theme import theme_for
from mull.tui.text.safe import Inbox
from mull.tui.text.sgr import encode
from mull.tui.text.width import cell_width

SGR = re.compile(r"\x1b\[[0-9;]*m")
LOOKS = [(Rgb(30, 30, 46), "truecolor"), (Rgb(255, 255, 255), "256"), (None, "16"), (None, "none")]
PARTS = [*"ab c\n\t*`-，。中文é🌍\u0301\u202e\x1b\r", "wörd ", "\n\n", "**T**\n"]
texts = st.lists(st.sampled_from(PARTS), max_size=80).map("".join)
cuts = st.lists(st.integers(0, 400), max_size=12)


def pieces(text, at):
    ends = sorted({0, *(cut for cut in at if cut < len(text)), len(text)})
    return [text[a:b] for a, b in pairwise(ends)]


def flowed(theme, depth, width, kind, text, at):
    flow = ThoughtFlow(theme, depth, width, kind)
    return "".join([flow.feed(piece, width) for piece in pieces(text, at)]) + flow.close()


@pytest.mark.parametrize(("ground", "depth"), LOOKS, ids=["dark", "light", "16", "none"])
@given(texts, cuts, st.integers(12, 60), st.sampled_from(["raw", "summary"]))
def test_however_it_is_cut_it_reads_as_it_is_drawn(ground, depth, text, at, width, kind):
    theme = theme_for("auto", ground, depth)
    whole, inbox = ThoughtText(theme, room_in(theme, width), marked=kind == "summary"), Inbox()
    inbox.add(text)
    whole.add(inbox.take(final=True))
    lines = [boxed(line, theme.thinking, theme, width) for line in whole.finish()]
    drawn = encode(lines, depth)
    written = flowed(theme, depth, width, kind, text, at)
    assert SGR.sub("", written) == SGR.sub("", drawn)
    assert set(SGR.sub("", written)) & set("\x1b\r\u202e") == set()
    if depth == "none":
        assert "\x1b" not in written


@given(texts, cuts)
def test_its_colours_end_with_every_piece(text, at):
    """Whoever writes in between writes in colours of their own."""
    theme = theme_for("auto", Rgb(30, 30, 46), "truecolor")
    flow = ThoughtFlow(theme, "truecolor", 40)
    for piece in [*[flow.feed(piece, 40) for piece in pieces(text, at)], flow.close()]:
        assert not SGR.search(piece) or SGR.findall(piece)[-1] == "\x1b[m"


@given(texts, cuts, st.lists(st.integers(12, 60), min_size=1, max_size=12))
def test_a_window_that_changes_loses_nothing(text, at, widths):
    theme = theme_for("auto", Rgb(30, 30, 46), "truecolor")
    flow = ThoughtFlow(theme, "truecolor", widths[0])
    told = pieces(text, at)
    wide = [widths[n % len(widths)] for n in range(len(told))]
    written = "".join(flow.feed(piece, width) for piece, width in zip(told, wide, strict=True))
    whole = SGR.sub("", written + flow.close())
    still = SGR.sub("", flowed(theme, "truecolor", 60, "raw", text, at))
    assert "".join(whole.split()) == "".join(still.split())
    assert all(cell_width(line) <= 60 for line in whole.split("\n"))
