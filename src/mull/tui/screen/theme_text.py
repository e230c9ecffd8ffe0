"""Themes that people write: a table of roles and styles in words.

    [themes.mine]
    base = "dark"
    thinking = "italic #b0b6c6 on #26262e"
    heading = "bold cyan"

Styles are words of one line: attributes, a colour, `on` a colour. A colour is `#rrggbb`, `#rgb`, a
number of the palette, one of the 16 names, or `default`. What a table does not say is its base's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from mull.neutral.errors import ConfigError
from mull.settings.words import closest, join_or, quote_value
from mull.tui.screen.colour import Rgb
from mull.tui.screen.depth import Depth
from mull.tui.screen.theme import Theme, theme_for
from mull.tui.text.lines import Colour, Style
from mull.tui.text.safe import neutralise
from mull.tui.text.width import fitted

__all__ = ["ROLES", "parse_style", "theme_from"]

ROLES = tuple(
    name for name in Theme.__struct_fields__ if isinstance(getattr(Theme(""), name), Style)
)
_ATTRIBUTES = Style._fields[2:]
_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_COLOURS = {
    **{name: number for number, name in enumerate(_NAMES)},
    **{f"bright-{name}": number + 8 for number, name in enumerate(_NAMES)},
    "grey": 8,
    "gray": 8,
    "default": None,
}
_HEX = re.compile(r"#(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})")


def theme_from(name: str, table: Mapping[str, Any], background: Rgb | None, depth: Depth) -> Theme:
    """The theme that a user's table describes.

    Raises:
        ConfigError: an unknown role or base, or text that is not a style; says which and where.
    """
    words = {key.replace("-", "_"): value for key, value in table.items()}
    theme = theme_for(_text(name, "base", words.pop("base", "auto")), background, depth)
    bar = words.pop("bar", theme.bar)
    changes: dict[str, Any] = {}
    for role, value in words.items():
        if role not in ROLES:
            near = closest(role, ROLES)
            hint = f"did you mean {near}?" if near else f"roles are {join_or(ROLES)}"
            raise ConfigError(f"theme {name}: unknown role {quote_value(role)}; {hint}")
        changes[role] = parse_style(_text(name, role, value), f"theme {name}, {role}")
    return replace(theme, name=name, bar=fitted(_text(name, "bar", bar), 4, ""), **changes)


def parse_style(words: str, where: str = "style") -> Style:
    """A style from words such as `bold #88c0d0 on black`.

    Raises:
        ConfigError: a word is neither an attribute nor a colour.
    """
    fields: dict[str, Any] = {}
    ground = "fg"
    for word in words.lower().split():
        if word == "on":
            ground = "bg"
        elif word in _ATTRIBUTES:
            fields[word] = True
        else:
            fields[ground] = _colour(word, where)
            ground = "fg"
    if ground == "bg":
        raise ConfigError(f"{where}: `on` must be followed by a colour")
    return Style(**fields)


def _colour(word: str, where: str) -> Colour:
    if word in _COLOURS:
        return _COLOURS[word]
    if word.isdecimal() and int(word) < 256:
        return int(word)
    if _HEX.fullmatch(word):
        digits = word[1:] if len(word) == 7 else "".join(2 * digit for digit in word[1:])
        return Rgb(*bytes.fromhex(digits))
    raise ConfigError(
        f"{where}: {quote_value(word)} is neither a colour (#rrggbb, 0 to 255, {', '.join(_NAMES)},"
        f" default) nor {join_or(_ATTRIBUTES)}"
    )


def _text(name: str, key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"theme {name}, {key}: expected text, not {quote_value(value)}")
    return neutralise(value)
