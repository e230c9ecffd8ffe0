"""Thinking on a terminal that is only written to at its end: word by word, on its background.

The lines are those of `thought`, in full. A line is never drawn twice here, so a word is written
once no later word can move it, and the background is extended to the edge when its line is
complete.
"""

from __future__ import annotations

from mull.neutral.blocks import ThinkingKind
from mull.tui.conversation.thought import boxed, room_in
from mull.tui.conversation.thought_text import ThoughtText
from mull.tui.screen.depth import Depth
from mull.tui.screen.theme import Theme
from mull.tui.text.lines import Line, Span
from mull.tui.text.safe import Drawn, Inbox
from mull.tui.text.sgr import encode_line
from mull.tui.text.width import fitted

__all__ = ["ThoughtFlow"]


class ThoughtFlow:
    """Chunks of one thinking block in, terminal output out."""

    def __init__(self, theme: Theme, depth: Depth, width: int, kind: ThinkingKind = "raw") -> None:
        self._theme = theme
        self._depth: Depth = depth
        self._width = width
        self._inbox = Inbox()
        self._text = ThoughtText(theme, room_in(theme, width), marked=kind == "summary")
        self._written = 0  # characters of the open line

    def feed(self, text: str, width: int) -> Drawn:
        """Add a chunk, on a terminal of this width."""
        turned = self._turn_over(width) if width != self._width else ""
        self._inbox.add(text)
        self._text.add(self._inbox.take())
        done, row = self._text.take(), self._text.row
        bar = Span(self._theme.bar, self._theme.thinking_label)
        return Drawn(turned + self._lines(done) + (self._rest((bar, *row)) if row else ""))

    def close(self, label: str = "") -> Drawn:
        """The rest, up to the end of its line, and a line that labels it."""
        self._text.add(self._inbox.take(final=True))
        told = fitted(label, room_in(self._theme, self._width))
        last = [(Span(told, self._theme.thinking_label),)] if told else []
        return self._lines([*self._text.finish(), *last])

    def _turn_over(self, width: int) -> str:
        self._width = width
        self._text.turn_over(room_in(self._theme, width))
        is_open, self._written = self._written > 0, 0
        return "\n" if is_open else ""

    def _lines(self, lines: list[Line]) -> Drawn:
        out = ""
        for line in lines:
            out += self._rest(boxed(line, self._theme.thinking, self._theme, self._width)) + "\n"
            self._written = 0
        return Drawn(out)

    def _rest(self, line: Line) -> Drawn:
        """The line without the part that is already written."""
        rest: list[Span] = []
        skip = self._written
        for text, style in line:
            rest.append(Span(text[skip:], style))
            self._written += len(text[skip:])
            skip = max(skip - len(text), 0)
        return encode_line(tuple(span for span in rest if span.text), self._depth)
