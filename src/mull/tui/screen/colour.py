"""Colours as numbers: brightness, distance, and contrast.

Brightness and contrast are WCAG's (relative luminance, 1:1 to 21:1). Distance is measured in OKLab,
where equal steps look equal. The shade behind thinking is computed here: lighter than a dark
background and darker than a light one, with a contrast that is visible but unobtrusive.
"""

from __future__ import annotations

from collections import namedtuple
from functools import cache, lru_cache

TYPE_CHECKING = False  # without importing typing, so that the first prompt is fast
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NamedTuple

__all__ = [
    "BLACK",
    "LEAST_CONTRAST",
    "PALETTE",
    "QUIET",
    "WHITE",
    "Rgb",
    "contrast",
    "is_dark",
    "luminance",
    "nearest_16",
    "nearest_256",
    "readable",
    "readable_256",
    "shade",
    "shade_256",
    "tint",
]


if TYPE_CHECKING:

    class Rgb(NamedTuple):
        """A colour of the sRGB space, 0 to 255 each."""

        r: int
        g: int
        b: int
else:
    Rgb = namedtuple("Rgb", ("r", "g", "b"))


BLACK, WHITE = Rgb(0, 0, 0), Rgb(255, 255, 255)
LEAST_CONTRAST = 4.5
"""WCAG AA for text."""
QUIET = (1.08, 1.35)
"""The range of contrast in which a background is visible but not distracting."""
_SHADE = 1.16


def _linear(value: int) -> float:
    part = value / 255
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


_LINEAR = tuple(map(_linear, range(256)))


def _encoded(part: float) -> int:
    """The 8-bit value of a linear part between 0 and 1."""
    value = part * 12.92 if part <= 0.0031308 else 1.055 * part ** (1 / 2.4) - 0.055
    return round(min(max(value, 0.0), 1.0) * 255)


def luminance(colour: Rgb) -> float:
    """0 for black, 1 for white."""
    r, g, b = colour
    return 0.2126 * _LINEAR[r] + 0.7152 * _LINEAR[g] + 0.0722 * _LINEAR[b]


def contrast(one: Rgb, other: Rgb) -> float:
    """From 1 (the same brightness) to 21 (black on white)."""
    return _ratio(luminance(one), luminance(other))


def _ratio(one: float, other: float) -> float:
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


def is_dark(colour: Rgb) -> bool:
    """Whether white text is more readable on it than black."""
    return contrast(colour, WHITE) >= contrast(colour, BLACK)


@lru_cache(4096)
def _oklab(colour: Rgb) -> tuple[float, float, float]:
    r, g, b = (_LINEAR[value] for value in colour)
    long = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b) ** (1 / 3)
    middle = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b) ** (1 / 3)
    short = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b) ** (1 / 3)
    return (
        0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
    )


def _mixed(colour: Rgb, pole: Rgb, part: float) -> Rgb:
    """A mix with `part` of the pole's light, the rest from the colour."""
    pairs = zip(colour, pole, strict=True)
    return Rgb(*(_encoded(_LINEAR[a] + part * (_LINEAR[b] - _LINEAR[a])) for a, b in pairs))


@lru_cache(256)
def shade(background: Rgb, strength: float = _SHADE) -> Rgb:
    """The background of thinking."""
    light = luminance(background)
    if is_dark(background):
        part = (light + 0.05) * (strength - 1) / (1 - light)
        return _mixed(background, WHITE, part)
    part = (light + 0.05) * (1 - 1 / strength) / light
    return _mixed(background, BLACK, part)


@lru_cache(256)
def tint(background: Rgb, hue: Rgb, part: float) -> Rgb:
    """A background mixed with a part of a hue, in perceptual terms."""
    pairs = zip(background, hue, strict=True)
    return Rgb(*(round(a + part * (b - a)) for a, b in pairs))


@lru_cache(1024)
def readable(wanted: Rgb, on: Rgb, least: float = LEAST_CONTRAST) -> Rgb:
    """The wanted colour, lightened or darkened only as far as readability requires."""
    if contrast(wanted, on) >= least:
        return wanted
    pole = WHITE if is_dark(on) else BLACK
    low, high = 0.0, 1.0
    for _ in range(12):
        middle = (low + high) / 2
        if contrast(_mixed(wanted, pole, middle), on) >= least:
            high = middle
        else:
            low = middle
    return _mixed(wanted, pole, high)


_SIXTEEN = (
    (0, 0, 0), (205, 0, 0), (0, 205, 0), (205, 205, 0),
    (0, 0, 238), (205, 0, 205), (0, 205, 205), (229, 229, 229),
    (127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0),
    (92, 92, 255), (255, 0, 255), (0, 255, 255), (255, 255, 255),
)  # fmt: skip
_STEPS = (0, 95, 135, 175, 215, 255)

PALETTE: tuple[Rgb, ...] = (
    *(Rgb(*colour) for colour in _SIXTEEN),
    *(Rgb(r, g, b) for r in _STEPS for g in _STEPS for b in _STEPS),
    *(Rgb(8 + 10 * n, 8 + 10 * n, 8 + 10 * n) for n in range(24)),
)
"""The 256 colours of xterm. People change the first 16, so only 16 to 255 are used."""


_LIGHT = tuple(map(luminance, PALETTE))


def _closest(wanted: Rgb, numbers: Iterable[int]) -> int:
    x, y, z = _oklab(wanted)

    def squared(number: int) -> float:
        a, b, c = _oklab(PALETTE[number])
        return (a - x) * (a - x) + (b - y) * (b - y) + (c - z) * (c - z)

    return min(numbers, key=squared)


@cache
def nearest_256(wanted: Rgb) -> int:
    """The palette's number for a colour."""
    return _closest(wanted, range(16, 256))


@cache
def nearest_16(wanted: Rgb) -> int:
    """The number among the 16 colours that every terminal has."""
    return _closest(wanted, range(16))


@lru_cache(256)
def shade_256(background: Rgb, strength: float = _SHADE) -> int:
    """The shade among the 256 colours: the closest that is on the right side and unobtrusive."""
    dark, light = is_dark(background), luminance(background)
    ideal = shade(background, strength)
    least, most = QUIET
    quiet = [
        number
        for number in range(16, 256)
        if (_LIGHT[number] > light) == dark and least <= _ratio(_LIGHT[number], light) <= most
    ]
    return _closest(ideal, quiet)


@lru_cache(1024)
def readable_256(wanted: Rgb, on: Rgb, least: float = LEAST_CONTRAST) -> int:
    """The closest of the 256 colours that is readable there."""
    ideal = readable(wanted, on, least)
    light = luminance(on)
    good = [n for n in range(16, 256) if _ratio(_LIGHT[n], light) >= least]
    return _closest(ideal, good or (nearest_256(BLACK), nearest_256(WHITE)))
