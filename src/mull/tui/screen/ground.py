"""What a theme does to the prompt, in a module that is imported in no time.

The first prompt is drawn before anything else is loaded, and looks as the theme draws it later.
"""

from __future__ import annotations

from mull.tui.screen.colour import (
    LEAST_CONTRAST,
    Rgb,
    is_dark,
    readable,
    readable_256,
)

TYPE_CHECKING = False  # without importing typing, so that the first prompt is fast
if TYPE_CHECKING:
    from mull.tui.screen.depth import Depth

__all__ = ["GROUNDS", "LEAST", "STATUS", "THEMES", "USER_MARK", "ground_for", "prompt_codes"]

THEMES = ("auto", "dark", "light", "high-contrast", "ansi", "plain")
LEAST = {"high-contrast": 7.0}
"""The contrast of text, where a theme wants more than the usual."""
USER_MARK = (Rgb(127, 209, 185), Rgb(15, 118, 110))
"""The mark before the input on a dark background, and on a light one."""
STATUS = (Rgb(136, 144, 160), Rgb(100, 108, 122))
GROUNDS = {"dark": Rgb(58, 58, 62), "light": Rgb(232, 229, 220)}
"""Backgrounds of which no more is known. Each is near the middle of the scale for its kind, so that
its shade is lighter than the dark backgrounds in use, and darker than the light ones."""


def ground_for(name: str, background: Rgb | None, depth: Depth) -> Rgb | None:
    """The background that a theme's colours are chosen for; None if the palette's are used."""
    if name == "ansi" or depth not in ("truecolor", "256"):
        return None
    ground = background if name == "auto" else GROUNDS.get(name, background)
    if name in GROUNDS and background is not None and is_dark(background) == (name == "dark"):
        ground = background
    if name == "high-contrast" and ground is None:
        ground = GROUNDS["dark"]
    return ground


def prompt_codes(name: str, background: Rgb | None, depth: Depth) -> tuple[str, str]:
    """The sequences that begin the mark before the input and the status line below it."""
    if depth == "none":
        return "", ""
    if name == "plain" or depth == "mono":
        return "\x1b[1m", "\x1b[1;2m"
    ground = ground_for(name, background, depth)
    if ground is None:
        return "\x1b[1;36m", "\x1b[1;2m"
    side, least = (0 if is_dark(ground) else 1), LEAST.get(name, LEAST_CONTRAST)
    return _bold(USER_MARK[side], ground, least, depth), _bold(STATUS[side], ground, least, depth)


def _bold(wanted: Rgb, ground: Rgb, least: float, depth: Depth) -> str:
    if depth == "256":
        return f"\x1b[1;38;5;{readable_256(wanted, ground, least)}m"
    red, green, blue = readable(wanted, ground, least)
    return f"\x1b[1;38;2;{red};{green};{blue}m"
