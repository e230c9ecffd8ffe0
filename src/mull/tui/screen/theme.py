"""The style of each role: the built-in themes, adapted to a terminal's background and depth.

Colours are checked where they are chosen. Text keeps a contrast of 4.5:1 (7:1 in `high-contrast`)
against its background, and the shade behind thinking stays visible and unobtrusive, among 256
colours too. If the background is unknown or there are only 16 colours, the terminal's palette is
used, and a bar beside the thinking replaces the shade.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from mull.neutral.blocks import Value
from mull.neutral.errors import ConfigError
from mull.settings.words import join_or, quote
from mull.tui.screen.colour import (
    LEAST_CONTRAST,
    PALETTE,
    Rgb,
    is_dark,
    nearest_256,
    readable,
    readable_256,
    shade,
    shade_256,
    tint,
)
from mull.tui.screen.depth import Depth
from mull.tui.screen.ground import LEAST, STATUS, THEMES, USER_MARK, ground_for
from mull.tui.text.lines import PLAIN, Colour, Style

__all__ = ["THEMES", "Theme", "theme_for"]


class Theme(Value, frozen=True):
    """A style for each role."""

    name: str
    """The name by which `--theme` and `/theme` choose it."""
    text: Style = PLAIN
    """The model's answers, and whatever has no role of its own."""
    thinking: Style = PLAIN
    """The text of thinking."""
    thinking_label: Style = PLAIN
    """The title of a piece of thinking, and the bar beside it."""
    heading: Style = PLAIN
    """Headings in answers, titles of pages and questions."""
    code: Style = PLAIN
    """Code within a line, and commands that are shown for approval."""
    code_block: Style = PLAIN
    """Code blocks, where no token has a style of its own."""
    keyword: Style = PLAIN
    """Keywords in code blocks."""
    string: Style = PLAIN
    """Strings in code blocks."""
    number: Style = PLAIN
    """Numbers in code blocks."""
    comment: Style = PLAIN
    """Comments in code blocks."""
    added: Style = PLAIN
    """The sign before an added line of a diff."""
    removed: Style = PLAIN
    """The sign before a removed line of a diff."""
    added_line: Style = PLAIN
    """An added line of a diff."""
    removed_line: Style = PLAIN
    """A removed line of a diff."""
    added_word: Style = PLAIN
    """The changed words in an added line."""
    removed_word: Style = PLAIN
    """The changed words in a removed line."""
    quote: Style = PLAIN
    """Quoted text in answers."""
    link: Style = PLAIN
    """The text of a link."""
    url: Style = PLAIN
    """The address of a link."""
    faint: Style = PLAIN
    """What matters least, such as rules, gaps and hints."""
    user: Style = PLAIN
    """The user's own messages."""
    user_mark: Style = PLAIN
    """The mark before a message of the user, and before what is being typed."""
    tool: Style = PLAIN
    """The line that names a tool call."""
    tool_output: Style = PLAIN
    """The output of tools."""
    error: Style = PLAIN
    """Errors, and the output of tools that failed."""
    warning: Style = PLAIN
    """Warnings and questions."""
    note: Style = PLAIN
    """Notes and remarks beside the conversation."""
    status: Style = PLAIN
    """The status line."""
    accent: Style = PLAIN
    """What is selected or active, such as a choice or the spinner."""
    bar: str = "  "
    """The text at the left of every line of thinking."""
    marks: bool = False
    """Whether headings and code keep their Markdown marks, because no style shows them."""
    words: bool = False
    """Whether words replace symbols, for screen readers."""


class _Hue(NamedTuple):
    dark: Rgb
    light: Rgb
    more: Style = PLAIN


_ITALIC, _BOLD = Style(italic=True), Style(bold=True)

# A role's colour on a dark background, on a light one, and its attributes. Other roles have the
# terminal's own colour.
_HUES: Mapping[str, _Hue] = {
    "heading": _Hue(Rgb(138, 180, 248), Rgb(26, 86, 176), _BOLD),
    "code": _Hue(Rgb(222, 184, 142), Rgb(138, 75, 15)),
    "keyword": _Hue(Rgb(190, 165, 228), Rgb(118, 62, 157)),
    "string": _Hue(Rgb(158, 199, 155), Rgb(46, 107, 52)),
    "number": _Hue(Rgb(222, 184, 142), Rgb(138, 75, 15)),
    "comment": _Hue(Rgb(136, 144, 160), Rgb(100, 108, 122), _ITALIC),
    "added": _Hue(Rgb(158, 199, 155), Rgb(46, 107, 52)),
    "removed": _Hue(Rgb(242, 139, 130), Rgb(179, 38, 30)),
    "quote": _Hue(Rgb(170, 178, 194), Rgb(84, 92, 106)),
    "link": _Hue(Rgb(138, 180, 248), Rgb(26, 86, 176), Style(underline=True)),
    "url": _Hue(Rgb(136, 144, 160), Rgb(100, 108, 122)),
    "user_mark": _Hue(*USER_MARK, _BOLD),
    "tool": _Hue(Rgb(127, 209, 185), Rgb(15, 118, 110)),
    "tool_output": _Hue(Rgb(136, 144, 160), Rgb(100, 108, 122)),
    "error": _Hue(Rgb(242, 139, 130), Rgb(179, 38, 30)),
    "warning": _Hue(Rgb(238, 197, 116), Rgb(138, 90, 0)),
    "note": _Hue(Rgb(136, 144, 160), Rgb(100, 108, 122)),
    "status": _Hue(*STATUS),
    "accent": _Hue(Rgb(127, 209, 185), Rgb(15, 118, 110)),
}
_THOUGHT = (Rgb(176, 182, 198), Rgb(78, 86, 100))
_LABEL = (Rgb(142, 150, 168), Rgb(96, 104, 118))
_FAINT = (Rgb(96, 103, 118), Rgb(168, 174, 184))
_BANDS = {"added": (Rgb(46, 160, 67), 0.17, 0.38), "removed": (Rgb(218, 54, 51), 0.17, 0.38)}
"""Hues behind the lines of a diff, and their strength for a line and for a changed word."""

