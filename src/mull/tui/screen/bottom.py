"""The bottom of the terminal: content that is still changing, and below it the application's own
lines.

Finished content goes into the terminal's scrollback, once, and is never touched again. Only the
region below is redrawn, at a limited rate however fast the model writes; reading never waits for
drawing.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Size
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent, merge_key_bindings
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import FormattedTextControl, Window
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import Renderer

from mull.tui.screen.colour import PALETTE, Rgb, nearest_256
from mull.tui.screen.depth import Depth
from mull.tui.screen.echo import Echo
from mull.tui.screen.insertion import insert_above
from mull.tui.screen.pace import QUERY, Pace
from mull.tui.text.lines import BLANK, Line, Style, line_width
from mull.tui.text.safe import neutralise
from mull.tui.text.sgr import encode, encode_line
from mull.tui.text.width import has_sure_width

if TYPE_CHECKING:
    from prompt_toolkit.key_binding.key_bindings import NotImplementedOrNone

    from mull.tui.screen.painter import Frame

__all__ = ["PAUSE", "InlineApplication", "InlineOutput", "InlineScreen", "fragments"]

PAUSE = 0.05
"""Seconds between two redraws."""
_SETTLED = 0.12
"""Seconds for which the window size must be stable before everything is redrawn for it."""
_REPLY = 1.0
"""Seconds after which to check again whether a reply of the terminal is still awaited."""
_LAST_ANSWER = 1.0
"""Seconds to wait at the end for outstanding replies of the terminal."""
_LEAST_BELOW = 6
"""Rows reserved for what is below the live lines."""
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""Synchronized output: terminals that support it show what lies between in one step; others ignore
it.
"""
_AS_AT_FIRST = "\x1b[0m\x0f\x1b(B\x1b[r\x1b[?6l\x1b[?7h"
"""No colours, the usual characters, and scrolling and positions in the whole window."""
_ANSI = (
    "ansiblack ansired ansigreen ansiyellow ansiblue ansimagenta ansicyan ansigray "
    "ansibrightblack ansibrightred ansibrightgreen ansibrightyellow ansibrightblue "
    "ansibrightmagenta ansibrightcyan ansiwhite"
).split()


class InlineOutput(Vt100_Output):
    """A terminal that is never cleared as a whole: some push cleared content into the scrollback,
    where it would appear twice.
    """

    _size = 0

    def write(self, data: str) -> None:
        """Write text and count its size."""
        self._size += len(data)
        super().write(data)

    def write_raw(self, data: str) -> None:
        """Write sequences and count their size."""
        self._size += len(data)
        super().write_raw(data)

    def take_size(self) -> int:
        """About how many bytes were written since the last call."""
        size, self._size = self._size, 0
        return size

    @property
    def responds_to_cpr(self) -> bool:
        """True once the renderer exists: it never asks by itself, but waits at the end for
        outstanding replies.
        """
        return self.enable_cpr

    def erase_down(self) -> None:
        """Erase the row of the cursor, then those below it."""
        self.write_raw("\x1b7\x1b[K\x1b[1B\x1b[J\x1b8")


