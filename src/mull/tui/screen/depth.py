"""What the environment and the terminal's replies say about its colours.

Depths, from high to low: `truecolor`, `256`, `16`, `mono` (bold and italic, no colour), `none` (no
escape sequences at all).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias

from mull.tui.screen.colour import PALETTE, Rgb

__all__ = ["BACKGROUND_QUERY", "Depth", "colour_depth", "environment_background", "read_background"]

Depth: TypeAlias = Literal["truecolor", "256", "16", "mono", "none"]

BACKGROUND_QUERY = b"\x1b]11;?\x1b\\"
"""Asks a terminal for its background (OSC 11); `read_background` parses the reply."""

_REPLY = re.compile(
    rb"\x1b\]11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})"
    rb"(?:/[0-9a-fA-F]{1,4})?(?:\x07|\x1b\\)"
)
_FORCED: Mapping[str, Depth] = {"0": "none", "false": "none", "2": "256", "3": "truecolor"}
_RICH = re.compile(r"-direct$|kitty|alacritty|ghostty|wezterm|^foot|^contour|^rio")
_MULTIPLEXED = re.compile(r"^(screen|tmux)\b")
_COLOURLESS = re.compile(r"^(vt\d+|ansi-m|xterm-mono|.*-m)$")


def colour_depth(environment: Mapping[str, str], *, is_terminal: bool) -> Depth:
    """The colour depth according to environment variables.

    `NO_COLOR` wins, then `FORCE_COLOR` (0 to 3). Inside tmux and screen, the outer terminal's claim
    of true colour cannot be trusted: they round colours, and a subtle shade may disappear, so mull
    chooses among 256 itself.
    """
    if environment.get("NO_COLOR"):
        return "none"
    if "FORCE_COLOR" in environment:
        return _FORCED.get(environment["FORCE_COLOR"].lower(), "16")
    term = environment.get("TERM", "")
    if not is_terminal or term in ("dumb", "unknown"):
        return "none"
    if term.endswith("-direct"):
        return "truecolor"
    if environment.get("TMUX") or environment.get("STY") or _MULTIPLEXED.match(term):
        return "mono" if _COLOURLESS.match(term) else "256"
    return _plain_terminal(environment, term)


def _plain_terminal(environment: Mapping[str, str], term: str) -> Depth:
    announced = environment.get("COLORTERM", "").lower() in ("truecolor", "24bit")
    if announced or "WT_SESSION" in environment or _RICH.search(term):
        return "truecolor"
    if "256" in term:
        return "256"
    return "mono" if _COLOURLESS.match(term) else "16"


def read_background(reply: bytes) -> Rgb | None:
    """The background in a terminal's reply, or None if it contains none."""
    found = _REPLY.search(reply)
    if found is None:
        return None
    parts = (round(int(part, 16) * 255 / (16 ** len(part) - 1)) for part in found.groups())
    return Rgb(*parts)


def environment_background(environment: Mapping[str, str]) -> Rgb | None:
    """The background that `COLORFGBG` names (`15;0`, `0;default;15`), for terminals that do not
    reply.
    """
    number = environment.get("COLORFGBG", "").rpartition(";")[2]
    return PALETTE[int(number)] if number.isdecimal() and int(number) < 16 else None
