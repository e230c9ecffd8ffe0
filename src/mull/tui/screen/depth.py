"""What the environment and the terminal's replies say about its colours.

Depths, from high to low: `truecolor`, `256`, `16`, `mono` (bold and italic, no colour), `none` (no
escape sequences at all).
"""

from __future__ import annotations

from mull.tui.screen.colour import Rgb
from mull.tui.screen.ground import GROUNDS

TYPE_CHECKING = False  # without importing typing, so that the first prompt is fast
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal, TypeAlias

__all__ = ["BACKGROUND_QUERY", "Depth", "colour_depth", "environment_background", "read_background"]

if TYPE_CHECKING:
    Depth: TypeAlias = Literal["truecolor", "256", "16", "mono", "none"]
else:
    Depth = str

BACKGROUND_QUERY = b"\x1b]11;?\x1b\\"
"""Asks a terminal for its background (OSC 11); `read_background` parses the reply."""

_FORCED: Mapping[str, Depth] = {"0": "none", "false": "none", "2": "256", "3": "truecolor"}
_RICH = ("kitty", "alacritty", "ghostty", "wezterm")
_RICH_STARTS = ("foot", "contour", "rio")
_MULTIPLEXERS = ("screen", "tmux")


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
    if environment.get("TMUX") or environment.get("STY") or _is_multiplexed(term):
        return "mono" if _is_colourless(term) else "256"
    return _plain_terminal(environment, term)


def _plain_terminal(environment: Mapping[str, str], term: str) -> Depth:
    announced = environment.get("COLORTERM", "").lower() in ("truecolor", "24bit")
    rich = term.startswith(_RICH_STARTS) or any(name in term for name in _RICH)
    if announced or "WT_SESSION" in environment or rich:
        return "truecolor"
    if "256" in term:
        return "256"
    return "mono" if _is_colourless(term) else "16"


def _is_multiplexed(term: str) -> bool:
    return any(term == one or term.startswith((f"{one}-", f"{one}.")) for one in _MULTIPLEXERS)


def _is_colourless(term: str) -> bool:
    return term == "xterm-mono" or term.endswith("-m") or (term[:2] == "vt" and term[2:].isdigit())


def read_background(reply: bytes) -> Rgb | None:
    """The background in a terminal's reply, or None if it contains none."""
    for kind in (b"\x1b]11;rgb:", b"\x1b]11;rgba:"):
        rest = reply.partition(kind)[2]
        told = min(rest.partition(b"\x07")[0], rest.partition(b"\x1b\\")[0], key=len)
        parts = told.split(b"/") if told != rest else []
        if len(parts) in (3, 4) and all(map(_is_level, parts)):
            return Rgb(*(round(int(part, 16) * 255 / (16 ** len(part) - 1)) for part in parts[:3]))
    return None


_KINDS = {"0": "dark", "8": "dark", "7": "light", "15": "light"}


def _is_level(part: bytes) -> bool:
    """One to four hexadecimal digits."""
    return 1 <= len(part) <= 4 and not part.strip(b"0123456789abcdefABCDEF")


def environment_background(environment: Mapping[str, str]) -> Rgb | None:
    """The background that `COLORFGBG` names (`15;0`, `0;default;15`), for terminals that do not
    reply.

    The number is one of the 16 colours, which everybody chooses for themselves: it only says
    whether the background is dark (black and its bright form) or light (white and its bright form).
    """
    kind = _KINDS.get(environment.get("COLORFGBG", "").rpartition(";")[2])
    return GROUNDS[kind] if kind else None
