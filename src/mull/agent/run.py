"""Drives a turn: ask, run the tools that were called, ask again, until there is an answer.

`mull.agent.turn` says what may follow what; here is the waiting. Whatever happens is in the log
when this returns: a whole answer, a broken one, or the part of one that came before the caller
went away (`interrupted`). An answer is in the log, and on disk where there is a
recorder, before its last event comes out. Where the next request goes is asked before each one,
so that a model or a setting can be changed in the middle of a chain of tools.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Protocol

from msgspec.structs import replace

from mull.agent.calls import Approve, Calls, allow_all
from mull.agent.debug import Spotter
from mull.agent.hurry import Hurry, Refuse, ThoughtStopped
from mull.agent.hurry_plan import (
    Cause,
    Cut,
    ask_now,
    note_cut,
    reason_to_go_on,
    tell_cut,
)
from mull.agent.pump import Pump
from mull.agent.tools.tool import RunnableTool
from mull.agent.turn import FINAL, Limits, Progress, Signal, advance, allows, meaning
from mull.agent.watch import Stopwatch
from mull.history.log import Entry, Log, Record
from mull.neutral.assemble import Assembler
from mull.neutral.errors import LocalError, MullError
from mull.neutral.events import Event, Failed, Finished, Healed, Hurried, Nudged, StateChanged
from mull.neutral.messages import Message, Origin, user
from mull.neutral.request import Note, RequestOptions, WireRequest
from mull.neutral.target import Target
from mull.policy.prepare import Prepared, prepare
from mull.policy.thinking.plan import OUTCOME, plan_least
from mull.policy.tokens import Counter
from mull.settings.layers import Snapshot

__all__ = ["NUDGE", "Recorder", "Shorten", "Situation", "Turn", "prepare_quickly", "run_turn"]

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

    def event(self, event: Event) -> None:
        """An event of the answer that is coming."""

    def append(self, record: Record) -> None:
        """A record that the log has gained."""


class Send(Protocol):
    """Sends a request and gives the events of its answer."""

    def __call__(
        self, prepared: Prepared, sending: Callable[[Prepared, WireRequest], None] = ...
    ) -> AsyncGenerator[Event, None]:
        """`sending` is told each request as it goes out: this one, or one that was repaired."""


@dataclass(frozen=True)
class Situation:
    """Where a request goes and what shapes it, as things stand now."""

    target: Target
    snapshot: Snapshot
    options: RequestOptions
    counter: Counter
    send: Send
    tools: Mapping[str, RunnableTool] = field(default_factory=dict)
    hurry: Callable[[Refuse], Hurry] | None = None


class Shorten(Protocol):
    """What can make a request shorter before it goes out: compression, condensing."""

    def needed(self, prepared: Prepared) -> bool:
        """Whether there is something to do."""

    async def run(self, prepared: Prepared, say: Callable[[Event], None]) -> Sequence[Record]:
        """Do it; the records that the log gains by it."""


@dataclass
class Turn:
    """What a turn needs, and what it leaves: the messages it added and what there is to say."""

    log: Log
    situation: Callable[[], Situation]
    approve: Approve = allow_all
    shorten: Callable[[], Shorten | None] = lambda: None
    recorder: Recorder | None = None
    limits: Limits = _LIMITS
    learnt: Callable[[Target], Target] = lambda target: target
    messages: list[Message] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    prepared: Prepared | None = None
    progress: Progress = _BEGINNING
    cut: Cut | None = None
    debug: bool = False

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

    def signal(self, signal: Signal) -> StateChanged:
        """Go where the signal leads, and say so."""
        self.progress = advance(self.progress, signal, self.limits)
        return StateChanged(self.progress.state, self.progress.round, self.limits.rounds)

    def allows(self, signal: Signal) -> bool:
        """Whether there is a way for the signal now, and no limit closes it."""
        return allows(self.progress, signal, self.limits)

    @property
    def target(self) -> Target:
        """Where the last request went, or the next one goes."""
        return self.prepared.target if self.prepared else self.situation().target


async def run_turn(turn: Turn) -> AsyncGenerator[Event, None]:
    """Run the turn that the log's last message begins or goes on with.

    Raises:
        RemoteError: the endpoint refused or could not be reached before it said anything.
        LocalError: the request cannot be made, or the tools never come to an end.
    """
    yield turn.signal("begin")
    try:
        while turn.progress.state not in FINAL:
            async with aclosing(_STEPS[turn.progress.state](turn)) as events:
                async for event in events:
                    yield event
    except MullError:
        if turn.progress.state not in FINAL:
            yield turn.signal("failed")
        raise
    except BaseException:
        if turn.progress.state not in FINAL:
            turn.signal("stopped")
        raise


async def _send(turn: Turn) -> AsyncGenerator[Event, None]:
    """One request and its answer."""
    situation = turn.situation()
    prepared = turn.prepared = _prepare(turn, situation)
    shorten = turn.shorten()
    if shorten is not None and turn.allows("full") and shorten.needed(prepared):
        yield turn.signal("full")
        return
    cut, turn.cut = turn.cut, None
    if cut is not None:
        yield tell_cut(cut, prepared)
    turn.note(*prepared.notes)
    answer = _Answer(turn, prepared)
    hurry = _hurry(turn, situation, answer)
    spotter = Spotter(prepared) if turn.debug else None
    if spotter is not None:
        yield spotter.asked()
    try:
        async with aclosing(_stream(situation, prepared, hurry, answer.sending)) as events:
            async for event in events:
                for change in _changes(turn, event):
                    yield change
                if spotter is not None and (found := spotter.seen(event)):
                    yield found
                if answer.take(event):
                    yield event
    except ThoughtStopped as stopped:
        unfinished = answer.keep()
        turn.add(Entry(user(ask_now(unfinished)), time.time(), own=True))
        turn.cut = Cut(stopped.cause, answer.asked.request.thinking)
        yield turn.signal(stopped.cause)
        return
    finally:
        message = answer.keep()
    if spotter is not None:
        yield spotter.ended(answer.asked)
    for event in answer.held:
        yield event
    said = meaning(message, turn.progress, turn.limits, tools=bool(situation.tools))
    yield turn.signal(said)
    if said == "silent":
        turn.add(Entry(user(NUDGE), time.time(), own=True))
        yield Nudged(turn.progress.nudges, turn.limits.nudges)


async def _stream(
    situation: Situation,
    prepared: Prepared,
    hurry: Hurry | None,
    sending: Callable[[Prepared, WireRequest], None],
) -> AsyncGenerator[Event, None]:
    async with aclosing(situation.send(prepared, sending)) as events:
        if hurry is None:
            async for event in events:
                yield event
            return
        async with aclosing(hurry.watch(events)) as watched:
            async for event in watched:
                yield event


class _Answer:
    """An answer while it comes. Its last events are held back until it is safe."""

    def __init__(self, turn: Turn, prepared: Prepared) -> None:
        self._turn = turn
        self._watch = Stopwatch(time.monotonic)
        self._kept: Message | None = None
        self.held: list[Event] = []
        self._begin(prepared)

    def _begin(self, asked: Prepared) -> None:
        self.asked = self._turn.prepared = asked
        self._folding = Assembler(asked.target.origin)
        if self._turn.recorder is not None:
            self._turn.recorder.begin(asked.target.origin)

    def sending(self, prepared: Prepared, wire: WireRequest) -> None:
        """A request goes out: this one, or after a refusal another, maybe in another dialect."""
        self._turn.note(*wire.notes)
        if prepared is not self.asked:
            gone = [note for note in self.asked.notes if note not in prepared.notes]
            self._turn.notes[:] = [note for note in self._turn.notes if note not in gone]
            self._begin(prepared)
            self._turn.note(*(note for note in prepared.notes if note.kind == OUTCOME))

    def take(self, event: Event) -> bool:
        """Take one event in; whether it may be shown at once."""
        if isinstance(event, Healed):
            self._folding = Assembler(self.asked.target.origin)
        self._folding.add(event)
        self._watch.add(event)
        if self.held or isinstance(event, Finished | Failed):
            self.held.append(event)
            return False
        if self._turn.recorder is not None:
            self._turn.recorder.event(event)
        return True

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


def _hurry(turn: Turn, situation: Situation, answer: _Answer) -> Hurry | None:
    """What watches over the thoughts of the answer, where somebody may end them."""
    if situation.hurry is None:
        return None

    def refuse(cause: Cause) -> str | None:
        asked, limit = answer.asked, situation.options.max_tokens
        snapshot = situation.snapshot
        least = plan_least(asked.target, snapshot, max_tokens=limit, used=asked.estimate)
        why = reason_to_go_on(cause, turn.progress, turn.limits, asked, least)
        told = cause == "overdue" and any(note.text == why for note in turn.notes)
        return "" if told else why

    return situation.hurry(refuse)


def _changes(turn: Turn, event: Event) -> list[Event]:
    """What an event means for the state of the turn, and for its notes."""
    if isinstance(event, Hurried):
        turn.note(Note(event.about, event.text))
    if isinstance(event, Healed):
        if not turn.allows("healed"):
            raise LocalError("the endpoint refuses what was repaired already: stopped")
        turn.note(Note("healed", f"{event.change} ({event.reason})", warning=True))
        return [turn.signal("healed")]
    if turn.progress.state in ("sending", "healing") and not isinstance(event, Finished | Failed):
        return [turn.signal("event")]
    return []


def _prepare(turn: Turn, situation: Situation) -> Prepared:
    target, snapshot = turn.learnt(situation.target), situation.snapshot
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


async def _shorten(turn: Turn) -> AsyncGenerator[Event, None]:
    """Make the request shorter; it goes out as it is if that cannot be done."""
    pump, shorten, prepared = Pump(), turn.shorten(), turn.prepared
    assert shorten is not None
    assert prepared is not None

    async def work() -> None:
        for record in await shorten.run(prepared, pump.put):
            turn.add(record)

    async with aclosing(pump.run(work())) as events:
        async for event in events:
            yield event
    yield turn.signal("shortened")


async def _run_tools(turn: Turn) -> AsyncGenerator[Event, None]:
    """Run all calls of the last answer at once; their results stand in the order of the calls."""
    pump = Pump()
    calls = Calls(turn.messages[-1].tool_calls, turn.situation().tools, turn.approve, pump.put)
    try:
        async with aclosing(pump.run(calls.run())) as events:
            async for event in events:
                if turn.recorder is not None:
                    turn.recorder.event(event)
                for shown in calls.in_order(event):
                    yield shown
    finally:
        turn.add(Entry(Message(role="tool", blocks=calls.results()), time.time()))
    if turn.allows("results"):
        yield turn.signal("results")
        return
    yield turn.signal("exhausted")
    raise LocalError(
        f"the model called tools {turn.limits.rounds} times without an answer: stopped."
        " What was done stands; say something to go on"
    )


_Step = Callable[[Turn], AsyncGenerator[Event, None]]
_STEPS: Mapping[str, _Step] = {"sending": _send, "compressing": _shorten, "tools": _run_tools}
