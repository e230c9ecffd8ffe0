"""Themes and ways to look at lines that several tests of the terminal share."""

from __future__ import annotations

from collections.abc import Iterable

from mull.tui.screen.colour import Rgb
from mull.tui.screen.theme import Theme, theme_for
from mull.tui.text.lines import Line, Style
from mull.tui.text.markdown import MarkdownStream

DARK = theme_for("auto", Rgb(30, 30, 46), "truecolor")
BARE = Theme("bare")


def cells(lines: Iterable[Line]) -> list[list[tuple[str, Style]]]:
    """Each character of each line with its style: what is seen, however it is cut into spans."""
    return [[(c, span.style) for span in line for c in span.text] for line in lines]


def streamed(text: str, cuts: list[int], width: int, theme: Theme = DARK) -> list[Line]:
    """All lines of a text that is fed in the pieces between the cuts, committed after each."""
    stream = MarkdownStream(theme, width)
    lines: list[Line] = []
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        stream.feed(text[start:end])
        lines += stream.commit()
        stream.open_lines()
    return [*lines, *stream.close()]
