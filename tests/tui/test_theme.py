"""Themes: every colour can be read where it stands, and people can write their own."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mull.neutral.errors import ConfigError
from mull.tui.screen.colour import BLACK, PALETTE, QUIET, WHITE, Rgb, contrast, is_dark, luminance
from mull.tui.screen.look import Surroundings
from mull.tui.screen.theme import THEMES, theme_for
from mull.tui.screen.theme_text import ROLES, parse_style, theme_from
from mull.tui.text.lines import PLAIN, Style

byte = st.integers(0, 255)
backgrounds = st.one_of(
    st.builds(Rgb, byte, byte, byte),
    st.sampled_from([BLACK, WHITE, Rgb(30, 30, 46), Rgb(253, 246, 227), Rgb(0, 43, 54)]),
)
coloured = st.sampled_from(["truecolor", "256"])


def rgb(colour):
    return PALETTE[colour] if isinstance(colour, int) else colour


@settings(max_examples=50)
@given(backgrounds, coloured)
def test_text_of_every_role_can_be_read(background, depth):
    theme = theme_for("auto", background, depth)
    for role in ROLES:
        style = getattr(theme, role)
        if style.fg is not None and role != "faint":
            behind = background if style.bg is None else rgb(style.bg)
            assert contrast(rgb(style.fg), behind) >= 4.5, role


@settings(max_examples=50)
@given(backgrounds, coloured)
def test_thoughts_stand_on_a_quiet_shade(background, depth):
    thinking = theme_for("auto", background, depth).thinking
    behind = rgb(thinking.bg)
    assert thinking.italic
    assert QUIET[0] <= contrast(behind, background) <= QUIET[1]
    assert (luminance(behind) > luminance(background)) == is_dark(background)


@pytest.mark.parametrize("depth", ["truecolor", "256"])
@pytest.mark.parametrize("background", [BLACK, WHITE])
def test_high_contrast_keeps_seven_to_one(background, depth):
    theme = theme_for("high-contrast", background, depth)
    assert contrast(rgb(theme.thinking.fg), rgb(theme.thinking.bg)) >= 7
    assert contrast(rgb(theme.note.fg), background) >= 7


def test_256_colours_are_named_by_number_so_that_nothing_is_rounded_again():
    theme = theme_for("auto", Rgb(30, 30, 46), "256")
    assert isinstance(theme.thinking.bg, int)
    assert isinstance(theme.heading.fg, int)


def test_a_theme_is_drawn_on_the_real_background_if_it_is_of_its_kind():
    deep = Rgb(10, 10, 20)
    assert (
        theme_for("dark", deep, "truecolor").thinking.bg
        == theme_for("auto", deep, "truecolor").thinking.bg
    )
    assert is_dark(theme_for("dark", WHITE, "truecolor").thinking.bg)
    assert not is_dark(theme_for("light", None, "truecolor").thinking.bg)


@pytest.mark.parametrize(
    ("background", "depth"), [(None, "truecolor"), (BLACK, "16"), (None, "256")]
)
def test_without_a_background_or_colours_a_bar_stands_for_the_shade(background, depth):
    theme = theme_for("auto", background, depth)
    assert theme.thinking == Style(italic=True, dim=True)
    assert theme.bar == "│ "
    used = {getattr(theme, role).fg for role in ROLES}
    assert used <= {None, 1, 2, 3, 5, 6}


def test_without_colours_styles_remain():
    theme = theme_for("auto", BLACK, "mono")
    assert theme.heading == Style(bold=True)
    assert {getattr(theme, role).fg for role in ROLES} == {None}


@pytest.mark.parametrize("name", THEMES)
def test_without_escapes_every_role_is_plain_and_marks_are_kept(name):
    theme = theme_for(name, BLACK, "none")
    assert {getattr(theme, role) for role in ROLES} == {PLAIN}
    assert theme.marks


def test_an_unknown_theme_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match=r'"dracula": use one of auto, dark, .* or plain'):
        theme_for("dracula", None, "256")


def test_a_theme_of_ones_own_changes_what_it_names():
    table = {
        "base": "dark",
        "thinking": "italic #b0b6c6 on #222",
        "user-mark": "bold bright-cyan",
        "bar": "> ",
    }
    theme = theme_from("mine", table, None, "truecolor")
    assert theme.name == "mine"
    assert theme.thinking == Style(Rgb(0xB0, 0xB6, 0xC6), Rgb(0x22, 0x22, 0x22), italic=True)
    assert theme.user_mark == Style(fg=14, bold=True)
    assert theme.heading == theme_for("dark", None, "truecolor").heading
    assert theme.bar == "> "


@pytest.mark.parametrize(
    ("words", "style"),
    [
        ("", PLAIN),
        ("213 on 17", Style(213, 17)),
        ("underline default on grey", Style(None, 8, underline=True)),
        ("Bold DIM strike reverse", Style(bold=True, dim=True, strike=True, reverse=True)),
    ],
)
def test_styles_are_words(words, style):
    assert parse_style(words) == style


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"headings": "bold"}, 'theme mine: unknown role "headings"; did you mean heading?'),
        ({"heading": "blod"}, 'theme mine, heading: "blod" is neither a colour'),
        ({"heading": "bold on"}, "theme mine, heading: `on` must be followed by a colour"),
        ({"heading": 7}, "theme mine, heading: expected text, not 7"),
        ({"heading": "#12345"}, '"#12345" is neither a colour'),
        ({"base": "drak"}, 'unknown theme "drak"'),
    ],
)
def test_what_is_wrong_in_a_table_is_said(table, message):
    with pytest.raises(ConfigError) as told:
        theme_from("mine", table, None, "truecolor")
    assert message in str(told.value)


def test_a_bar_cannot_smuggle_escapes_or_push_the_text_away():
    theme = theme_from("mine", {"bar": "\x1b[31m" + "|" * 50}, None, "256")
    assert theme.bar == "␛[31"


def test_a_theme_of_ones_own_is_chosen_by_name_and_goes_before_a_built_in_one():
    own = {"mine": {"heading": "bold red"}, "auto": {"base": "ansi", "heading": "blue"}}
    around = Surroundings("truecolor", BLACK, own=own)
    assert around.theme("mine").heading == Style(fg=1, bold=True)
    assert around.theme("auto").heading == Style(fg=4)
    assert around.theme("dark") == theme_for("dark", BLACK, "truecolor")
    with pytest.raises(ConfigError, match=r'"dracula": use one of auto, .*, plain or mine$'):
        around.theme("dracula")
