"""Drives a turn: ask, run the tools that were called, ask again, until there is an answer.

`mull.agent.turn` says what may follow what; here is the waiting. Whatever happens is published to
the turn's hub, and is in the log when this returns: a whole answer, a broken one, or the part of
one that came before the caller went away (`interrupted`). An answer is in the log, and on disk
where there is a recorder, before its last event comes out. Where the next request goes is asked
before each one, once, so that a model or a setting can be changed in the middle of a tool chain.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from mull.agent.calls import Approve, Calls, allow_all
from mull.agent.debug import Spotter
from mull.agent.hub import Hub
from mull.agent.hurry import Hurry, ThoughtStopped
from mull.agent.hurry_plan import (
    Cause,
    Cut,
    ask_now,
    note_cut,
    reason_to_go_on,
    tell_cut,
)
from mull.agent.tools.tool import RunnableTool
from mull.agent.turn import FINAL, Limits, Progress, Signal, advance, allows, meaning
from mull.agent.watch import Stopwatch
from mull.history.log import Entry, Log, Record
from mull.neutral.assemble import Assembler
from mull.neutral.errors import LocalError, MullError
from mull.neutral.events import (
    Event,
    Failed,
    Finished,
    Healed,
    Hurried,
    Nudged,
    StateChanged,
    ToolRan,
)
from mull.neutral.messages import Message, Origin, user
from mull.neutral.request import Note, RequestOptions, WireRequest
from mull.neutral.target import Target
from mull.policy.prepare import Prepared, prepare
from mull.policy.thinking.plan import OUTCOME, plan_least
from mull.policy.tokens import Counter
from mull.settings.layers import Snapshot

if TYPE_CHECKING:
    from mull.client.exchange import Sending

__all__ = [
    "NUDGE",
    "Recorder",
    "Send",
    "Shorten",
    "Situation",
    "Turn",
    "prepare_quickly",
    "run_turn",
]

QUICKLY_COUNTED = 8192
"""Tokens up to which the character estimate will do where the window is large."""
QUICKLY_COUNTED_UNKNOWN = 2048
"""The same where the window is not known: local servers have small ones."""

NUDGE = "You ended your turn without an answer and without calling a tool. Go on, or answer now."


_LIMITS = Limits()
_BEGINNING = Progress()


class Recorder(Protocol):
    """Keeps what happens, as it happens. Each returns when it is safe to go on."""

    def begin(self, origin: Origin) -> None:
        """An answer from this origin is to come."""

    def events(self, events: Sequence[Event]) -> None:
        """Events of the answer that is coming, or of the tools it called."""

    def append(self, record: Record) -> None:
        """A record that the log has gained."""


class Send(Protocol):
    """Sends a request and gives the events of its answer, those together that come together."""

    def __call__(
        self, prepared: Prepared, *, sending: Sending = ...
    ) -> AsyncGenerator[Sequence[Event], None]:
        """`sending` is told each request as it goes out: this one, or one that was repaired."""


class Situation(Struct, frozen=True):
    """Where a request goes and what shapes it, as things stand now.

    Where it is `interactive`, a person may end a thought early; `end_thought` has the endpoint do
    so, where it can.
    """

    target: Target
    snapshot: Snapshot
    options: RequestOptions
    counter: Counter
    send: Send
    tools: Mapping[str, RunnableTool] = {}
    interactive: bool = False
    end_thought: Callable[[str], Coroutine[Any, Any, bool]] | None = None


class Shorten(Protocol):
    """What can make a request shorter before it goes out: compression, condensing."""

    def needed(self, prepared: Prepared, situation: Situation) -> bool:
        """Whether there is something to do."""

    async def run(
        self, prepared: Prepared, situation: Situation, say: Callable[[Event], None]
    ) -> Sequence[Record]:
        """Do it; the records that the log gains by it."""


class Turn(Struct):
    """What a turn needs, and what it leaves: the messages it added and what there is to say.

    `now` is the situation of the request under way; what is given is that of the first one.
    """

    log: Log
    situation: Callable[[], Situation]
    now: Situation
    approve: Approve = allow_all
    shorten: Callable[[], Shorten | None] = lambda: None
    recorder: Recorder | None = None
    limits: Limits = _LIMITS
    debug: bool = False
    hub: Hub = field(default_factory=Hub)
    messages: list[Message] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    prepared: Prepared | None = None
    progress: Progress = _BEGINNING
    cut: Cut | None = None
    hurry: Hurry | None = None
    error: BaseException | None = None

    def add(self, record: Record) -> None:
        """Put a record into the log, and onto the disk."""
        if self.recorder is not None:
            self.recorder.append(record)
        self.log.add(record)
        if isinstance(record, Entry):
            self.messages.append(record.message)

    def note(self, *notes: Note) -> None:
        """Say something once: a note takes the place of an earlier one of its kind. What was a
        warning stays one."""
        for note in notes:
            for at, earlier in enumerate(self.notes):
                if note.replaces(earlier):
                    warning = note.warning or earlier.warning
                    self.notes[at] = replace(note, warning=warning)
                    break
            else:
                self.notes.append(note)

    def say(self, event: Event) -> None:
        """Publish one event."""
        self.hub.publish((event,))

    def signal(self, signal: Signal) -> None:
        """Go where the signal leads, and say so."""
        self.progress = advance(self.progress, signal, self.limits)
        self.say(StateChanged(self.progress.state, self.progress.round, self.limits.rounds))

    def allows(self, signal: Signal) -> bool:
        """Whether there is a way for the signal now, and no limit closes it."""
        return allows(self.progress, signal, self.limits)

    @property
    def target(self) -> Target:
        """Where the last request went, or the next one goes."""
        return self.prepared.target if self.prepared else self.now.target


async def run_turn(turn: Turn) -> None:
    """Run the turn that the log's last message begins or goes on with.

    Raises:
        RemoteError: the endpoint refused or could not be reached before it said anything.
        LocalError: the request cannot be made, or the tools never come to an end.
    """
    turn.signal("begin")
    try:
        while turn.progress.state not in FINAL:
            await _STEPS[turn.progress.state](turn)
            if turn.progress.state == "sending":
                turn.now = turn.situation()
    except BaseException as error:
        turn.error = error
        if turn.progress.state not in FINAL:
            turn.signal("failed" if isinstance(error, MullError) else "stopped")
        raise


async def _send(turn: Turn) -> None:
    """One request and its answer."""
    situation = turn.now
    prepared = turn.prepared = _prepare(turn, situation)
    shorten = turn.shorten()
    if shorten is not None and turn.allows("full") and shorten.needed(prepared, situation):
        turn.signal("full")
        return
    cut, turn.cut = turn.cut, None
    if cut is not None:
        turn.say(tell_cut(cut, prepared))
    turn.note(*prepared.notes)
    answer = _Answer(turn, prepared)
    try:
        async with (
            answer.watched(situation),
            aclosing(situation.send(prepared, sending=answer.sending)) as batches,
        ):
            async for events in batches:
                answer.take(events)
    except ThoughtStopped as stopped:
        unfinished = answer.keep()
        turn.add(Entry(user(ask_now(unfinished)), time.time(), own=True))
        turn.cut = Cut(stopped.cause, answer.asked.request.thinking)
        turn.signal(stopped.cause)
        return
    finally:
        message = answer.keep()
    answer.end()
    said = meaning(message, turn.progress, turn.limits, tools=bool(situation.tools))
    turn.signal(said)
    if said == "silent":
        turn.add(Entry(user(NUDGE), time.time(), own=True))
        turn.say(Nudged(turn.progress.nudges, turn.limits.nudges))


class _Answer:
    """An answer while it comes. Its last events are held back until it is safe."""

    def __init__(self, turn: Turn, prepared: Prepared) -> None:
        self._turn = turn
        self._watch = Stopwatch(time.monotonic)
        self._spotter = Spotter(prepared, turn.say) if turn.debug else None
        self._kept: Message | None = None
        self._held: list[Event] = []
        self._begin(prepared)

    def _begin(self, asked: Prepared) -> None:
        self.asked = self._turn.prepared = asked
        self._folding = Assembler(asked.target.origin)
        if self._turn.recorder is not None:
            self._turn.recorder.begin(asked.target.origin)

    def watched(self, situation: Situation) -> AbstractAsyncContextManager[None]:
        """The time in which the answer comes; where somebody may end a thought, it ends with it.

        Raises:
            ThoughtStopped: the thought was stopped, and the stream with it.
        """
        if self._spotter is not None:
            self._spotter.asked()
        seconds = situation.snapshot["reasoning.maxSeconds"]
        if seconds is None and not situation.interactive:
            self._turn.hurry = None
            return nullcontext()
        refuse = self._refusal(situation)
        hurry = self._turn.hurry = Hurry(seconds, situation.end_thought, refuse, self._tell)
        return hurry.watch()

    def sending(self, prepared: Prepared, wire: WireRequest) -> None:
        """A request goes out: this one, or after a refusal another, maybe in another dialect."""
        self._turn.note(*wire.notes)
        if prepared is not self.asked:
            gone = [note for note in self.asked.notes if note not in prepared.notes]
            self._turn.notes[:] = [note for note in self._turn.notes if note not in gone]
            self._begin(prepared)
            self._turn.note(*(note for note in prepared.notes if note.kind == OUTCOME))

    def take(self, events: Sequence[Event]) -> None:
        """Take events in and tell them, up to the first that has to wait."""
        self._change_state(events[0])
        self._folding.add_all(events)
        self._watch.add_all(events)
        if self._turn.hurry is not None:
            self._turn.hurry.take(events)
        if self._spotter is not None:
            self._spotter.take(events)
        if self._held or isinstance(events[-1], Finished | Failed):
            events = self._hold(events)
        if self._turn.recorder is not None:
            self._turn.recorder.events(events)
        self._turn.hub.publish(events)

    def _hold(self, events: Sequence[Event]) -> Sequence[Event]:
        ends = (at for at, event in enumerate(events) if isinstance(event, Finished | Failed))
        start = 0 if self._held else next(ends, len(events))
        self._held += events[start:]
        return events[:start]

    def _change_state(self, event: Event) -> None:
        """What the first of some events means for the state of the turn, and for its notes."""
        turn = self._turn
        if isinstance(event, Healed):
            if not turn.allows("healed"):
                raise LocalError("the endpoint refuses what was repaired already: stopped")
            self._folding = Assembler(self.asked.target.origin)
            turn.note(Note("healed", f"{event.change} ({event.reason})", warning=True))
            turn.signal("healed")
        elif not isinstance(event, Finished | Failed) and turn.allows("event"):
            turn.signal("event")

    def _tell(self, event: Hurried) -> None:
        """What is done about a thought."""
        self._turn.note(Note(event.about, event.text))
        if self._held:
            self._held.append(event)
        else:
            self._turn.say(event)

    def _refusal(self, situation: Situation) -> Callable[[Cause], str | None]:
        """Why a thought of this answer is not stopped for a cause."""
        turn, snapshot = self._turn, situation.snapshot

        def refuse(cause: Cause) -> str | None:
            asked, limit = self.asked, situation.options.max_tokens
            least = plan_least(asked.target, snapshot, max_tokens=limit, used=asked.estimate)
            why = reason_to_go_on(cause, turn.progress, turn.limits, asked, least)
            told = cause == "overdue" and any(note.text == why for note in turn.notes)
            return "" if told else why

        return refuse

    def keep(self) -> Message:
        """Put the answer, whole or not, into the log; once."""
        if self._kept is None:
            message = self._kept = self._folding.message()
            if message.blocks or message.status != "interrupted":
                took = self._watch.seconds, self._watch.thought_seconds
                prefix = self.asked.prefix if message.thinking else None
                counted = self.asked.characters
                self._turn.add(Entry(message, time.time(), *took, prefix, counted=counted))
        return self._kept

    def end(self) -> None:
        """Tell what was held back: the answer is safe."""
        if self._spotter is not None:
            self._spotter.ended(self.asked)
        if self._held:
            self._turn.hub.publish(self._held)


def _prepare(turn: Turn, situation: Situation) -> Prepared:
    target, snapshot = situation.target, situation.snapshot
    options = replace(situation.options, least_thinking=turn.cut is not None)
    prepared = prepare_quickly(turn.log, snapshot, target, options, situation.counter)
    return prepared if turn.cut is None else note_cut(turn.cut, prepared)


def prepare_quickly(
    log: Log, snapshot: Snapshot, target: Target, options: RequestOptions, counter: Counter
) -> Prepared:
    """The request; one that is short beside its window is not worth loading a tokenizer for:
    its estimate is high."""
    prepared = prepare(log, snapshot, target, options)
    usable = prepared.usable
    near = QUICKLY_COUNTED_UNKNOWN if usable is None else min(QUICKLY_COUNTED, usable // 2)
    if prepared.estimate > near:
        return prepare(log, snapshot, target, options, counter=counter)
    return prepared


async def _shorten(turn: Turn) -> None:
    """Make the request shorter; it goes out as it is if that cannot be done."""
    shorten, prepared = turn.shorten(), turn.prepared
    assert shorten is not None
    assert prepared is not None
    for record in await shorten.run(prepared, turn.now, turn.say):
        turn.add(record)
    turn.signal("shortened")


async def _run_tools(turn: Turn) -> None:
    """Run all calls of the last answer at once; their results stand in the order of the calls."""
    loop, going_on = asyncio.get_running_loop(), True
    held: list[Event] = []

    def put(event: Event) -> None:
        loop.call_soon_threadsafe(tell, event)

    def tell(event: Event) -> None:
        if not going_on:  # a tool that did not end with its call
            return
        if isinstance(event, ToolRan) and calls.all_ran:
            held.append(event)  # told when the results of all are safe, which is at once
            return
        if turn.recorder is not None:
            turn.recorder.events((event,))
        turn.hub.publish(tuple(calls.in_order(event)))

    calls = Calls(turn.messages[-1].tool_calls, turn.now.tools, turn.approve, put)
    try:
        await calls.run()
    finally:
        going_on = False
        turn.add(Entry(Message(role="tool", blocks=calls.results()), time.time()))
        if held:
            turn.hub.publish([shown for event in held for shown in calls.in_order(event)])
    if turn.allows("results"):
        turn.signal("results")
        return
    turn.signal("exhausted")
    raise LocalError(
        f"the model called tools {turn.limits.rounds} times without an answer: stopped."
        " What was done stands; say something to go on"
    )


_Step = Callable[[Turn], Awaitable[None]]
_STEPS: Mapping[str, _Step] = {"sending": _send, "compressing": _shorten, "tools": _run_tools}
