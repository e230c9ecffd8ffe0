"""Where `mull ask` writes thinking: unchanged into a pipe, drawn on a terminal (REQ-THINK-007).

On a terminal thinking is wrapped between words, in italics, on a shade of the terminal's
background, or after a bar if the background is unknown. It is neutralised there.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, TextIO

from mull.neutral.events import ThinkingDelta

if TYPE_CHECKING:
    from mull.neutral.blocks import ThinkingKind
    from mull.tui.conversation.thought_flow import ThoughtFlow
    from mull.tui.screen.glance import Glance
    from mull.tui.text.safe import Drawn

__all__ = ["DrawnThoughts", "PlainThoughts", "thoughts_on"]


def thoughts_on(stream: TextIO, *, parted: bool = False) -> PlainThoughts | DrawnThoughts:
    """The writer for thinking on a stream; with `parted`, thinking is separated from an answer on
    the same stream.
    """
    return DrawnThoughts(stream) if stream.isatty() else PlainThoughts(stream, parted=parted)


class PlainThoughts:
    """The model's text to the byte, and a blank line after each thinking block."""

    def __init__(self, stream: TextIO, *, parted: bool = False) -> None:
        self._stream = stream
        self._mark = "---\n\n" if parted else ""
        self._tail = ""

    def add(self, event: ThinkingDelta) -> None:
        """Add a chunk; leading blank text is dropped."""
        if event.text.strip() or self._tail:
            self._stream.write(event.text)
            self._stream.flush()
            self._tail = (self._tail + event.text)[-2:]

    def end(self) -> None:
        """The thinking block has ended."""
        if self._tail:
            missing = 2 - (len(self._tail) - len(self._tail.rstrip("\n")))
            self._stream.write("\n" * missing + self._mark)
            self._stream.flush()
            self._tail = ""


class DrawnThoughts:
    """Thinking on a terminal; its appearance is determined with the first block."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._glance: Glance | None = None
        self._flow: ThoughtFlow | None = None
        self._since = 0.0
        self._key: int | str | None = None

    def add(self, event: ThinkingDelta) -> None:
        """Add a chunk; another block is another thought."""
        if self._flow is not None and event.key not in (None, self._key):
            self._close_flow()
        if self._flow is None:
            if not event.text.strip():
                return
            self._flow, self._key = self._begin(event.kind), event.key
        self._write(self._flow.feed(event.text, self._width))

    @property
    def glance(self) -> Glance | None:
        """The terminal's appearance, if a thinking block has had it determined."""
        return self._glance

    def end(self) -> None:
        """The thinking has ended, and with it any wait for the terminal's reply."""
        self._close_flow()
        if self._glance is not None:
            self._glance.close()

    def _begin(self, kind: ThinkingKind) -> ThoughtFlow:
        from mull.tui.conversation.thought_flow import ThoughtFlow
        from mull.tui.screen.glance import Glance

        if self._glance is None:
            self._glance = Glance(_descriptor(self._stream))
        self._since = time.monotonic()
        return ThoughtFlow(self._glance.theme, self._glance.depth, self._width, kind)

    def _close_flow(self) -> None:
        if self._flow is not None:
            from mull.tui.conversation.thought import thought_label

            label = thought_label(time.monotonic() - self._since, None, running=False)
            self._write(self._flow.close(label))
            self._stream.write("\n")
            self._flow = None

    def _write(self, text: Drawn) -> None:
        from mull.tui.text.safe import draw_on

        draw_on(self._stream, text)

    @property
    def _width(self) -> int:
        screen = _descriptor(self._stream)
        try:
            return (os.get_terminal_size(screen).columns if screen is not None else 0) or 80
        except OSError:
            return 80


def _descriptor(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError):
        return None
