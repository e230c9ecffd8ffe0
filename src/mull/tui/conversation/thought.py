"""Thinking on the screen: while it arrives, when it is complete, and when it is read again later.

`full` shows the text on a shaded background, with its duration below, because lines in the
scrollback cannot be changed. `preview` shows the last lines while the model thinks and then folds
to one line. `hidden` shows nothing. Thinking drawn from storage looks as it did when it arrived.
Its text is Markdown, like an answer. Blank thinking is not drawn; thinking without readable text is
explained.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from msgspec.structs import replace

from mull.neutral.blocks import ThinkingBlock, ThinkingKind
from mull.neutral.patterns import pattern
from mull.transcripts.words import duration
from mull.tui.screen.theme import Theme
from mull.tui.text.lines import Line, Span, Style, padded
from mull.tui.text.markdown import MarkdownStream
from mull.tui.text.safe import Inbox
from mull.tui.text.width import cell_width, fitted
from mull.tui.text.wrap import wrapped

__all__ = [
    "MODES",
    "SHOWN",
    "Mode",
    "ThoughtView",
    "boxed",
    "render_thought",
    "room_in",
    "spoken",
    "thinking_theme",
    "thought_label",
    "thought_title",
    "unreadable",
]

Mode: TypeAlias = Literal["full", "preview", "hidden"]
MODES: tuple[Mode, ...] = ("full", "preview", "hidden")
SHOWN = "reasoning.includeInResponse"
"""The setting that shows or hides thinking; full or preview is up to the terminal."""

_PREVIEW_ROWS = 3
_TITLE = pattern(r"^\*\*(.+?)\*\*[ ]*$", re.MULTILINE)
_SENTENCE = pattern(r"(?<=[.!?])\s+|(?<=[。！？])")
_MARKS = pattern(r"^[#>\s*-]+|\*\*|`")
_UNREADABLE = {
    "redacted": "the provider sent it encrypted",
    "encrypted": "the provider sent it encrypted",
    "signature": "the provider sent only its signature",
    "wire": "the provider sent only data of its own",
}


def thought_label(
    seconds: float | None, tokens: int | None, *, exact: bool = True, running: bool = False
) -> str:
    """`Thinking… 12 s · ~340 tokens` or `Thought for 12 s · 1,240 tokens`; unknown parts are left
    out.
    """
    told = "Thinking…" if running else "Thought" if seconds is None else "Thought for"
    if seconds is not None:
        told += f" {duration(float(int(seconds)) if running else max(seconds, 0.1))}"
    if not tokens:
        return told
    return f"{told} · {'' if exact else '~'}{tokens:,} {'token' if tokens == 1 else 'tokens'}"


def spoken(label: str) -> str:
    """A label for screen readers: without symbols that would be read aloud."""
    return label.replace(" · ", ", ").replace("~", "about ").replace("…", ",")


class ThoughtView:
    """One thinking block as it arrives."""

    def __init__(self, theme: Theme, width: int, mode: Mode, kind: ThinkingKind = "raw") -> None:
        self._theme = theme
        self._width = width
        self._mode = mode
        self._kind = kind
        self._inbox = Inbox()
        self._pieces: list[str] = []
        self._bytes = 0
        self._recent: list[Line] = []
        self._text = MarkdownStream(thinking_theme(theme), self._room)

    def feed(self, text: str) -> None:
        """Add a chunk."""
        self._inbox.add(text)

    def commit(self) -> list[Line]:
        """The lines that became final since the last call; none unless all text is shown."""
        self._read(self._inbox.take())
        rows = self._text.commit()
        self._recent = [*self._recent, *rows][-_PREVIEW_ROWS:]
        return self._boxed(rows) if self._mode == "full" else []

    def open_lines(self, seconds: float | None = None) -> list[Line]:
        """The rest as it looks now, and how long the model has been thinking."""
        self._read(self._inbox.take())
        if self._mode == "hidden":
            return []
        label = self.label(seconds)
        if self._mode == "full":
            return [*self._boxed(self._text.open_lines()), self._labelled(label)]
        rows = [*self._recent, *self._text.open_lines()][-_PREVIEW_ROWS:]
        return [self._labelled(label), *self._boxed(rows)]

    def label(self, seconds: float | None) -> str:
        """The label while it is arriving, also for a status line."""
        return thought_label(seconds, self._estimate(), exact=False, running=True)

    def close(self, seconds: float | None = None, tokens: int | None = None) -> list[Line]:
        """The thinking is complete: its remaining lines. `tokens` is the provider's count."""
        self._read(self._inbox.take(final=True))
        whole = "".join(self._pieces)
        if self._mode == "hidden" or not whole.strip():
            return []
        told = thought_label(seconds, tokens or self._estimate(), exact=bool(tokens))
        if self._mode == "full":
            return [*self._boxed(self._text.close()), self._labelled(told)]
        return [self._labelled(told, _gist(whole))]

    def resize(self, width: int) -> None:
        """Another width for lines that are not committed yet."""
        self._width = width
        self._text.resize(self._room)

    def _read(self, text: str) -> None:
        if not text:
            return
        self._pieces.append(text)
        self._bytes += len(text) if text.isascii() else len(text.encode())
        if self._mode != "hidden":
            self._text.feed(text)

    def _estimate(self) -> int | None:
        return _estimate(self._kind, self._bytes)

    @property
    def _room(self) -> int:
        return room_in(self._theme, self._width)

    def _boxed(self, lines: list[Line]) -> list[Line]:
        return [boxed(line, self._theme.thinking, self._theme, self._width) for line in lines]

    def _labelled(self, label: str, gist: str = "") -> Line:
        """The label, followed by the gist if there is room for it."""
        style = self._theme.thinking_label
        label, between = (spoken(label), ": ") if self._theme.words else (label, " · ")
        spans = [Span(fitted(label, self._room), style)]
        room = self._room - cell_width(label) - 3
        if gist and room >= 12:
            spans += [Span(between, style), Span(fitted(gist, room), self._theme.thinking)]
        return boxed(tuple(spans), style, self._theme, self._width)


