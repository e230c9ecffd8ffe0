"""The bottom of the terminal: what is still changing, and below it whatever the application adds.

What is finished goes up into the terminal's own scrollback, once, and is never touched again. Only
the region below is drawn again, at most so many times a second, however fast the model speaks;
reading never waits for drawing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from prompt_toolkit.application import Application
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout import FormattedTextControl, Window

from mull.tui.screen.colour import PALETTE, Rgb, nearest_256
from mull.tui.screen.depth import Depth
from mull.tui.text.lines import BLANK, Line, Style
from mull.tui.text.safe import neutralise
from mull.tui.text.sgr import encode

if TYPE_CHECKING:
    from mull.tui.screen.painter import Frame

__all__ = ["PAUSE", "InlineApplication", "InlineScreen", "fragments"]

PAUSE = 0.05
"""Seconds between two drawings."""
_SETTLED = 0.12
"""Seconds that a window's size must stay before everything is drawn for it."""
_BELOW = 6
"""Rows kept for what stands below the live lines."""
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""Terminals that know this show what lies between in one step; the others pass over it."""
_CLEAR = "\x1b[2J\x1b[H"
_ANSI = (
    "ansiblack ansired ansigreen ansiyellow ansiblue ansimagenta ansicyan ansigray "
    "ansibrightblack ansibrightred ansibrightgreen ansibrightyellow ansibrightblue "
    "ansibrightmagenta ansibrightcyan ansiwhite"
).split()


class InlineApplication(Application[None]):
    """An application that leaves it to the conversation to draw itself at another width."""

    def __init__(self, resized: Callable[[], None], **more: Any) -> None:
        super().__init__(**more)
        self._resized = resized
        self._columns = self.output.get_size().columns
        self._settling: asyncio.TimerHandle | None = None
        self.before_render += lambda _: self.begin_step()
        self.after_render += lambda _: self._end_step()

    @property
    def is_lent(self) -> bool:
        """Whether an editor has the terminal."""
        return self._running_in_terminal

    def begin_step(self) -> None:
        """What is written from here on is seen when the region is drawn, and not before."""
        self.output.write_raw(_BEGIN)

    def draw(self) -> None:
        """Draw the region now."""
        self._redraw()

    def _end_step(self) -> None:
        self.output.write_raw(_END)
        self.output.flush()

    def _on_resize(self) -> None:
        columns = self.output.get_size().columns
        if columns == self._columns:
            self.begin_step()
            super()._on_resize()
            return
        # the terminal has moved the lines about: once the window rests, all is drawn afresh
        if self._settling is not None:
            self._settling.cancel()
        self._settling = asyncio.get_running_loop().call_later(_SETTLED, self._settle)

    def _settle(self) -> None:
        self._settling = None
        self._columns = self.output.get_size().columns
        self._resized()


class InlineScreen:
    """Draws above and into the region of a running application."""

    def __init__(self, depth: Depth, frame: Callable[[], Frame]) -> None:
        self.depth: Depth = depth
        self.app: InlineApplication | None = None
        self._frame = frame
        self._live: Sequence[Line] = ()
        self._cleared = False
        self._timer: asyncio.TimerHandle | None = None
        self._drawn = 0.0
        self.region = Window(
            FormattedTextControl(self._fragments),
            dont_extend_height=True,
            wrap_lines=False,
            always_hide_cursor=True,
        )

    @property
    def width(self) -> int:
        """The columns that a line may take."""
        return self.app.output.get_size().columns if self.app else 80

    @property
    def height(self) -> int:
        """The rows of the terminal."""
        return self.app.output.get_size().rows if self.app else 24

    def clear(self) -> None:
        """Begin at the top of an empty screen; the scrollback stays the terminal's."""
        self._cleared = True
        self.refresh()

    def refresh(self) -> None:
        """Draw soon."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            wait = max(0.0, self._drawn + PAUSE - loop.time())
            self._timer = loop.call_later(wait, self.flush)

    def flush(self) -> None:
        """Draw now, unless the terminal is lent to an editor: then nothing is lost, only late."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._drawn = asyncio.get_running_loop().time()
        app = self.app
        if app is None or not app.is_running or app.is_lent:
            return
        final, self._live = self._frame()
        if not final and not self._cleared:
            app.invalidate()
            return
        clearing, self._cleared = _CLEAR if self._cleared else "", False
        app.begin_step()
        app.renderer.erase()
        app.output.write_raw(clearing + self._encoded(final))
        app.draw()

    def finish(self) -> None:
        """Write what became final after the application has ended."""
        if self.app is not None:
            self.app.output.write_raw(self._encoded(self._frame().final))
            self.app.output.flush()

    def _encoded(self, lines: Sequence[Line]) -> str:
        return encode(lines, self.depth).replace("\n", "\r\n")

    def _fragments(self) -> StyleAndTextTuples:
        """What is live, and a blank line between it and the input."""
        room = max(1, self.height - _BELOW)
        return fragments([*self._live[-room:], BLANK], self.depth)


def fragments(lines: Sequence[Line], depth: Depth) -> StyleAndTextTuples:
    """Lines as prompt_toolkit takes them."""
    out: StyleAndTextTuples = []
    for at, line in enumerate(lines):
        if at:
            out.append(("", "\n"))
        out += [(_style(style, depth), neutralise(text)) for text, style in line]
    return out


@lru_cache(1024)
def _style(style: Style, depth: Depth) -> str:
    if depth == "none":
        return ""
    words = [
        name
        for name in ("bold", "italic", "dim", "underline", "reverse", "strike")
        if getattr(style, name)
    ]
    if depth != "mono":
        words += [f"{kind}:{_colour(colour, depth)}" for kind, colour in _grounds(style)]
    return " ".join(words)


def _grounds(style: Style) -> list[tuple[str, Rgb | int]]:
    grounds = (("fg", style.fg), ("bg", style.bg))
    return [(kind, colour) for kind, colour in grounds if colour is not None]


def _colour(colour: Rgb | int, depth: Depth) -> str:
    if isinstance(colour, int) and colour < 16:
        return _ANSI[colour]
    rgb = colour if isinstance(colour, Rgb) else PALETTE[colour]
    if depth == "256":
        rgb = PALETTE[nearest_256(rgb)]
    return "#{:02x}{:02x}{:02x}".format(*rgb)
