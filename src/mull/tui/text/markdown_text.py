"""Paragraphs and headings: marked text laid out in lines, given out when it can no longer change.

A line break of the source is a line break on the screen. Models rarely break lines without meaning
it, and the meaning (a verse, an address, `**Pro:** …`) is lost when lines are joined.
"""

from __future__ import annotations

from collections.abc import Iterable

from mull.markdown.events import (
    BOLD,
    CODE,
    ITALIC,
    LINK,
    STRIKE,
    URL,
    Content,
    Piece,
    Pieces,
)
from mull.tui.screen.theme import Theme
from mull.tui.text.lines import Span, Style
from mull.tui.text.wrap import Wrapper

__all__ = ["Looks", "TextLines"]


class Looks:
    """The styles of marked text within a base style, each created once."""

    __slots__ = ("_known", "_theme")

    def __init__(self, theme: Theme) -> None:
        self._theme = theme
        self._known: dict[tuple[Style, int], Style] = {}

    def span(self, piece: Piece, base: Style) -> Span:
        """Text in its style."""
        text, flags, _ = piece
        if not flags:
            return Span(text, base)
        if flags & CODE and self._theme.marks:
            text = f"`{text}`"
        style = self._known.get((base, flags))
        if style is None:
            style = self._known[base, flags] = self._make(base, flags)
        return Span(text, style)

    def _make(self, style: Style, flags: int) -> Style:
        theme = self._theme
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

    def put(
        self, pieces: Iterable[Piece], base: Style, wrapper: Wrapper, *, indents: bool = False
    ) -> None:
        """Lay out marked text, with or without the indentation of its own lines."""
        for piece in pieces:
            text, style = self.span(piece, base)
            if text[:1] != "\n":
                wrapper.add(text, style)
                continue
            wrapper.newline()
            if indents:
                wrapper.add(text[1:], style)


class TextLines(Wrapper):
    """A paragraph or heading in lines."""

    def __init__(self, looks: Looks, width: int, base: Style) -> None:
        super().__init__(width)
        self._looks = looks
        self._base = base

    def put(self, content: Content) -> None:
        """Add text."""
        assert isinstance(content, Pieces)
        self._looks.put(content.pieces, self._base, self)
