"""Shows a letter as it is typed, without redrawing anything else.

A full redraw takes milliseconds, most of them spent on what has not changed. A letter at the end of
the line changes one cell: it is written immediately, and the redraw follows a little later, with
whatever else is new. The renderer's model of the screen is kept correct.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from prompt_toolkit.data_structures import Point
from prompt_toolkit.layout.screen import Char

from mull.tui.text.width import cell_width

if TYPE_CHECKING:
    from prompt_toolkit.application import Application
    from prompt_toolkit.buffer import Buffer

__all__ = ["Echo"]

_LATER = 0.03
"""Seconds after a letter before everything is redrawn."""


class Echo:
    """Letters at the end of a buffer; `is_plain` says that they change nothing but their cell."""

    def __init__(self, buffer: Buffer, is_plain: Callable[[], bool]) -> None:
        self._buffer = buffer
        self._is_plain = is_plain
        self._shown: str | None = None
        self._soon: asyncio.TimerHandle | None = None

    def drawn(self) -> None:
        """Everything was drawn: following letters can be echoed from here."""
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        self._shown = self._buffer.text if self._can_follow() else None

    def echo(self, app: Application[Any], draw: Callable[[], None]) -> bool:
        """Write the letters typed since, if nothing else needs drawing now. `draw` is called
        later.
        """
        screen, text = app.renderer.last_rendered_screen, self._buffer.text
        if self._shown is None or screen is None or not self._can_follow():
            return False
        added = text[len(self._shown) :]
        x, y = app.renderer._cursor_pos
        if not added or not text.startswith(self._shown) or not added.isprintable():
            return False
        if x + cell_width(added) >= app.output.get_size().columns - 1:
            return False
        app.output.write(added)
        app.output.flush()
        row, style = screen.data_buffer[y], screen.data_buffer[y][x - 1].style
        style = style if self._shown else row[x].style
        for letter in added:
            row[x] = char = Char(letter, style)
            x += char.width
        app.renderer._cursor_pos = Point(x, y)
        self._shown = text
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(_LATER, self._draw, draw)
        return True

    def _draw(self, draw: Callable[[], None]) -> None:
        self._soon = self._shown = None
        draw()

    def _can_follow(self) -> bool:
        buffer = self._buffer
        return (
            buffer.cursor_position == len(buffer.text)
            and buffer.complete_state is None
            and buffer.selection_state is None
            and self._is_plain()
        )
