"""Keeps the picture of a conversation: takes events as they come, is drawn when there is time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from mull.agent.results import Result
from mull.history.log import Log
from mull.neutral.events import Event, StateChanged
from mull.neutral.messages import Message
from mull.tui.conversation import ConversationView
from mull.tui.lines import BLANK, Line, Span
from mull.tui.theme import Theme
from mull.tui.thought import Mode
from mull.tui.width import fitted

__all__ = ["Frame", "Painter"]

MOST_LINES = 2000
"""Lines of old conversation that are drawn when it is opened or drawn anew."""
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_WORDS = {
    "sending": "Waiting for the model",
    "streaming": "Answering",
    "tools": "Running tools",
    "compressing": "Making the conversation shorter",
    "healing": "Asking again",
}


class Frame(NamedTuple):
    """What is to be drawn: lines that are final now, and those that may still change."""

    final: Sequence[Line]
    live: Sequence[Line]


class Painter:
    """The picture of one conversation."""

    def __init__(
        self,
        theme: Theme,
        width: int,
        mode: Mode,
        *,
        refresh: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._theme = theme
        self._width = width
        self._view = ConversationView(theme, width, mode)
        self._refresh = refresh
        self._clock = clock
        self._queue: Sequence[str] = ()
        self._state: StateChanged | None = None
        self._began = 0.0
        self._final: list[Line] = []

    def frame(self) -> Frame:
        """What has changed since the last time. Called when there is time to draw."""
        final = [*self._final, *self._view.commit()]
        self._final = []
        return Frame(final, self._live())

    def said(self, message: Message) -> None:
        """The user has spoken."""
        self._view.message(message)
        self._refresh()

    def begin(self) -> None:
        """The model has been asked."""
        self._began = self._clock()
        self._refresh()

    def event(self, event: Event) -> None:
        """Something has happened."""
        if isinstance(event, StateChanged):
            self._state = event
        self._view.event(event, self._clock())
        self._refresh()

    def tick(self) -> None:
        """Time has passed."""
        self._refresh()

    def end(self, result: Result) -> None:
        """The turn is over."""
        self._state = None
        self._view.end(result.status)
        for note in result.notes:
            if note.warning:
                self._view.say(note.text, "warning")
        self._refresh()

    def stopped(self) -> None:
        """The user has stopped the turn."""
        self._state = None
        self._view.end("interrupted")
        self._refresh()

    def failed(self, text: str) -> None:
        """The turn, or a command, could not be done."""
        self._state = None
        self._view.say(text, "error")
        self._refresh()

    def tell(self, text: str, *, warning: bool = False) -> None:
        """Something that mull itself has to say."""
        self._view.say(text, "warning" if warning else "note")
        self._refresh()

    def show(self, lines: Sequence[Line]) -> None:
        """Lines that a command has made."""
        self._view.show(lines)
        self._refresh()

    def queued(self, texts: Sequence[str]) -> None:
        """What waits to be said."""
        self._queue = texts
        self._refresh()

    def idle(self) -> None:
        """Nothing is going on."""
        self._state = None
        self._refresh()

    @property
    def mode(self) -> Mode:
        """How thoughts are shown."""
        return self._view.mode

    @property
    def state(self) -> StateChanged | None:
        """What the turn is doing; None between turns."""
        return self._state

    def restyle(
        self, *, mode: Mode | None = None, theme: Theme | None = None, width: int | None = None
    ) -> None:
        """Draw everything anew in another look; the caller has made room."""
        self._theme, self._width = theme or self._theme, width or self._width
        self._final = self._view.redraw(theme=theme, width=width, mode=mode, most=MOST_LINES)
        self._refresh()

    def open(self, log: Log, title: str = "") -> None:
        """Begin anew with what a log holds."""
        self._view = ConversationView(self._theme, self._width, self._view.mode)
        for _, entry in log.entries():
            self._view.message(entry.message, thought_seconds=entry.thought_seconds)
        if title:
            self._view.say(title)
        self._final = self._view.redraw(most=MOST_LINES)
        self._refresh()

    def _live(self) -> list[Line]:
        now = self._clock()
        lines = list(self._view.open_lines(now))
        if self._state is not None and not self._view.thinking(now):
            lines += [*([BLANK] if lines else []), self._working(now)]
        for text in self._queue:
            shown = fitted(f"  next: {' '.join(text.split())}", self._width)
            lines.append((Span(shown, self._theme.faint),))
        return lines

    def _working(self, now: float) -> Line:
        assert self._state is not None
        seconds = int(now - self._began)
        spinner = _SPINNER[int(now * 8) % len(_SPINNER)]
        word = _WORDS.get(self._state.state, self._state.state)
        round_ = f" · round {self._state.round}" if self._state.round > 1 else ""
        text = f"{word} {seconds} s{round_} · Esc stops"
        return (Span(f"{spinner} ", self._theme.accent), Span(text, self._theme.faint))
