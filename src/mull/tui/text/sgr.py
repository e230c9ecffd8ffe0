"""Lines of styled text encoded for a terminal, with as few escape sequences as possible."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from mull.tui.screen.colour import PALETTE, Rgb, nearest_16, nearest_256
from mull.tui.screen.depth import Depth
from mull.tui.text.lines import PLAIN, Colour, Line, Style
from mull.tui.text.safe import Drawn, neutralise

__all__ = ["encode", "encode_line"]

# In the order of Style's fields after the colours: the codes that turn it on and off.
_ATTRIBUTES = ((1, 22), (3, 23), (2, 22), (4, 24), (7, 27), (9, 29))


def encode(lines: Iterable[Line], depth: Depth) -> Drawn:
    """The lines, each with a newline and no style left on."""
    return Drawn("".join(encode_line(line, depth) + "\n" for line in lines))


def encode_line(line: Line, depth: Depth) -> Drawn:
    """One line without its newline. Whatever a span contains, only styles get through."""
    if depth == "none":
        return Drawn("".join([_safe(text) for text, _ in line]).rstrip(" "))
    parts: list[str] = []
    now = PLAIN
    for text, style in line:
        if style is not now and style != now:
            parts.append(_change(now, style, depth))
            now = style
        parts.append(_safe(text))
    parts.append(_change(now, PLAIN, depth))
    return Drawn("".join(parts))


def _safe(text: str) -> str:
    if text.isprintable():
        return text
    return neutralise(text).replace("\n", " ").replace("\t", " ")


@lru_cache(4096)
def _change(before: Style, after: Style, depth: Depth) -> str:
    """The shorter of: only the differences, or a reset and everything."""
    old, new = _codes(before, depth), _codes(after, depth)
    if old == new:
        return ""
    if not any(new):
        return "\x1b[m"
    whole = ";".join(filter(None, ("0" if any(old) else "", *new)))
    ended = [
        str(end) for was, now, (_, end) in zip(old, new, _ENDS, strict=True) if was and not now
    ]
    begun = [now for was, now in zip(old, new, strict=True) if now and now != was]
    if "22" in ended:  # turns off both bold and dim, so the one that stays is set again
        begun += [
            now for was, now in zip(old, new, strict=True) if now == was and now in ("1", "2")
        ]
    difference = ";".join((*dict.fromkeys(ended), *begun))
    return f"\x1b[{min(whole, difference, key=len)}m"


_ENDS = ((0, 39), (0, 49), *_ATTRIBUTES)


@lru_cache(1024)
def _codes(style: Style, depth: Depth) -> tuple[str, ...]:
    """One code for each field of the style, empty if it is not set."""
    colours = (
        ("", "")
        if depth == "mono"
        else (_ground(style.fg, 38, depth), _ground(style.bg, 48, depth))
    )
    switches = (
        str(begin) if on else "" for on, (begin, _) in zip(style[2:], _ATTRIBUTES, strict=True)
    )
    return (*colours, *switches)


def _ground(colour: Colour, code: int, depth: Depth) -> str:
    """A colour as the text (38) or the background (48)."""
    if colour is None:
        return ""
    if isinstance(colour, Rgb) and depth == "truecolor":
        return f"{code};2;{colour.r};{colour.g};{colour.b}"
    if depth == "16":
        if isinstance(colour, Rgb) or colour >= 16:
            colour = nearest_16(colour if isinstance(colour, Rgb) else PALETTE[colour])
    elif isinstance(colour, Rgb):
        colour = nearest_256(colour)
    if colour < 16:
        return str(code - 8 + colour if colour < 8 else code + 52 + colour - 8)
    return f"{code};5;{colour}"
