"""The appearance of the terminal, determined once: its colours, its background, a theme for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from mull.tui.instant import prompt
from mull.tui.screen import terminal
from mull.tui.screen.colour import Rgb
from mull.tui.screen.depth import Depth, colour_depth, environment_background, read_background
from mull.tui.screen.theme import Theme, theme_for

__all__ = ["Surroundings", "look_around"]


class Surroundings(NamedTuple):
    """The number of colours, the background, and the user's themes."""

    depth: Depth
    background: Rgb | None
    own: Mapping[str, Mapping[str, Any]] = {}

    def theme(self, name: str) -> Theme:
        """A theme for this terminal; the user's own take precedence over built-in ones.

        Raises:
            ConfigError: there is no theme of this name, or its table is invalid.
        """
        if name not in self.own:
            return theme_for(name, self.background, self.depth, self.own)
        from mull.tui.screen.theme_text import theme_from

        return theme_from(name, self.own[name], self.background, self.depth)


def look_around(own: Mapping[str, Mapping[str, Any]], theme: str) -> Surroundings:
    """Query the environment, and the terminal if it may reply: the instant prompt has asked it."""
    asked = prompt.begin(theme)
    depth = colour_depth(os.environ, is_terminal=asked is not None)
    reply = asked.background(terminal.PATIENCE) if asked is not None else b""
    background = read_background(reply)
    if background is None and asked is not None and depth not in ("none", "mono"):
        background = environment_background(os.environ)
    return Surroundings(depth, background, own)
