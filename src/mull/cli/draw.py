"""How an answer is shown as it comes: plain text, one JSON object, or a line per event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TextIO

import msgspec

from mull.agent.debug import CODE as DEBUG
from mull.agent.results import Result
from mull.cli.thoughts import thoughts_on
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

__all__ = ["JsonLines", "JsonObject", "Plain", "Show", "result_json"]

_LONGEST_OUTPUT, _LONGEST_FAILURE = 80, 400
_TOLD: tuple[Status, ...] = ("no_answer", "truncated", "truncated_in_reasoning")
"""Ends that no event has told of."""
_encode = msgspec.json.Encoder().encode


class Show(Protocol):
    """What is told about an answer while it comes."""

    def begin(self, target: Target) -> None: ...
    def event(self, event: Event) -> None: ...
    def end(self, result: Result) -> None: ...
    def failed(self, error: MullError) -> None: ...
    def interrupted(self, left: str) -> None: ...


class Plain:
    """The answer on one stream; notes and trouble on the other, thoughts where they were asked.

    In a pipe the words of the model are its own to the byte; a terminal obeys nothing in them.
    Where tools may be called, a pipe gets nothing but the last message, when that is known.
    """

    def __init__(self, out: TextIO, err: TextIO, *, thinking: str, has_tools: bool = False) -> None:
        self._out = out
        self._err = err
        self._hidden = thinking == "hide"
        self._thoughts = thoughts_on(out if thinking == "show" and out.isatty() else err)
        self._last = ""
        self._held = "" if has_tools and not out.isatty() else None
        self._answer: Inbox | None = None

    def begin(self, target: Target) -> None:
        for note in target.notes:
            self._say(note)

    def event(self, event: Event) -> None:
        match event:
            case ThinkingDelta() if not self._hidden:
                self._thoughts.add(event)
            case TextDelta() if event.text:
                self._take(event.text)
            case Retrying():
                self._say(f"{event.reason}: asking again in {event.seconds:.0f} s")
            case Healed():
                self._say(f"the endpoint refused ({event.reason}): {event.change}")
            case StateChanged(state="tools"):  # somebody may be asked now, in plain letters
                self._pass_on()
                self._end_line()
            case ToolStarted():
                self._say(event.title)
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

    def end(self, result: Result) -> None:
        self._write_held()
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

    def failed(self, error: MullError) -> None:
        self._write_held()
        self._end_line()
        self._say(str(error))

    def interrupted(self, left: str) -> None:
        self._write_held()
        self._end_line()
        self._say(f"interrupted; {left}" if left else "interrupted")

    def _take(self, text: str) -> None:
        self._thoughts.end()
        if self._held is None:
            self._write_answer(text)
        else:
            self._held += text

    def _pass_on(self) -> None:
        """What was said before a tool call is no answer: people see it, the pipe does not."""
        if self._held and self._held.strip():
            self._say(self._held.strip())
        self._held = None if self._held is None else ""

    def _write_held(self) -> None:
        if self._held:
            self._write_answer(self._held)
            self._held = ""

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
        self._write_answer(final=True)  # half of a line's end may have waited for the other
        if self._last and not self._last.endswith("\n"):
            self._out.write("\n")
            self._out.flush()
            self._last = "\n"

    def _say(self, text: str) -> None:
        self._thoughts.end()
        if self._out.isatty() and self._err.isatty():  # in a pipe no line end is added to an answer
            self._end_line()
        self._out.flush()
        _tell(text, self._err)


def _tell(text: str, err: TextIO) -> None:
    """A line in mull's own name, which a terminal obeys nothing in."""
    from mull.tui.text.safe import neutralise  # most answers come without one

    print(f"mull: {neutralise(text)}", file=err, flush=True)


class JsonObject:
    """One object when all is over. What DEBUG=1 asks to be told is for people, and told at once."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out = out
        self._err = err

    def begin(self, target: Target) -> None:
        pass

    def event(self, event: Event) -> None:
        if isinstance(event, Warned) and event.code == DEBUG:
            _tell(event.text, self._err)

    def end(self, result: Result) -> None:
        self._out.write(msgspec.json.format(result_json(result), indent=2).decode() + "\n")

    def failed(self, error: MullError) -> None:
        self._out.write(_encode({"status": "error", "error": str(error)}).decode() + "\n")

    def interrupted(self, left: str) -> None:
        self._out.write('{"status":"interrupted"}\n')


class JsonLines:
    """A line for each event, and a last one of type `result`."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def begin(self, target: Target) -> None:
        pass

    def event(self, event: Event) -> None:
        self._line(_encode(event))

    def end(self, result: Result) -> None:
        self._line(b'{"type":"result",' + result_json(result)[1:])

    def failed(self, error: MullError) -> None:
        self._line(_encode({"type": "error", "text": str(error)}))

    def interrupted(self, left: str) -> None:
        self._line(b'{"type":"error","text":"interrupted"}')

    def _line(self, data: bytes) -> None:
        self._out.write(data.decode() + "\n")
        self._out.flush()


def result_json(result: Result) -> bytes:
    """A result as JSON: text, thinking, status, usage, notes, message."""
    return _encode(
        {
            "text": result.text,
            "thinking": result.thinking,
            "status": result.status,
            "usage": result.usage,
            "notes": result.notes,
            "message": result.message,
        }
    )


def _outcome(event: ToolRan) -> str:
    """The line of a result that tells most; a failure's is for people too, and says what to do."""
    from mull.agent.tools.shown import telling_line

    line = telling_line(event.output, at_end=event.name == "run")
    longest = _LONGEST_FAILURE if event.is_error else _LONGEST_OUTPUT
    short = line if len(line) <= longest else f"{line[: longest - 1]}…"
    return f"failed: {short}" if event.is_error else short
