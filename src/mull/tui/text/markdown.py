"""Markdown drawn while it streams.

`feed` stores a chunk and does nothing else. `commit` returns the lines that can no longer change:
they go to the scrollback and are never drawn again. `open_lines` returns the rest as it looks now,
to be overwritten by the next redraw. `commit` and `close` together return all text that was fed,
however it was split, at the cost that `mull.markdown.reader` guarantees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mull.tui.text.safe import Inbox

if TYPE_CHECKING:
    from mull.tui.screen.theme import Theme
    from mull.tui.text.lines import Line

__all__ = ["LEAST_WIDTH", "MarkdownStream", "markdown_lines"]

LEAST_WIDTH = 10


class MarkdownStream:
    """One Markdown text as it arrives."""

    def __init__(self, theme: Theme, width: int) -> None:
        # read and drawn by many modules, none of which a prompt needs
        from mull.markdown.reader import Reader
        from mull.tui.text.markdown_blocks import Drawing

        self._inbox = Inbox()
        self._reader = Reader()
        self._drawing = Drawing(theme, max(width, LEAST_WIDTH))

    def feed(self, text: str) -> None:
        """Add a chunk."""
        self._inbox.add(text)

    def commit(self) -> list[Line]:
        """The lines that became final since the last call."""
        self._reader.feed(self._inbox.take())
        return self._drawing.draw(self._reader.take())

    def open_lines(self) -> list[Line]:
        """The lines after the committed ones, as they look now."""
        self._reader.feed(self._inbox.take())
        rest = self._reader.rest()
        return self._drawing.fork().draw(rest) if rest else []

    def close(self) -> list[Line]:
        """The text is complete: all remaining lines."""
        self._reader.feed(self._inbox.take(final=True))
        return self._drawing.draw(self._reader.close())

    def resize(self, width: int) -> None:
        """Another width for lines that are not committed yet."""
        self._drawing.resize(max(width, LEAST_WIDTH))


def markdown_lines(text: str, theme: Theme, width: int) -> list[Line]:
    """A complete Markdown text."""
    stream = MarkdownStream(theme, width)
    stream.feed(text)
    return stream.close()
