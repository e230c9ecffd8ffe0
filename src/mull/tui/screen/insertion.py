"""Writes finished lines above the region at the bottom without drawing the region again.

The rows of the region move as they are, by the terminal's own commands for inserting and deleting
lines, and the renderer's model of the screen moves with them. A redraw then sends only what has
changed: on a slow connection a key waits for a few finished lines, not for the status line and the
prompt as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prompt_toolkit.data_structures import Point
from prompt_toolkit.layout.screen import Screen

if TYPE_CHECKING:
    from prompt_toolkit.renderer import Renderer

__all__ = ["insert_above"]


def insert_above(renderer: Renderer, lines: Sequence[str], before: int, after: int) -> bool:
    """Write lines of at most one row each above the region.

    The first `before` rows of the region are live lines, which the next redraw replaces by `after`
    rows; what is below them moves to where it will be then. Returns False, and writes nothing, if
    rows of the region would scroll off the screen, or if it is not known what the screen shows.
    """
    output, screen, size = renderer.output, renderer.last_rendered_screen, renderer._last_size
    if screen is None or size != output.get_size():
        return False
    before = min(before, screen.height)
    taller = len(lines) + after - before
    if screen.height + max(taller, 0) > size.rows:
        return False
    output.write_raw("\r")
    row = renderer._cursor_pos.y
    if taller > 0:  # rows that leave the screen at its top go into the scrollback
        output.cursor_down(screen.height - 1 - row)
        output.write_raw("\n" * taller)
        output.cursor_up(screen.height - 1 + taller - before)
        output.write_raw(f"\x1b[{taller}L")
        row = before
    elif taller < 0:
        output.cursor_up(row - before - taller)
        output.cursor_down(before + taller - row)
        output.write_raw(f"\x1b[{-taller}M")
        row = before + taller
    output.cursor_up(row)
    for at, line in enumerate(lines):
        if at < before:
            output.erase_end_of_line()
        output.write_raw(f"{line}\r\n")
    renderer._cursor_pos = Point(0, 0)
    renderer._last_screen = _moved(screen, len(lines), before, after)
    return True


def _moved(screen: Screen, lines: int, before: int, after: int) -> Screen:
    """What the region looks like below the inserted lines."""
    moved = Screen(initial_width=screen.width, initial_height=screen.height - before + after)
    for y, row in screen.data_buffer.items():
        if y >= before:
            moved.data_buffer[y - before + after] = row
        elif lines <= y < lines + after:
            moved.data_buffer[y - lines] = row
    return moved
