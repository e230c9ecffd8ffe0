"""The appearance of the terminal, determined once: its colours, its background, a theme for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from mull.tui.screen.colour import Rgb
from mull.tui.screen.depth import (
    BACKGROUND_QUERY,
    Depth,
    colour_depth,
    environment_background,
    read_background,
)
from mull.tui.screen.terminal import ask_terminal
from mull.tui.screen.theme import Theme, theme_for

__all__ = ["Surroundings", "look_around"]


class Surroundings(NamedTuple):
    """The number of colours, the background, what was already typed, and the user's themes."""

    depth: Depth
    background: Rgb | None
    typed: bytes = b""
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


def look_around(own: Mapping[str, Mapping[str, Any]]) -> Surroundings:
    """Query the environment, and the terminal if it may reply."""
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    depth = colour_depth(os.environ, is_terminal=is_terminal)
    if depth in ("none", "mono") or not is_terminal:
        return Surroundings(depth, None, own=own)
    heard = ask_terminal(BACKGROUND_QUERY, sys.stdin.fileno(), sys.stdout.fileno())
    background = read_background(heard.background) or environment_background(os.environ)
    return Surroundings(depth, background, heard.typed, own)