_ANSI = Theme(
    "ansi",
    thinking=Style(italic=True, dim=True),
    thinking_label=Style(dim=True),
    heading=Style(fg=6, bold=True),
    code=Style(fg=6),
    keyword=Style(fg=5),
    string=Style(fg=2),
    number=Style(fg=6),
    comment=Style(dim=True, italic=True),
    added=Style(fg=2),
    removed=Style(fg=1),
    added_line=Style(fg=2),
    removed_line=Style(fg=1),
    added_word=Style(fg=2, bold=True, underline=True),
    removed_word=Style(fg=1, bold=True, underline=True),
    quote=Style(dim=True),
    link=Style(underline=True),
    url=Style(dim=True),
    faint=Style(dim=True),
    user=_BOLD,
    user_mark=Style(fg=6, bold=True),
    tool=Style(fg=6),
    tool_output=Style(dim=True),
    error=Style(fg=1),
    warning=Style(fg=3),
    note=Style(dim=True),
    status=Style(dim=True),
    accent=Style(fg=6),
    bar="│ ",
)


def theme_for(name: str, background: Rgb | None, depth: Depth, own: Iterable[str] = ()) -> Theme:
    """A built-in theme adapted to this terminal; `own` are the names of the user's themes.

    Raises:
        ConfigError: no theme has this name.
    """
    if name not in THEMES:
        known = join_or(dict.fromkeys((*THEMES, *own)))
        raise ConfigError(f"unknown theme {quote(name)}: use one of {known}")
    if depth == "none":
        return Theme(name, bar="│ ", marks=True)
    if name == "plain" or depth == "mono":
        return _without_colours(name)
    ground = ground_for(name, background, depth)
    if ground is None:
        return replace(_ANSI, name=name)
    return _coloured(name, ground, depth)


def _without_colours(name: str) -> Theme:
    styles: dict[str, Any] = {
        role: style._replace(fg=None, bg=None)
        for role in _ANSI.__struct_fields__
        if isinstance(style := getattr(_ANSI, role), Style)
    }
    styles |= {"error": _BOLD, "warning": _BOLD, "added": _BOLD, "removed": Style(dim=True)}
    styles |= {"added_line": _BOLD, "removed_line": Style(dim=True)}
    return replace(_ANSI, name=name, marks=True, **styles)


def _coloured(name: str, ground: Rgb, depth: Depth) -> Theme:
    strict = name == "high-contrast"
    side = 0 if is_dark(ground) else 1
    least = LEAST.get(name, LEAST_CONTRAST)
    choose = partial(_chosen, few=depth == "256")
    back: Rgb | int = shade_256(ground) if depth == "256" else shade(ground)
    behind = PALETTE[back] if isinstance(back, int) else back
    styles: dict[str, Any] = {
        role: hue.more._replace(fg=choose(hue.light if side else hue.dark, ground, least))
        for role, hue in _HUES.items()
    }
    theme = Theme(
        name,
        thinking=Style(choose(_THOUGHT[side], behind, least), back, italic=True),
        thinking_label=Style(choose(_LABEL[side], behind, least), back),
        faint=Style(choose(_FAINT[side], ground, LEAST_CONTRAST if strict else 1.5)),
        user=_BOLD,
    )
    return replace(theme, **styles, **_bands(ground, depth))


def _bands(ground: Rgb, depth: Depth) -> dict[str, Style]:
    """The backgrounds of the lines and words of a diff."""
    bands: dict[str, Style] = {}
    for role, (hue, line, word) in _BANDS.items():
        for part, strength in (("line", line), ("word", word)):
            back = tint(ground, hue, strength)
            bands[f"{role}_{part}"] = Style(bg=nearest_256(back) if depth == "256" else back)
    return bands


def _chosen(wanted: Rgb, on: Rgb, least: float, *, few: bool) -> Colour:
    return readable_256(wanted, on, least) if few else readable(wanted, on, least)
