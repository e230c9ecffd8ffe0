"""What a terminal can show, from its environment and its own answers."""

import pytest

from mull.tui.screen.colour import BLACK, PALETTE, WHITE, Rgb, luminance
from mull.tui.screen.depth import (
    BACKGROUND_QUERY,
    colour_depth,
    environment_background,
    read_background,
)
from mull.tui.screen.theme import theme_for


@pytest.mark.parametrize(
    ("environment", "depth"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "truecolor"),
        ({"TERM": "xterm-256color", "COLORTERM": "24bit"}, "truecolor"),
        ({"TERM": "xterm-256color"}, "256"),
        ({"TERM": "xterm-kitty"}, "truecolor"),
        ({"TERM": "xterm"}, "16"),
        ({"TERM": "linux"}, "16"),
        ({"TERM": "vt100"}, "mono"),
        ({"TERM": "dumb", "COLORTERM": "truecolor"}, "none"),
        ({"TERM": "xterm-256color", "NO_COLOR": "1", "FORCE_COLOR": "3"}, "none"),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, "256"),
        ({"TERM": "dumb", "FORCE_COLOR": "3"}, "truecolor"),
        ({"TERM": "xterm-256color", "FORCE_COLOR": "0"}, "none"),
        ({"FORCE_COLOR": "1"}, "16"),
        ({"WT_SESSION": "x"}, "truecolor"),
        # the promise of the outer terminal does not hold inside a multiplexer
        ({"TERM": "tmux-256color", "TMUX": "/tmp/x", "COLORTERM": "truecolor"}, "256"),
        ({"TERM": "screen.xterm-256color", "COLORTERM": "truecolor"}, "256"),
        ({"TERM": "tmux-direct", "TMUX": "/tmp/x"}, "truecolor"),
        ({"TERM": "vt100", "TMUX": "/tmp/x"}, "mono"),
    ],
)
def test_the_environment_tells_the_depth(environment, depth):
    assert colour_depth(environment, is_terminal=True) == depth


def test_a_pipe_gets_no_escapes_unless_they_are_forced():
    rich = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
    assert colour_depth(rich, is_terminal=False) == "none"
    assert colour_depth({**rich, "FORCE_COLOR": "2"}, is_terminal=False) == "256"


@pytest.mark.parametrize(
    ("reply", "background"),
    [
        (b"\x1b]11;rgb:1e1e/1e1e/2e2e\x07", Rgb(30, 30, 46)),
        (b"\x1b]11;rgb:1e/1e/2e\x1b\\", Rgb(30, 30, 46)),
        (b"\x1b]11;rgb:f/f/f\x07", WHITE),
        (b"\x1b]11;rgb:fff/000/fff\x07", Rgb(255, 0, 255)),
        (b"\x1b]11;rgba:0000/0000/0000/ffff\x07", BLACK),
        (b"typed\x1b]11;rgb:0000/0000/0000\x1b\\\x1b[?62c", BLACK),
        (b"\x1b]11;rgb:1e1e/1e1e/2e2e", None),
        (b"\x1b]10;rgb:ffff/ffff/ffff\x07", None),
        (b"\x1b[?62c", None),
        (b"", None),
    ],
)
def test_the_terminals_answer_is_read(reply, background):
    assert read_background(reply) == background


def test_the_question_is_osc_11():
    assert BACKGROUND_QUERY == b"\x1b]11;?\x1b\\"


USUAL = {
    "dark": """000000 002b36 0c0c0c 1d1f21 1e1e1e 1e1e2e 24283b 272822 282828 282a36 282c34 263238
    2b303b 2d353b 2e3440 300a24 303446 32302f 3f3f3f""",
    "light": "ffffff fdf6e3 fafafa ffffdd fef49c fbf1c7 eff1f5 eee8d5 eeeeee e5e9f0 f2e5bc",
}
"""Backgrounds of terminals and of the themes that people choose for them."""


@pytest.mark.parametrize("number", [*range(16), 16, 99, -1])
@pytest.mark.parametrize("form", ["15;{}", "0;{}", "15;default;{}", "default;{}", "{}"])
@pytest.mark.parametrize("depth", ["truecolor", "256"])
def test_colorfgbg_says_whether_the_background_is_dark_or_light_and_no_more(number, form, depth):
    """The shade suits every background that the number may stand for; else there is a bar."""
    background = environment_background({"COLORFGBG": form.format(number)})
    theme = theme_for("auto", background, depth)
    kind = {0: "dark", 8: "dark", 7: "light", 15: "light"}.get(number)
    assert (theme.thinking.bg is None) == (kind is None)
    for name in ("dark", "light"):
        assert theme_for(name, background, depth) == theme_for(name, None, depth)
    if kind is None:
        return
    own = theme_for(kind, None, depth)
    assert own.thinking == theme.thinking
    back = theme.thinking.bg
    shade = luminance(PALETTE[back] if isinstance(back, int) else back)
    for usual in map(bytes.fromhex, USUAL[kind].split()):
        assert (shade > luminance(Rgb(*usual))) == (kind == "dark"), usual.hex()


@pytest.mark.parametrize(
    "value", ["15;default", "default;default", "15;default;default", "", ";", "0;", "x;y", "15;०"]
)
def test_colorfgbg_may_name_no_background(value):
    assert environment_background({"COLORFGBG": value}) is None


def test_without_colorfgbg_the_background_is_unknown():
    assert environment_background({}) is None
