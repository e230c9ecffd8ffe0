"""Shows an answer to people as it arrives: its text, and what happens meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TextIO

from mull.agent.results import Result
from mull.cli.thoughts import thoughts_on
from mull.neutral.blocks import OpaqueBlock, ThinkingBlock, Value
from mull.neutral.errors import MullError
from mull.neutral.events import (
    Compressed,
    Corrected,
    Event,
    Failed,
    Healed,
    Hurried,
    Nudged,
    Reclassified,
    Retrying,
    StateChanged,
    TextDelta,
    ThinkingDelta,
    ToolRan,
    ToolStarted,
    Warned,
)
from mull.neutral.messages import Message, Status
from mull.neutral.target import Target

if TYPE_CHECKING:
    from mull.tui.text.safe import Inbox

__all__ = ["BROKEN", "Kept", "Plain", "Show", "has_only_unknown", "tell", "written_value"]

_LONGEST_OUTPUT, _LONGEST_FAILURE = 80, 400
_LONGEST_WORD = 400
"""Maximum characters of a remark before a tool call; longer text counts as the answer."""
BROKEN: tuple[Status, ...] = ("interrupted", "error")
"""Endings of an incomplete answer."""
_TOLD: tuple[Status, ...] = ("no_answer", "truncated", "truncated_in_reasoning")
"""Endings that no event has reported."""


class Kept(Value, frozen=True):
    """An answer so far, its cost, and its session, if it is stored.

    `value` is the answer to a question with a schema. `cost` is in dollars, None if it is unknown;
    `request_id` is the provider's id of the last request.
    """

    result: Result | None = None
    session: str | None = None
    model: str | None = None
    value: Any = None
    cost: float | None = None
    seconds: float = 0.0
    request_id: str | None = None


if TYPE_CHECKING:

    class Show(Protocol):
        """How an answer is shown while it arrives."""

        def begin(self, target: Target) -> None: ...
        def event(self, event: Event) -> None: ...
        def tick(self) -> None: ...
        def end(self, kept: Kept) -> None: ...
        def failed(self, error: MullError, kept: Kept) -> None: ...
        def interrupted(self, left: str, kept: Kept) -> None: ...


class Plain:
    """The answer on one stream; notes and errors on the other, thinking where requested.

    In a pipe the model's text is unchanged to the byte, except for leading blank lines; on a
    terminal it is neutralised. If tools are offered, remarks between calls are for a watching user:
    a pipe gets a message once it can no longer be a remark before a call, which is one short
    paragraph. An answer that `is_value` is written when it is known to match, as JSON.
    """

    def __init__(
        self,
        out: TextIO,
        err: TextIO,
        *,
        thinking: str,
        has_tools: bool = False,
        is_value: bool = False,
    ) -> None:
        self._out = out
        self._err = err
        self._is_value = is_value
        self._hidden = thinking == "hide"
        shown = thinking == "show"
        self._thoughts = thoughts_on(out if shown and out.isatty() else err, parted=shown)
        self._last = ""
        self._began = False
        self._inbox = _inbox() if out.isatty() else None
        self._holds = has_tools and not out.isatty()
        self._held: str | None = "" if self._holds else None

    def begin(self, target: Target) -> None:
        for note in target.notes:
            self._say(note)

    def event(self, event: Event) -> None:
        match event:
            case ThinkingDelta() if not self._hidden:
                self._thoughts.add(event)
            case TextDelta() if event.text:
                self._take_text(event.text)
            case Reclassified():
                self._take_back()
            case Retrying():
                self._say(event.words)
            case Healed():
                self._say(f"the endpoint rejected the request ({event.reason}): {event.change}")
            case StateChanged(state="tools"):  # the user may be asked now, in plain lines
                self._end_message()
            case ToolStarted():
                self._say(event.title or event.name)
            case ToolRan():
                self._say(f"{event.name} → {_outcome(event)}")
            case Compressed() | Warned():
                self._say(event.text)
            case Nudged():
                self._say("the model has not finished its turn: asking again")
            case Corrected():
                self._say(f"{event.text}; asking again")
            case Hurried() | Failed():
                self._end_line()
                self._say(event.text)

    def tick(self) -> None:
        """Nothing moves in a pipe."""

    def end(self, kept: Kept) -> None:
        result = kept.result
        assert result is not None
        self._end_line()
        if self._is_value and result.status not in BROKEN:
            self._out.write(f"{written_value(kept.value, indented=self._out.isatty())}\n")
            self._out.flush()
        for note in result.notes:
            if note.warning and note.about != "healed":  # reported when it happened
                self._say(note.text)
        if result.status in _TOLD:
            from mull.tui.conversation.words import ENDINGS

            said = ENDINGS[result.status]
            self._say(f"{said[:1].lower()}{said[1:]}".removesuffix("."))
        elif (calls := result.message.tool_calls) and not self._is_value:
            self._say(
                f"the model called {calls[0].name}, but no tools are offered: nothing was run"
            )
        elif has_only_unknown(result.message) and not self._is_value:
            self._say("the answer holds nothing that mull knows how to show")

    def failed(self, error: MullError, kept: Kept) -> None:
        self._end_line()
        self._say(str(error))

    def interrupted(self, left: str, kept: Kept) -> None:
        self._end_line()
        self._say(f"interrupted; {left}" if left else "interrupted")

    def _take_text(self, text: str) -> None:
        """A chunk of a message; leading blank text is dropped."""
        self._thoughts.end()
        if self._is_value:
            return
        if not self._began:
            text = text.lstrip("\r\n")
            self._began = bool(text)
        if self._held is not None:
            self._held += text
            if len(self._held) < _LONGEST_WORD and "\n\n" not in self._held.rstrip():
                return
            text, self._held = self._held, None
        self._write_answer(text)

    def _take_back(self) -> None:
        """The text so far was thinking; what was written stays."""
        if self._held:
            self._held = ""
        elif self._began and not self._is_value:
            self._say("what was written first was thinking: the endpoint marked it too late")

    def _end_message(self) -> None:
        """Calls follow: the held text was not the answer. In a pipe, text that was not held is
        separated from the next message.
        """
        said, self._began = self._held, False
        self._held = "" if self._holds else None
        if said and said.strip():
            self._say(said.strip())
        self._end_line()
        if self._holds and said is None:
            self._out.write("\n")

    def _write_answer(self, text: str, *, is_last: bool = False) -> None:
        if self._inbox is not None:  # half of a line end waits for the other
            self._inbox.add(text)
            text = self._inbox.take(final=is_last)
        if text:
            self._out.write(text)
            self._out.flush()
            self._last = text

    def _end_line(self) -> None:
        """End the current line, so that what follows has its own."""
        self._thoughts.end()
        held, self._held = self._held or "", self._held and ""
        self._write_answer(held, is_last=True)
        if self._last and not self._last.endswith("\n"):
            self._out.write("\n")
            self._out.flush()
            self._last = "\n"

    def _say(self, text: str) -> None:
        self._thoughts.end()
        if self._out.isatty() and self._err.isatty():  # in a pipe no newline is added to an answer
            self._end_line()
        self._out.flush()
        tell(text, self._err)


def _inbox() -> Inbox:
    from mull.tui.text.safe import Inbox  # not needed for pipes

    return Inbox()


def written_value(value: Any, *, indented: bool) -> str:
    """A value as JSON: on one line for programs, on several for people."""
    import msgspec

    data = msgspec.json.encode(value)
    return (msgspec.json.format(data, indent=2) if indented else data).decode()


def has_only_unknown(answer: Message) -> bool:
    """Whether an answer consists of blocks that mull does not know, thinking aside."""
    kinds = {type(block) for block in answer.blocks} - {ThinkingBlock}
    return kinds == {OpaqueBlock}


def tell(text: str, err: TextIO) -> None:
    """A line from mull, neutralised for terminals."""
    from mull.tui.text.safe import neutralise  # most answers print none

    print(f"mull: {neutralise(text)}", file=err, flush=True)


def _outcome(event: ToolRan) -> str:
    """The most informative line of a result; that of a failure says what to do."""
    from mull.agent.tools.shown import NOT_RUN, telling_line

    line = telling_line(event.output, at_end=event.name == "run")
    longest = _LONGEST_FAILURE if event.is_error else _LONGEST_OUTPUT
    short = line if len(line) <= longest else f"{line[: longest - 1]}…"
    return f"failed: {short}" if event.is_error and not short.startswith(NOT_RUN) else short
