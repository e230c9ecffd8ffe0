"""Colours: the shade behind thoughts is seen and quiet, and text on it can be read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.tui.screen.colour import (
    BLACK,
    LEAST_CONTRAST,
    PALETTE,
    QUIET,
    WHITE,
    Rgb,
    contrast,
    is_dark,
    luminance,
    nearest_16,
    nearest_256,
    readable,
    readable_256,
    shade,
    shade_256,
)

byte = st.integers(0, 255)
colours = st.builds(Rgb, byte, byte, byte)


def test_contrast_is_that_of_wcag():
    assert contrast(BLACK, WHITE) == pytest.approx(21)
    assert contrast(Rgb(119, 119, 119), WHITE) == pytest.approx(4.48, abs=0.01)
    assert contrast(Rgb(255, 0, 0), WHITE) == pytest.approx(4.0, abs=0.01)
    assert contrast(WHITE, WHITE) == 1


@given(colours)
def test_the_shade_is_seen_and_quiet_on_any_background(background):
    behind = shade(background)
    assert QUIET[0] <= contrast(behind, background) <= QUIET[1]
    assert (luminance(behind) > luminance(background)) == is_dark(background)


@given(colours)
def test_so_is_the_shade_among_256_colours(background):
    behind = PALETTE[shade_256(background)]
    assert QUIET[0] <= contrast(behind, background) <= QUIET[1]
    assert (luminance(behind) > luminance(background)) == is_dark(background)


@given(colours, colours)
def test_a_text_colour_is_changed_only_as_far_as_it_must_be(wanted, on):
    text = readable(wanted, on)
    assert contrast(text, on) >= LEAST_CONTRAST
    if contrast(wanted, on) >= LEAST_CONTRAST:
        assert text == wanted
    assert contrast(PALETTE[readable_256(wanted, on)], on) >= LEAST_CONTRAST


def test_a_contrast_out_of_reach_gives_the_best_there_is():
    grey = Rgb(110, 110, 110)
    assert readable(grey, grey, 7.0) == WHITE
    assert PALETTE[readable_256(grey, grey, 7.0)] in (BLACK, WHITE)


@pytest.mark.parametrize("number", [16, 21, 59, 196, 231, 232, 255])
def test_colours_of_the_palette_are_their_own_nearest(number):
    assert PALETTE[nearest_256(PALETTE[number])] == PALETTE[number]


def test_the_nearest_is_never_one_of_the_16_that_people_change():
    assert all(nearest_256(colour) >= 16 for colour in PALETTE[:16])
    assert [nearest_16(PALETTE[n]) for n in (1, 2, 11, 15)] == [1, 2, 11, 15]
