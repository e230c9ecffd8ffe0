"""Keeps the picture of a conversation: takes events as they come, is drawn when there is time.

What mull itself has to say while an answer arrives waits below it, so that a paragraph or a thought
is not cut in two by it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from mull.agent.results import Result
from mull.history.log import Log
from mull.neutral.events import (
    Event,
    Hurried,
    StateChanged,
    TextDelta,
    ThinkingCarrier,
    ThinkingDelta,
    ToolCallDelta,
    UsageReported,
)
from mull.neutral.messages import Message, Status
from mull.tui.conversation.attached import folded
from mull.tui.conversation.status import SPINNER
from mull.tui.conversation.thought import Mode
from mull.tui.conversation.view import ConversationView
from mull.tui.conversation.waiting import Wait
from mull.tui.screen.theme import Theme
from mull.tui.text.lines import BLANK, Line, Span
from mull.tui.text.safe import neutralise
from mull.tui.text.width import fitted

__all__ = ["Frame", "Painter"]

MOST_LINES = 2000
"""Lines of old conversation that are drawn when it is opened or drawn anew."""
_WORDS = {
    "sending": "Waiting for the model",
    "streaming": "Working",
    "tools": "Running tools",
    "compressing": "Making the conversation shorter",
    "healing": "Asking again",
}


Remark: TypeAlias = Callable[[ConversationView], None]
"""Adds something to a picture."""
_PIECES = TextDelta | ThinkingDelta | ThinkingCarrier | ToolCallDelta


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
        self.asks = False
        """Whether a person is being asked: then nothing else goes on."""
        self._began = 0.0
        self._final: list[Line] = []
        self._arriving = False
        self._waiting: list[Remark] = []
        self._wait = Wait()

    def frame(self) -> Frame:
        """What has changed since the last time. Called when there is time to draw."""
        final = [*self._final, *self._view.commit()]
        self._final = []
        return Frame(final, self._live())

    def said(self, message: Message) -> None:
        """The user has spoken."""
        self._view.message(folded(message))
        self._refresh()

    def commanded(self, text: str) -> None:
        """The user has given a command."""
        shown = fitted(f"❯ {' '.join(neutralise(text).split())}", self._width)
        self.show([(Span(shown, self._theme.faint),)])

    def begin(self) -> None:
        """The model has been asked."""
        self._began = self._clock()
        self._refresh()

    def event(self, event: Event) -> None:
        """Something has happened."""
        if isinstance(event, Hurried):  # it may be said in the middle of a thought
            self.tell(event.text)
            return
        if isinstance(event, StateChanged):
            self._state = event
        self._wait.event(event, self._clock())
        self._view.event(event, self._clock())
        if isinstance(event, UsageReported):  # some count at every piece
            return
        self._arriving = isinstance(event, _PIECES)
        if not self._arriving:
            self._add_waiting()
        self._refresh()

    def tick(self, silence: float = 0.0) -> None:
        """Time has passed; the endpoint has been silent for so long."""
        self._wait.silence = silence
        self._refresh()

    def end(self, result: Result) -> None:
        """The turn is over."""
        self._over(result.status, broke=True)
        for note in result.notes:
            if note.warning:
                self._view.say(note.text, "warning")

    def stopped(self) -> None:
        """The user has stopped the turn."""
        self._over("interrupted")

    def failed(self, text: str) -> None:
        """The turn, or a command, could not be done."""
        self._say(lambda view: view.say(text, "error"))

    def tell(self, text: str, *, warning: bool = False) -> None:
        """Something that mull itself has to say."""
        self._say(lambda view: view.say(text, "warning" if warning else "note"))

    def show(self, lines: Sequence[Line]) -> None:
        """Lines that a command has made."""
        self._say(lambda view: view.show(lines))

    def queued(self, texts: Sequence[str]) -> None:
        """What waits to be said, and for what."""
        self._queue = texts
        self._refresh()

    def idle(self) -> None:
        """Nothing is going on."""
        self._state, self._arriving = None, False
        self._add_waiting()
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
        self,
        *,
        mode: Mode | None = None,
        theme: Theme | None = None,
        width: int | None = None,
        most: int = MOST_LINES,
    ) -> None:
        """Draw the last lines anew in another look; the caller has made room."""
        self._theme, self._width = theme or self._theme, width or self._width
        lines = self._view.redraw(theme=theme, width=width, mode=mode, most=most)
        self._final = lines[-most:]
        self._refresh()

    def show_thoughts(self, mode: Mode, *, past: bool) -> None:
        """Show thoughts in this way; the `past` ones too if the caller has made room for them."""
        if past:
            self.restyle(mode=mode)
        else:
            self._view.mode = mode

    def open(self, log: Log, title: str = "", *, mode: Mode | None = None) -> None:
        """Begin anew with what a log holds, below what is still to be drawn."""
        before = [*self._final, *self._view.commit()]
        self._view = ConversationView(self._theme, self._width, mode or self._view.mode)
        for _, entry in log.entries():
            self._view.entry(entry)
        if title:
            self._view.say(title)
        self._final = [*before, *self._view.redraw(most=MOST_LINES)]
        self._refresh()

    def forget(self) -> None:
        """What is still to be drawn is not wanted any more."""
        self._final = []
        self._view.commit()

    def _say(self, remark: Remark) -> None:
        self._waiting.append(remark)
        if not self._arriving:
            self._add_waiting()
        self._refresh()

    def _add_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for remark in waiting:
            remark(self._view)

    def _over(self, status: Status, *, broke: bool = False) -> None:
        self._state, self._arriving = None, False
        self._view.end(status, broke=broke)
        self._add_waiting()
        self._refresh()

    def _live(self) -> list[Line]:
        now = self._clock()
        lines = list(self._view.open_lines(now))
        seen = self.mode != "hidden" and self._view.thinking(now)
        if self._state is not None and (not seen or self._wait.is_silent):
            lines += [*([BLANK] if lines else []), self._working(now)]
        if self._waiting:
            lines += [*([BLANK] if lines else []), *self._remarks()]
        for text in self._queue:
            shown = fitted(f"  {' '.join(neutralise(text).split())}", self._width)
            lines.append((Span(shown, self._theme.faint),))
        return lines

    def _remarks(self) -> list[Line]:
        """What waits to be said, as it will look."""
        view = ConversationView(self._theme, self._width, self._view.mode)
        for remark in self._waiting:
            remark(view)
        return view.commit()

    def _working(self, now: float) -> Line:
        assert self._state is not None
        seconds = int(now - self._began)
        spinner = SPINNER[int(now * 8) % len(SPINNER)]
        word = "Waiting for you" if self.asks else _WORDS.get(self._state.state, self._state.state)
        round_ = f" · round {self._state.round}" if self._state.round > 1 else ""
        text = self._wait.text(f"{word} {seconds} s{round_}", now)
        return (Span(f"{spinner} ", self._theme.accent), Span(text, self._theme.faint))
