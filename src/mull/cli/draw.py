"""How an answer is shown as it comes to people: its text, and beside it what happens meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TextIO

from mull.agent.results import Result
from mull.cli.thoughts import thoughts_on
from mull.neutral.blocks import Value
from mull.neutral.errors import MullError
from mull.neutral.events import (
    Compressed,
    Event,
    Failed,
    Healed,
    Hurried,
    Nudged,
    Retrying,
    StateChanged,
    TextDelta,
    ThinkingDelta,
    ToolRan,
    ToolStarted,
    Warned,
)
from mull.neutral.messages import Status
from mull.neutral.target import Target

if TYPE_CHECKING:
    from mull.tui.text.safe import Inbox

__all__ = ["Kept", "Plain", "Show", "tell"]

_LONGEST_OUTPUT, _LONGEST_FAILURE = 80, 400
_TOLD: tuple[Status, ...] = ("no_answer", "truncated", "truncated_in_reasoning")
"""Ends that no event has told of."""


class Kept(Value, frozen=True):
    """What there is of an answer so far, and the session that keeps it, where one does."""

    result: Result | None = None
    session: str | None = None


class Show(Protocol):
    """What is told about an answer while it comes."""

    def begin(self, target: Target) -> None: ...
    def event(self, event: Event) -> None: ...
    def end(self, kept: Kept) -> None: ...
    def failed(self, error: MullError, kept: Kept) -> None: ...
    def interrupted(self, left: str, kept: Kept) -> None: ...


class Plain:
    """The answer on one stream; notes and trouble on the other, thoughts where they were asked.

    In a pipe the words of the model are its own to the byte, but for blank lines at their
    beginning; a terminal obeys nothing in them. Where tools are offered, a pipe gets the last
    message only: what the model says between its calls is for whoever watches.
    """

    def __init__(self, out: TextIO, err: TextIO, *, thinking: str, has_tools: bool = False) -> None:
        self._out = out
        self._err = err
        self._hidden = thinking == "hide"
        shown = thinking == "show"
        self._thoughts = thoughts_on(out if shown and out.isatty() else err, parted=shown)
        self._last = ""
        self._began = False
        self._answer: Inbox | None = None
        self._held: list[str] | None = [] if has_tools and not out.isatty() else None

    def begin(self, target: Target) -> None:
        for note in target.notes:
            self._say(note)

    def event(self, event: Event) -> None:
        match event:
            case ThinkingDelta() if not self._hidden:
                self._thoughts.add(event)
            case TextDelta() if event.text:
                self._thoughts.end()
                self._take_text(event.text)
            case Retrying():
                self._say(f"{event.reason}: asking again in {event.seconds:.0f} s")
            case Healed():
                self._say(f"the endpoint refused ({event.reason}): {event.change}")
            case StateChanged(state="tools"):  # somebody may be asked now, in plain letters
                self._end_message()
            case ToolStarted():
                self._say(event.title or event.name)
            case ToolRan():
                self._say(f"{event.name} → {_outcome(event)}")
            case Compressed():
                self._say(event.text)
            case Nudged():
                self._say("the model gave no answer and called nothing: asked once more")
            case Hurried():
                self._end_line()
                self._say(event.text)
            case Warned():
                self._say(event.text)
            case Failed():
                self._end_line()
                self._say(event.text)

    def end(self, kept: Kept) -> None:
        result = kept.result
        assert result is not None
        self._end_line()
        for note in result.notes:
            if note.warning and note.about != "healed":  # told when it happened
                self._say(note.text)
        if result.status in _TOLD:
            from mull.tui.conversation.words import ENDINGS

            said = ENDINGS[result.status]
            self._say(f"{said[:1].lower()}{said[1:]}".removesuffix("."))
        elif calls := result.message.tool_calls:
            self._say(f"the model called {calls[0].name}, and no tool is offered: nothing was run")

    def failed(self, error: MullError, kept: Kept) -> None:
        self._end_line()
        self._say(str(error))

    def interrupted(self, left: str, kept: Kept) -> None:
        self._end_line()
        self._say(f"interrupted; {left}" if left else "interrupted")

    def _take_text(self, text: str) -> None:
        """A piece of a message; one begins with something to read."""
        if not self._began:
            text = text.lstrip("\r\n")
            self._began = bool(text)
        if self._held is None:
            self._write_answer(text)
        else:
            self._held.append(text)

    def _end_message(self) -> None:
        """Calls follow: what was held of this message was not the answer."""
        if self._held:
            said = "".join(self._held).strip()
            self._held.clear()
            if said:
                self._say(said)
        self._began = False
        self._end_line()

    def _write_answer(self, text: str = "", *, final: bool = False) -> None:
        if self._out.isatty():
            if self._answer is None:
                from mull.tui.text.safe import Inbox

                self._answer = Inbox()
            self._answer.add(text)
            text = self._answer.take(final=final)
        if text:
            self._out.write(text)
            self._out.flush()
            self._last = text

    def _end_line(self) -> None:
        """Whatever was being written is over: what is said next has a line of its own."""
        self._thoughts.end()
        held, self._held = self._held, self._held and []
        self._write_answer(
            "".join(held or ()), final=True
        )  # half of a line's end may have waited for the other
        if self._last and not self._last.endswith("\n"):
            self._out.write("\n")
            self._out.flush()
            self._last = "\n"

    def _say(self, text: str) -> None:
        self._thoughts.end()
        if self._out.isatty() and self._err.isatty():  # in a pipe no line end is added to an answer
            self._end_line()
        self._out.flush()
        tell(text, self._err)


def tell(text: str, err: TextIO) -> None:
    """A line in mull's own name, which a terminal obeys nothing in."""
    from mull.tui.text.safe import neutralise  # most answers come without one

    print(f"mull: {neutralise(text)}", file=err, flush=True)


def _outcome(event: ToolRan) -> str:
    """The line of a result that tells most; a failure's is for people too, and says what to do."""
    from mull.agent.tools.shown import telling_line

    line = telling_line(event.output, at_end=event.name == "run")
    longest = _LONGEST_FAILURE if event.is_error else _LONGEST_OUTPUT
    short = line if len(line) <= longest else f"{line[: longest - 1]}…"
    return f"failed: {short}" if event.is_error else short