@lru_cache(8)
def thinking_theme(theme: Theme) -> Theme:
    """The theme for Markdown inside thinking: every role on the shaded background, in italics."""
    on = theme.thinking
    styles: dict[str, Any] = {
        role: style._replace(fg=style.fg or on.fg, bg=on.bg, italic=True, dim=style.dim or on.dim)
        for role in theme.__struct_fields__
        if isinstance(style := getattr(theme, role), Style)
    }
    styles |= {"text": on, "heading": on._replace(bold=True), "code_block": on, "quote": on}
    return replace(theme, **styles)


def room_in(theme: Theme, width: int) -> int:
    """The columns of a line that the text of a thinking block may take."""
    return max(width - 2 * cell_width(theme.bar), 8)


def boxed(line: Line, style: Style, theme: Theme, width: int) -> Line:
    """A line of thinking after its bar, with the background up to the edge."""
    bar = theme.bar if line or style.bg is not None else theme.bar.rstrip()
    whole = (Span(bar, theme.thinking_label), *line)
    return padded(whole, width, style) if style.bg is not None else whole


def render_thought(
    block: ThinkingBlock,
    seconds: float | None,
    tokens: int | None,
    mode: Mode,
    theme: Theme,
    width: int,
) -> list[Line]:
    """Stored thinking, as it looked when it arrived."""
    if mode == "hidden" or block.is_hidden:
        return []
    if not block.thought.strip():
        why = unreadable(block)
        return wrapped(why, theme.note, width) if why else []
    view = ThoughtView(theme, width, mode, block.kind)
    view.feed(block.thought)
    return [*view.commit(), *view.close(seconds, tokens)]


def unreadable(block: ThinkingBlock) -> str:
    """Why thinking has no text; empty if there is nothing to explain."""
    for carrier, why in _UNREADABLE.items():
        if getattr(block, carrier):
            return f"Thinking without readable text: {why}."
    return ""


def thought_title(kind: ThinkingKind, text: str, seconds: float | None, tokens: int | None) -> str:
    """A thinking block in one line: duration, size, and subject."""
    count = tokens or _estimate(kind, len(text.encode()))
    return f"{thought_label(seconds, count, exact=bool(tokens))} · {_gist(text)}"


def _estimate(kind: ThinkingKind, size: int) -> int | None:
    """A quarter of the text's bytes; the length of a summary says nothing about the length of the
    thinking.
    """
    return None if kind == "summary" else -(-size // 4)


def _gist(text: str) -> str:
    """Thinking in a few words: its titles if it has any, otherwise its last sentence."""
    if titles := _TITLE.findall(text):
        return " · ".join(titles)
    last = text.rstrip()[-1000:].rpartition("\n")[2]
    *before, sentence = [part for part in _SENTENCE.split(_MARKS.sub("", last)) if part] or [""]
    if before and len(sentence) < 12:
        sentence = f"{before[-1]} {sentence}"
    return " ".join(sentence.split())
