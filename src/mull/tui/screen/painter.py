"""Maintains the picture of a conversation: takes events as they arrive, and is drawn when there is
time.

Messages from mull that arrive during an answer wait below it, so that they do not split a paragraph
or a thinking block.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from mull.agent.results import Result
from mull.history.log import Entry, Log
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
from mull.tui.conversation.sections import Thought
from mull.tui.conversation.status import SPINNER
from mull.tui.conversation.thought import Mode, spoken
from mull.tui.conversation.tool_lines import ToolUse
from mull.tui.conversation.view import ConversationView
from mull.tui.conversation.waiting import Wait
from mull.tui.screen.theme import Theme
from mull.tui.text.lines import BLANK, Line, Span
from mull.tui.text.safe import neutralise
from mull.tui.text.width import fitted

if TYPE_CHECKING:
    from mull.tui.screen.viewer import Document

__all__ = ["Frame", "Painter"]

MOST_LINES = 2000
"""Lines of an existing conversation that are drawn when it is opened or redrawn."""
_WORDS = {
    "sending": "Waiting for the model",
    "streaming": "Working",
    "tools": "Running tools",
    "compressing": "Compressing the conversation",
    "healing": "Asking again",
}


Remark: TypeAlias = Callable[[ConversationView], None]
"""Adds something to a picture."""
_PIECES = TextDelta | ThinkingDelta | ThinkingCarrier | ToolCallDelta


class Frame(NamedTuple):
    """What to draw: lines that are now final, and lines that may still change."""

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
        """Whether the user is being asked: then nothing else happens."""
        self._began = 0.0
        self._final: list[Line] = []
        self._arriving = False
        self._waiting: list[Remark] = []
        self._wait = Wait()

    def frame(self) -> Frame:
        """What has changed since the last call. Called when there is time to draw."""
        final = [*self._final, *self._view.commit()]
        self._final = []
        return Frame(final, self._live())

    def said(self, message: Message) -> None:
        """The user has sent a message."""
        self._view.message(folded(message))
        self._refresh()

    def commanded(self, text: str) -> None:
        """The user has entered a command."""
        prompt = "> " if self._theme.words else "❯ "
        shown = fitted(f"{prompt}{' '.join(neutralise(text).split())}", self._width)
        self.show([(Span(shown, self._theme.faint),)])

    def begin(self) -> None:
        """A request was sent to the model."""
        self._began = self._clock()
        self._refresh()

    def event(self, event: Event) -> None:
        """An event has arrived."""
        if isinstance(event, Hurried):  # it may arrive in the middle of thinking
            self.tell(event.text)
            return
        if isinstance(event, StateChanged):
            self._state = event
        self._wait.event(event, self._clock())
        self._view.event(event, self._clock())
        if isinstance(event, UsageReported):  # some report counts with every chunk
            return
        self._arriving = isinstance(event, _PIECES)
        if not self._arriving:
            self._add_waiting()
        self._refresh()

    def tick(self, silence: float = 0.0) -> None:
        """Time has passed; the endpoint has been silent for this long."""
        self._wait.silence = silence
        self._refresh()

    def end(self, result: Result) -> None:
        """The turn has ended."""
        self._over(result.status, broke=True)
        for note in result.notes:
            if note.warning:
                self._view.say(note.text, "warning")

    def stopped(self, *, came: bool = True) -> None:
        """The user has interrupted the turn, before or after something `came`."""
        self._over("interrupted", came=came)

    def failed(self, text: str) -> None:
        """The turn, or a command, has failed."""
        self._say(lambda view: view.say(text, "error"))

    def tell(self, text: str, *, warning: bool = False) -> None:
        """A message from mull."""
        self._say(lambda view: view.say(text, "warning" if warning else "note"))

    def tells_all(self, call_id: str, text: str) -> bool:
        """Whether a call is right above and already says all of this text."""
        return self._view.tells_all(call_id, text)

    def is_only(self, call_id: str) -> bool:
        """Whether no other call is open."""
        return self._view.is_only(call_id)

    def show_diff(self, call_id: str, diff: str, lines: Sequence[Line]) -> None:
        """What a call would change, before the user is asked for approval."""
        self._say(lambda view: view.show_diff(call_id, diff, lines))

    def show(self, lines: Sequence[Line]) -> None:
        """Lines of a command."""
        self._say(lambda view: view.show(lines))

    def queued(self, texts: Sequence[str]) -> None:
        """The queued messages, and what they wait for."""
        self._queue = texts
        self._refresh()

    def idle(self) -> None:
        """Nothing is running."""
        self._state, self._arriving = None, False
        self._add_waiting()
        self._refresh()

    def progress(self) -> str:
        """The current activity in words, for displays without live content: empty between turns,
        and while the user is asked.
        """
        if self._state is None or self.asks:
            return ""
        now = self._clock()
        label = self.mode != "hidden" and self._view.thinking(now)
        working = f"{_WORDS.get(self._state.state, self._state.state)}, {int(now - self._began)} s"
        return spoken(label) if label else working

    @property
    def mode(self) -> Mode:
        """How thinking is shown."""
        return self._view.mode

    @property
    def state(self) -> StateChanged | None:
        """What the turn is doing; None between turns."""
        return StateChanged("asking") if self._state and self.asks else self._state

    def restyle(
        self,
        replaceable: int = 0,
        *,
        mode: Mode | None = None,
        theme: Theme | None = None,
        width: int | None = None,
    ) -> int:
        """Redraw in another look what is completely within the last `replaceable` lines of the
        screen, and everything that follows; returns how many of those lines to remove.
        """
        self._theme, self._width = theme or self._theme, width or self._width
        undrawn = self._undrawn()
        gone, lines = self._view.redraw(
            theme=theme, width=width, mode=mode, replaceable=replaceable + len(undrawn)
        )
        return self._replace(undrawn, gone, lines)

    def follow(self, log: Log, replaceable: int = 0) -> int:
        """Make the screen follow a changed log: undone turns are removed from the last
        `replaceable` lines, as far as they are completely there, and restored turns are drawn.
        Returns how many lines to remove.
        """
        undrawn = self._undrawn()
        entries = [entry for _, entry in log.entries()]
        said = [at for at, entry in enumerate(entries) if _is_said(entry)]
        texts = {at: folded(entries[at].message).text for at in said}
        gone = self._view.take_back(texts[said[-1]] if said else "", replaceable + len(undrawn))
        shown = self._view.last_said
        known = max((at for at, text in texts.items() if text == shown), default=None)
        if known is not None or shown is None:
            new = [at for at in said if known is None or at > known]
            for entry in entries[new[0] :] if new else ():
                self._view.entry(entry)
        return self._replace(undrawn, gone, self._view.commit())

    def _undrawn(self) -> list[Line]:
        """Final lines that are not on the screen yet."""
        undrawn, self._final = [*self._final, *self._view.commit()], []
        return undrawn

    def _replace(self, undrawn: list[Line], gone: int, lines: Sequence[Line]) -> int:
        """Replace the last `gone` lines; returns how many of those are on the screen."""
        kept = max(len(undrawn) - gone, 0)
        self._final = [*undrawn[:kept], *lines]
        self._refresh()
        return max(gone - len(undrawn), 0)

    @property
    def thoughts(self) -> list[Document]:
        """The thinking of the conversation, for the viewer."""
        return [_thought_document(one) for one in self._view.thoughts]

    @property
    def tool_uses(self) -> list[Document]:
        """The tool calls and their results, for the viewer."""
        return [_tool_document(one) for one in self._view.tools]

    def open(self, log: Log, title: str = "", *, mode: Mode | None = None) -> None:
        """Start again with the content of a log, below what is still to be drawn."""
        before = [*self._final, *self._view.commit()]
        self._view = ConversationView(self._theme, self._width, mode or self._view.mode)
        for _, entry in log.entries():
            self._view.entry(entry)
        if title:
            self._view.say(title)
        self._final = [*before, *self._view.commit_last(MOST_LINES)]
        self._refresh()

    def _say(self, remark: Remark) -> None:
        self._waiting.append(remark)
        if not self._arriving:
            self._add_waiting()
        self._refresh()

    def _add_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for remark in waiting:
            remark(self._view)

    def _over(self, status: Status, *, broke: bool = False, came: bool = True) -> None:
        self._state, self._arriving = None, False
        self._view.end(status, broke=broke, came=came)
        self._add_waiting()
        self._refresh()

    def _live(self) -> list[Line]:
        now = self._clock()
        lines = list(self._view.open_lines(now))
        seen = self.mode != "hidden" and self._view.thinking(now)
        if self._state is not None and not self.asks and (not seen or self._wait.is_silent):
            lines += [*([BLANK] if lines else []), self._working(now)]
        if self._waiting:
            lines += [*([BLANK] if lines else []), *self._remarks()]
        for text in self._queue:
            shown = fitted(f"  {' '.join(neutralise(text).split())}", self._width)
            lines.append((Span(shown, self._theme.faint),))
        return lines

    def _remarks(self) -> list[Line]:
        """Pending remarks, as they will look."""
        view = ConversationView(self._theme, self._width, self._view.mode)
        for remark in self._waiting:
            remark(view)
        return view.commit()

    def _working(self, now: float) -> Line:
        assert self._state is not None
        seconds = int(now - self._began)
        spinner = SPINNER[int(now * 8) % len(SPINNER)]
        word = _WORDS.get(self._state.state, self._state.state)
        text = self._wait.text(f"{word} {seconds} s{_round(self._state)}", now)
        return (Span(f"{spinner} ", self._theme.accent), Span(text, self._theme.faint))


def _is_said(entry: Entry) -> bool:
    """Whether an entry is a user message that starts a turn."""
    message = entry.message
    return message.role == "user" and not message.carries_results and not entry.own


def _round(state: StateChanged) -> str:
    """The number of the request within its turn, once there is more than one."""
    if state.round < 2:
        return ""
    most = f" of at most {state.rounds:,}" if state.rounds else ""
    return f" · tool round {state.round:,}{most}"


def _thought_document(thought: Thought) -> Document:
    from mull.tui.screen.viewer import Document

    return Document(thought.title, thought.read, len(thought.text), thought.text)


def _tool_document(tool: ToolUse) -> Document:
    from mull.tui.screen.viewer import Document

    size = len(tool.output) + len(tool.live) + len(tool.diff)
    return Document(tool.label, tool.body, size, f"{tool.diff}\n{tool.output or tool.live}")
