"""Paragraphs and headings: marked text set into lines, given out as it can no longer change.

A line break of the source is a line break on the screen. Models rarely break lines without meaning
it, and what they mean (a verse, an address, `**Pro:** …`) is lost when lines are joined.
"""

from __future__ import annotations

from copy import copy

from mull.tui.screen.theme import Theme
from mull.tui.text.lines import Line, Span, Style
from mull.tui.text.markdown_inline import InlineParser, Piece
from mull.tui.text.markdown_marks import BOLD, CODE, ITALIC, LINK, STRIKE, URL
from mull.tui.text.wrap import Wrapper

__all__ = ["Looks", "Paragraph", "set_pieces"]


class Looks:
    """The styles of marked text that stands in text of a base style, each made once."""

    __slots__ = ("_known", "_theme")

    def __init__(self, theme: Theme, base: Style) -> None:
        self._theme = theme
        self._known: dict[int, Style] = {0: base}

    def span(self, piece: Piece) -> Span:
        """A piece in its style."""
        text, flags = piece
        if flags & CODE and self._theme.marks:
            text = f"`{text}`"
        style = self._known.get(flags)
        if style is None:
            style = self._known[flags] = self._make(flags)
        return Span(text, style)

    def _make(self, flags: int) -> Style:
        theme, style = self._theme, self._known[0]
        for flag, role in ((LINK, theme.link), (CODE, theme.code), (URL, theme.url)):
            if flags & flag:
                colour = style.fg if role.fg is None else role.fg
                line, dim = style.underline or role.underline, style.dim or role.dim
                style = style._replace(fg=colour, underline=line, dim=dim)
        return style._replace(
            bold=style.bold or bool(flags & BOLD),
            italic=style.italic or bool(flags & ITALIC),
            strike=style.strike or bool(flags & STRIKE),
        )


def set_pieces(pieces: list[Piece], looks: Looks, wrapper: Wrapper) -> None:
    """Put marked text, which may hold newlines, into lines."""
    for piece in pieces:
        text, style = looks.span(piece)
        if "\n" not in text:
            wrapper.add(text, style)
            continue
        first, *rest = text.split("\n")
        wrapper.add(first, style)
        for line in rest:
            wrapper.newline()
            wrapper.add(line, style)


class Paragraph:
    """Text in lines. A line that the next one may turn into something else is held back."""

    def __init__(self, theme: Theme, width: int, base: Style) -> None:
        self.held: str | None = None
        self.lines = 0
        self._in_long = False
        self._began = False
        self._looks = Looks(theme, base)
        self._inline = InlineParser()
        self._wrapper = Wrapper(width)

    def line(self, text: str) -> None:
        """A whole line; the first, and any with a bar in it, waits for the line after it."""
        self.release()
        if self.lines == 0 or "|" in text:
            self.held = text
        else:
            self._push(text)
        self.lines += 1

    def more(self, text: str) -> None:
        """A piece of a very long line."""
        if self._in_long:
            self._inline.feed(text)
            return
        self.release()
        self._in_long = True
        self._push(text)
        self.lines += 1

    def end_line(self) -> None:
        """The very long line is over."""
        self._in_long = False

    def release(self) -> None:
        """The line that was held back is text, for what follows did not change it."""
        if self.held is not None:
            held, self.held = self.held, None
            self._push(held)

    def take(self) -> list[Line]:
        """The lines that are done."""
        set_pieces(self._inline.take(), self._looks, self._wrapper)
        return self._wrapper.take()

    def finish(self, *, sketch: bool = False) -> list[Line]:
        """The rest of the lines."""
        self.release()
        set_pieces(self._inline.finish(guess=sketch), self._looks, self._wrapper)
        return self._wrapper.finish()

    def resize(self, width: int) -> None:
        """Another width for what is not given out yet."""
        self._wrapper.resize(width)

    def fork(self) -> Paragraph:
        """A copy that can go on without this one."""
        twin = copy(self)
        twin._inline, twin._wrapper = self._inline.fork(), self._wrapper.fork()
        return twin

    def _push(self, text: str) -> None:
        if self._began:
            self._inline.feed("\n")
        self._inline.feed(text)
        self._began = True