class InlineApplication(Application[None]):
    """An application that draws at the bottom and lets the conversation redraw itself at another
    width. Nothing is drawn while the window is being resized.
    """

    output: InlineOutput
    _lent = False

    def __init__(self, echo: Echo, resized: Callable[[], None], **more: Any) -> None:
        self.on_lent: Callable[[], None] = lambda: None
        self.on_returned: Callable[[], None] = lambda: None
        super().__init__(**more)
        self.pace = Pace()
        self.on_answer: Callable[[], None] = lambda: None
        self._echo = echo
        self._resized = resized
        self._size = self.output.get_size()
        self._settling: asyncio.TimerHandle | None = None
        self.before_render += lambda _: self.begin_step()
        self.after_render += lambda _: self._end_step()
        answers = KeyBindings()
        answers.add(Keys.CPRResponse, eager=True, save_before=lambda _: False)(self._answered)
        self.key_bindings = merge_key_bindings([more["key_bindings"], answers])
        self._answer = asyncio.Event()
        # a reply that arrives after the program has ended would be typed into the shell
        self.renderer.wait_for_cpr_responses = self._wait_for_answer  # type: ignore[method-assign, assignment]

    async def _wait_for_answer(self, _: float = 0) -> None:
        self._answer.clear()
        if self.pace.is_asked:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_ANSWER):
                    await self._answer.wait()

    def _answered(self, _: KeyPressEvent) -> NotImplementedOrNone:
        self._answer.set()
        self.pace.answered()
        self.on_answer()
        return NotImplemented  # an answer is no reason to draw, and to ask once more

    @property
    def is_lent(self) -> bool:
        """Whether an editor, the shell or the viewer is using the terminal."""
        return self._lent

    @property
    def _running_in_terminal(self) -> bool:
        return self._lent

    @_running_in_terminal.setter
    def _running_in_terminal(self, lent: bool) -> None:
        """Tracks when prompt_toolkit lends the terminal, because it has no event for that."""
        self._lent = lent
        if lent:
            self.on_lent()
        else:
            self.on_returned()

    @property
    def is_settling(self) -> bool:
        """Whether the window may still be changing its size."""
        return self._settling is not None

    @property
    def size_before(self) -> Size:
        """The size that the region was last drawn for."""
        return self._size

    def begin_step(self) -> None:
        """Hold back output until the region is drawn."""
        self.output.write_raw(_BEGIN)

    def draw(self) -> None:
        """Draw the region now."""
        super()._redraw()

    def check_size(self) -> None:
        """Check whether the window size has changed."""
        if self._settling is None and self.output.get_size().columns != self._size.columns:
            self._on_resize()

    def _redraw(self, render_as_done: bool = False) -> None:
        if not self.is_lent and not render_as_done:
            self.check_size()
        if self.is_settling and not render_as_done:
            return
        if render_as_done or not self._echo.echo(self, self.draw):
            super()._redraw(render_as_done)

    def _end_step(self) -> None:
        self.output.write_raw(_END)
        self.output.flush()
        if not self.is_done and self.pace.sent(self.output.take_size()):
            self.output.write_raw(QUERY)
            self.output.flush()
        self._echo.drawn()

    def _on_resize(self) -> None:
        if self.is_lent:  # what is over the screen draws itself; the size is checked afterwards
            return
        if self._settling is not None:
            self._settling.cancel()
        elif self.output.get_size().columns == self._size.columns:
            self._size = self.output.get_size()
            self.begin_step()
            super()._on_resize()
            return
        # the terminal has moved the lines: once the size is stable, the region is redrawn
        self._settling = asyncio.get_running_loop().call_later(_SETTLED, self._settle)

    def _settle(self) -> None:
        self._settling = None
        if self.is_running and not self.is_lent:
            self._resized()
            self._size = self.output.get_size()


