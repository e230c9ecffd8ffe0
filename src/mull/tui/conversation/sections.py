"""The parts of a conversation on the screen.

A part draws itself as it arrives (`commit`, `open_lines`, `close`) and any number of times
afterwards (`draw`), at any width and in any mode. The same code draws both, so the lines are the
same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from mull.neutral.blocks import ThinkingBlock
from mull.neutral.events import Key
from mull.tui.conversation.thought import (
    Mode,
    ThoughtView,
    boxed,
    render_thought,
    room_in,
    thinking_theme,
    thought_title,
)
from mull.tui.screen.theme import Theme
from mull.tui.text.lines import Line
from mull.tui.text.markdown import MarkdownStream, markdown_lines

__all__ = ["Answer", "Fixed", "Look", "Section", "Thought"]


class Look(NamedTuple):
    """How everything is drawn."""

    theme: Theme
    width: int
    mode: Mode


class Answer:
    """Text of the model, which is Markdown."""

    family = "answer"

    def __init__(self, look: Look, key: Key = None) -> None:
        self.key = key
        self._pieces: list[str] = []
        self._stream = MarkdownStream(look.theme, look.width)

    @property
    def text(self) -> str:
        """All text so far."""
        return "".join(self._pieces)

    def feed(self, text: str) -> None:
        """Add a chunk."""
        self._pieces.append(text)
        self._stream.feed(text)

    def commit(self) -> list[Line]:
        """The lines that became final since the last call."""
        return self._stream.commit()

    def open_lines(self, now: float | None) -> list[Line]:
        """The rest as it looks now."""
        return self._stream.open_lines()

    def close(self, now: float | None) -> list[Line]:
        """The part is complete: its remaining lines."""
        self._pieces = [self.text]
        return self._stream.close()

    def draw(self, look: Look) -> list[Line]:
        """All its lines, when it is complete."""
        return markdown_lines(self.text, look.theme, look.width)

    def restart(self, look: Look) -> None:
        """Draw it from the start, and continue from there."""
        self._stream = MarkdownStream(look.theme, look.width)
        self._stream.feed(self.text)

    def go_on(self, look: Look) -> None:
        """Continue at another width; lines already written stay as they are."""
        self._stream.resize(look.width)


class Thought:
    """A thinking block: without its text while it arrives, and how long it took."""

    family = "thought"

    def __init__(
        self, look: Look, block: ThinkingBlock, key: Key = None, began: float | None = None
    ) -> None:
        self.key = key
        self.block = block
        self.seconds: float | None = None
        self.tokens: int | None = None
        self._began = began
        self._look = look
        self._pieces: list[str] = []
        self._view = ThoughtView(look.theme, look.width, look.mode, block.kind)

    def feed(self, text: str) -> None:
        """Add a chunk."""
        self._pieces.append(text)
        self._view.feed(text)

    def carry(self, **carriers: Any) -> None:
        """Add unreadable data that came with it."""
        self.block = replace(self.block, **carriers)

    def label(self, now: float | None) -> str:
        """The label while it is arriving."""
        return self._view.label(self._elapsed(now))

    def commit(self) -> list[Line]:
        """The lines that became final since the last call."""
        return self._view.commit()

    def open_lines(self, now: float | None) -> list[Line]:
        """The rest as it looks now."""
        return self._view.open_lines(self._elapsed(now))

    def close(self, now: float | None) -> list[Line]:
        """The part is complete: its remaining lines."""
        self.seconds = self._elapsed(now)
        self.block = replace(self.block, thought=self.block.thought + "".join(self._pieces))
        self._pieces = []
        if not self.block.thought.strip():
            return self.draw(self._look)
        return self._view.close(self.seconds, self.tokens)

    def draw(self, look: Look) -> list[Line]:
        """All its lines, when it is complete."""
        theme, width, mode = look
        return render_thought(self.block, self.seconds, self.tokens, mode, theme, width)

    def restart(self, look: Look) -> None:
        """Draw it from the start, and continue from there."""
        self._look = look
        self._view = ThoughtView(look.theme, look.width, look.mode, self.block.kind)
        self._view.feed("".join(self._pieces))

    def read(self, look: Look) -> list[Line]:
        """Its text so far, for the viewer."""
        lines = markdown_lines(
            self.text, thinking_theme(look.theme), room_in(look.theme, look.width)
        )
        return [boxed(line, look.theme.thinking, look.theme, look.width) for line in lines]

    def go_on(self, look: Look) -> None:
        """Continue at another width; lines already written stay as they are."""
        self._look = self._look._replace(width=look.width)
        self._view.resize(look.width)

    @property
    def text(self) -> str:
        """All text so far."""
        return self.block.thought + "".join(self._pieces)

    @property
    def title(self) -> str:
        """Its title in the viewer: duration, size, and subject."""
        return thought_title(self.block.kind, self.text, self.seconds, self.tokens)

    def _elapsed(self, now: float | None) -> float | None:
        return None if now is None or self._began is None else now - self._began


class Fixed(NamedTuple):
    """Lines that arrive complete. Two of one family stand together, without a blank line.

    `text` is the text of a user message.
    """

    family: str
    draw: Callable[[Look], list[Line]]
    text: str = ""


Section: TypeAlias = Answer | Thought | Fixed