class InlineScreen:
    """Draws above and into the region of a running application.

    It knows which lines above the region are certainly still on the screen: those can be replaced.
    What has gone into the scrollback is never replaced. `below` is how many rows the application
    needs for its own lines.
    """

    def __init__(
        self,
        depth: Depth,
        frame: Callable[[], Frame],
        *,
        reflows: bool,
        below: Callable[[], int] = lambda: 0,
    ) -> None:
        self.depth: Depth = depth
        self._app: InlineApplication | None = None
        self._frame = frame
        self._reflows = reflows
        self._below = below
        self._drawn_below = 0
        self._live: Sequence[Line] = ()
        self._drawn_lines: list[Line] = []  # the region's, when it was last drawn
        self._above: deque[Line] = deque()
        self._pending: deque[Line] = deque()
        self._gone = 0
        self._timer: asyncio.TimerHandle | None = None
        self._drawn = 0.0
        self._late = False
        self.is_covered = False
        """Whether the terminal is lent to something that leaves the screen as it was."""
        self.region = Window(
            FormattedTextControl(self._fragments),
            dont_extend_height=True,
            wrap_lines=False,
            always_hide_cursor=True,
        )

    @property
    def app(self) -> InlineApplication | None:
        """The application at the bottom."""
        return self._app

    @app.setter
    def app(self, app: InlineApplication) -> None:
        self._app = app
        app.on_answer = self._go_on
        app.on_lent = self._lend
        app.after_render += lambda _: self._forget_scrolled()

    @property
    def width(self) -> int:
        """Columns of a line."""
        return self.app.output.get_size().columns if self.app else 80

    @property
    def height(self) -> int:
        """The rows of the terminal."""
        return self.app.output.get_size().rows if self.app else 24

    def repaint(self, change: Callable[[int], int]) -> None:
        """Redraw the screen: `change` gets the number of last lines that can be replaced, and
        returns how many will be.
        """
        gone = change(len(self._above) + len(self._pending) - self._gone)
        for _ in range(min(gone, len(self._pending))):
            self._pending.pop()
            gone -= 1
        self._gone += gone
        self.refresh()

    def _lend(self) -> None:
        if not self.is_covered:  # the current owner of the terminal may write anything
            self.forget()

    def forget(self) -> None:
        """What is above the region now belongs to somebody else."""
        self._above.clear()
        self._gone = 0

    def clear(self) -> None:
        """Start at the top of an empty screen: its content goes into the scrollback."""
        self.flush(force=True)
        app = self.app
        if app is not None and app.is_running and not app.is_lent:
            app.begin_step()
            app.renderer.erase()
            app.output.write_raw("\r\n" * (self.height - 1) + "\x1b[H")
            self.forget()
            app.draw()

    def restore(self) -> None:
        """Write everything on the screen once more, from its top: another program may have written
        there, and left the cursor anywhere. Lines of others go into the scrollback.
        """
        self.flush(force=True)
        app = self.app
        if app is not None and app.is_running and not app.is_lent:
            region = app.renderer.last_rendered_screen
            others = self.height - self._height_above() - (region.height if region else 0)
            app.begin_step()
            app.renderer.reset()
            app.output.write_raw(f"{_AS_AT_FIRST}\x1b[{self.height}H" + "\n" * others + "\x1b[H")
            app.output.erase_down()
            app.output.write_raw(self._encoded(self._above))
            app.draw()

    def resized(self, change: Callable[[int], int]) -> None:
        """The window width has changed: erase the region where the terminal has moved it, and
        redraw the screen for that width.
        """
        app = self.app
        if app is None:
            return
        size, before = app.output.get_size(), app.size_before
        rows = [self._rows(width, size.columns) for width in _row_widths(app.renderer)]
        x, y = app.renderer._cursor_pos
        within = x // size.columns if self._reflows else 0
        self._trim(sum(rows), min(size.rows, before.rows))
        gone = change(len(self._above))  # what is pending stays as it is
        up = sum(rows[:y]) + within + self._take_off(gone)
        app.begin_step()
        app.output.write_raw("\r")
        app.output.cursor_up(up)
        app.output.erase_down()
        app.renderer.reset()
        self.flush(force=True)

    def refresh(self) -> None:
        """Draw soon."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            wait = max(0.0, self._drawn + PAUSE - loop.time())
            self._timer = loop.call_later(wait, self.flush)

    def flush(self, *, force: bool = False) -> None:
        """Draw now, unless the terminal is lent or being resized: then the output is only
        delayed. What is too much for one redraw follows soon, whether or not anything else happens.
        """
        self._stop_timer()
        self._drawn = asyncio.get_running_loop().time()
        app = self.app
        if app is None or not app.is_running or app.is_lent:
            return
        if not force:
            app.check_size()
        if app.is_settling:
            self.refresh()
            return
        if app.pace.is_waiting and not force:  # the reply resumes drawing, but may be lost
            self._late = True
            self._timer = asyncio.get_running_loop().call_later(_REPLY, self.flush)
            return
        new, self._live = self._frame()
        self._pending += new
        final = self._next_lines(None if force else app.pace.most)
        shrinks = self._below() < self._drawn_below
        moves = shrinks or len(self._shown()) != len(self._drawn_lines)
        if not (final or force or moves or self._gone):
            app.invalidate()
            return
        if self._pending:
            self.refresh()
        app.begin_step()
        if not shrinks and self._insert(app.renderer, final):
            self._above += final
            app.draw()
            return
        app.renderer.erase()
        up, self._gone = self._take_off(self._gone), 0
        if up:
            app.output.cursor_up(up)
            app.output.erase_down()
        app.output.write_raw(self._encoded(final))
        self._above += final
        app.draw()

    def _insert(self, renderer: Renderer, final: Sequence[Line]) -> bool:
        """Write lines above the region, and move only what it shows, if that is possible."""
        width, before, after = self.width, self._drawn_lines, self._shown()
        if self._gone or any(line_width(line) > width for line in final):
            return False
        if not all(
            has_sure_width(span.text) for line in (*final, *before, *after) for span in line
        ):
            return False  # a line may take another row than is known
        same = 0 if final else _common(before, after)
        kept = min(len(before), len(after)) - same  # the last of them are what changes least
        lines = [encode_line(line, self.depth) for line in final]
        return insert_above(renderer, lines, len(before) - kept, len(after) - kept)

    def finish(self) -> None:
        """Write what became final after the application has ended."""
        if self.app is not None:
            self._pending += self._frame().final
            self.app.output.write_raw(self._encoded(self._next_lines(None)))
            self.app.output.flush()

    def _go_on(self) -> None:
        """The previous output has arrived: send what was waiting."""
        if self._late or self._pending:
            self._late = False
            self._stop_timer()
            self.refresh()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _next_lines(self, most: int | None) -> list[Line]:
        """Finished lines to write now: all, or about `most` bytes of them, but at least one."""
        out: list[Line] = []
        room = math.inf if most is None else most
        while self._pending:
            room -= 2 + sum(len(text) + 8 for text, _ in self._pending[0])
            if out and room < 0:
                break
            out.append(self._pending.popleft())
        return out

    def _take_off(self, lines: int) -> int:
        """Forget the last lines; returns how many rows of the screen they take."""
        width = self.width
        return sum(self._rows(line_width(self._above.pop()), width) for _ in range(lines))

    def _rows(self, cells: int, width: int) -> int:
        """The rows that a line takes in a window that was narrowed after it was written."""
        return max(1, -(-cells // width)) if self._reflows else 1

    def _forget_scrolled(self) -> None:
        """Lines that may be in the scrollback can no longer be replaced."""
        screen = self.app.renderer.last_rendered_screen if self.app else None
        if screen is not None and len(self._above) + screen.height > self.height:
            self._trim(screen.height, self.height)

    def _height_above(self) -> int:
        width = self.width
        return sum(self._rows(line_width(line), width) for line in self._above)

    def _trim(self, region: int, height: int) -> None:
        width, taken = self.width, region + self._height_above()
        while self._above and taken > height:
            taken -= self._rows(line_width(self._above.popleft()), width)

    def _encoded(self, lines: Iterable[Line]) -> str:
        return encode(lines, self.depth).replace("\n", "\r\n")

    def _shown(self) -> list[Line]:
        """The live lines, and a blank line between them and the input."""
        room = max(1, self.height - max(_LEAST_BELOW, self._below()))
        return [*self._live[-room:], BLANK]

    def _fragments(self) -> StyleAndTextTuples:
        self._drawn_lines, self._drawn_below = self._shown(), self._below()
        return fragments(self._drawn_lines, self.depth)


def _common(before: Sequence[Line], after: Sequence[Line]) -> int:
    """How many lines both begin with."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((at for at, (old, new) in pairs if old != new), min(len(before), len(after)))


def _row_widths(renderer: Renderer) -> list[int]:
    """The cells that each row of the region takes, as it was written."""
    screen, has_style = renderer.last_rendered_screen, renderer._style_string_has_style
    if screen is None or has_style is None:
        return []
    widths = []
    for y in range(screen.height):
        row = screen.data_buffer[y]
        used = [x + c.width for x, c in row.items() if c.char != " " or has_style[c.style]]
        widths.append(max(used, default=0))
    return widths


def fragments(lines: Sequence[Line], depth: Depth) -> StyleAndTextTuples:
    """Lines in the format of prompt_toolkit."""
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
