"""Drives a turn: send a request, run the tools it calls, and repeat until there is an answer.

`mull.agent.turn` defines what may follow what; this module does the waiting. Every event is
published to the turn's hub, and is in the log when this returns: a complete answer, a broken one,
or the part that arrived before the caller left (`interrupted`). An answer is in the log, and on
disk if there is a recorder, before its last event is published. The situation is determined once
before each request, so that a model or a setting can be changed during a tool chain.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from mull.agent.answering import Answer
from mull.agent.hub import Hub
from mull.agent.options import check_choice
from mull.agent.turn import (
    FINAL,
    Limits,
    Progress,
    Signal,
    ThoughtStopped,
    advance,
    allows,
    has_broken,
    meaning,
)
from mull.history.log import Entry, Log, Record
from mull.neutral.errors import LocalError, MisfitError, MullError, TooLongError
from mull.neutral.events import (
    Corrected,
    Event,
    Failed,
    Nudged,
    Started,
    StateChanged,
    Steered,
    ToolRan,
)
from mull.neutral.messages import Message, Origin, user
from mull.neutral.request import Note, RequestOptions
from mull.neutral.target import Target
from mull.policy.allowance import result_allowance
from mull.policy.heal.amendment import UNAMENDED, Amendment
from mull.policy.prepare import Prepared, prepare, too_long_text
from mull.policy.tokens import Counter
from mull.settings.layers import Snapshot

if TYPE_CHECKING:
    from mull.agent.calls import Approve
    from mull.agent.hurry import Hurry
    from mull.agent.hurry_plan import Cut
    from mull.agent.structured import Shape
    from mull.agent.tools.tool import RunnableTool
    from mull.client.exchange import Sending

__all__ = [
    "LIMITS",
    "NUDGE",
    "UNUSABLE",
    "Recorder",
    "Send",
    "Shorten",
    "Situation",
    "Turn",
    "prepare_quickly",
    "run_turn",
]

QUICKLY_COUNTED = 8192
"""Tokens up to which the character estimate is good enough, if the window is large."""
QUICKLY_COUNTED_UNKNOWN = 2048
"""The same if the window is unknown: local servers have small ones."""

NUDGE = "You ended your turn without an answer and without calling a tool. Go on, or answer now."
UNUSABLE = (
    "A part of your last turn could not be used, such as a tool call without a name: nothing was"
    " run. Call the tool again, or answer now."
)


LIMITS = Limits()
_BEGINNING = Progress()
_DECLINED = ("refusal", "content_filter")
_QUOTED = 200
"""Characters of a refusal that an error quotes."""


if TYPE_CHECKING:

    class Recorder(Protocol):
        """Stores events as they happen. Each method returns when it is safe to continue."""

        def begin(self, origin: Origin) -> None:
            """An answer from this origin is about to arrive."""

        def events(self, events: Sequence[Event]) -> None:
            """Events of the arriving answer, or of the tools it called."""

        def append(self, record: Record) -> None:
            """A record that was appended to the log."""

    class Send(Protocol):
        """Sends a request and yields the events of its answer, grouped as they arrive."""

        def __call__(
            self, prepared: Prepared, *, sending: Sending = ...
        ) -> AsyncGenerator[Sequence[Event], None]:
            """`sending` gets each request as it is sent: this one, or a fixed one."""


class Situation(Struct, frozen=True):
    """Where a request goes and what shapes it, at this moment."""

    target: Target
    """The model, and the endpoint it is at."""
    snapshot: Snapshot
    """The settings in effect."""
    options: RequestOptions
    """The parameters of the request, its system prompt and the tools offered."""
    counter: Counter
    """The counter of the model's tokens."""
    send: Send
    """Sends the request and yields the events of its answer."""
    tools: Mapping[str, RunnableTool] = {}
    """The tools that mull runs, by name; empty leaves all calls to the caller."""
    interactive: bool = False
    """Whether the user may end thinking early."""
    end_thought: Callable[[str], Coroutine[Any, Any, bool]] | None = None
    """Makes the endpoint end the thinking of the answer with this id; None if it cannot."""
    amendment: Amendment = UNAMENDED
    """What a request that was too long has taught."""

    def prepared(self, log: Log) -> Prepared:
        """The request for this log, counted with the model's own counter."""
        snapshot, counter, amendment = self.snapshot, self.counter, self.amendment
        return prepare(
            log, snapshot, self.target, self.options, counter=counter, amendment=amendment
        )

    def quickly_prepared(self, log: Log) -> Prepared:
        """The same, counted by characters if it is short compared with its window."""
        return prepare_quickly(
            log,
            self.snapshot,
            self.target,
            self.options,
            counter=self.counter,
            amendment=self.amendment,
        )


if TYPE_CHECKING:

    class Shorten(Protocol):
        """What can shorten a request before it is sent: compression, condensing."""

        def needed(self, prepared: Prepared, situation: Situation) -> bool:
            """Whether there is something to do."""

        async def run(
            self, prepared: Prepared, situation: Situation, say: Callable[[Event], None]
        ) -> Sequence[Record]:
            """Do it; returns the records to append to the log."""


async def _nothing_new() -> bool:
    return False


class Turn(Struct):
    """What a turn needs, and what it produces: the messages it added and its notes."""

    log: Log
    """The conversation; its last message starts the turn."""
    situation: Callable[[], Situation]
    """Determines where the next request goes: settings and model may change during a turn."""
    now: Situation
    """The situation of the current request, initially that of the first one."""
    inspect: Callable[[], Awaitable[bool]] = _nothing_new
    """Queries the model's server; returns whether what it says is new."""
    approve: Approve | None = None
    """Decides on tool calls; None runs them without asking."""
    shorten: Callable[[], Shorten | None] = lambda: None
    """Returns what shortens a request that is too long; None if nothing may."""
    recorder: Recorder | None = None
    """Stores what happens as it happens; None keeps it only in memory."""
    limits: Limits = LIMITS
    """How often the turn may repeat things."""
    debug: bool = False
    """Whether to look for signs of trouble in each answer."""
    hub: Hub = field(default_factory=Hub)
    """Passes events on to those who follow the turn."""
    messages: list[Message] = field(default_factory=list)
    """The messages that the turn has added."""
    steering: deque[Message] = field(default_factory=deque)
    """Messages the user sent meanwhile. They are sent with the next tool results, and stay here if
    there are none.
    """
    notes: list[Note] = field(default_factory=list)
    """What the user should know, each kind once."""
    prepared: Prepared | None = None
    """The last request; None before the first one."""
    progress: Progress = _BEGINNING
    """The state of the turn, and its counts."""
    cut: Cut | None = None
    """Why the thinking of the last answer was stopped, and how it had been planned. None unless the
    answer is still to be requested.
    """
    hurry: Hurry | None = None
    """What can end the thinking of the current answer; None if nothing can."""
    overflow: Amendment = UNAMENDED
    """What was learnt from a request that was rejected for its length, until one is answered."""
    rejected: tuple[TooLongError, int] | None = None
    """That rejection, and the length of the log at that time."""
    too_long: bool = False
    """Whether nothing is left that could be sent."""
    error: BaseException | None = None
    """What ended the turn, if it raised."""
    task: asyncio.Task[Any] | None = None
    """The task it runs in, if it is a stream's."""
    heard: float | None = None
    """When the endpoint's last byte arrived, or when it was asked, by the monotonic clock; None
    while nothing is awaited.
    """
    context: Any = None
    """What tools get as `ToolContext.deps`."""
    shape: Shape | None = None
    """The type or schema that the answer must have; None for none."""
    value: Any = None
    """The answer as that type; None until it is there."""
    answer: Answer | None = None
    """The answer that is arriving, or the last one."""
    started: Started | None = None
    """The first event of the last answer, with its ids and rate limits."""
    failed: Failed | None = None
    """The failure that ended the last answer, if one did."""
    costs: list[float | None] = field(default_factory=list)
    """The price of each answer in dollars; None if unknown."""
    waits: list[float | None] = field(default_factory=list)
    """The seconds until the first piece of each answer; None if there was none."""
    seconds: float | None = None
    """How long the turn took; None while it runs."""

    def add(self, record: Record) -> None:
        """Append a record to the log, and store it."""
        if self.recorder is not None:
            self.recorder.append(record)
        self.log.add(record)
        if isinstance(record, Entry):
            self.messages.append(record.message)

    def note(self, *notes: Note) -> None:
        """Add a note once: it replaces an earlier one of its kind. A warning stays a warning."""
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
        """Follow the signal to the next state, and publish it."""
        self.progress = advance(self.progress, signal, self.limits)
        self.say(StateChanged(self.progress.state, self.progress.round, self.limits.rounds))

    async def look(self) -> None:
        """Determine the situation before the next request: the model may be another, whose server
        is queried.
        """
        await self.inspect()
        self.now = replace(self.situation(), amendment=self.overflow)

    def allows(self, signal: Signal) -> bool:
        """Whether the signal is allowed now, and no limit prevents it."""
        return allows(self.progress, signal, self.limits)

    def calls_tools(self, answer: Message) -> bool:
        """Whether the answer calls tools that were offered to it, so that it is not the value
        yet.
        """
        return bool(answer.tool_calls and self.now.options.tools)

    @property
    def target(self) -> Target:
        """Where the last request went, or the next one goes."""
        return self.prepared.target if self.prepared else self.now.target


async def run_turn(turn: Turn) -> None:
    """Run the turn that the log's last message starts or continues.

    Raises:
        RemoteError: the endpoint rejected the request or could not be reached before it sent
            anything.
        LocalError: the request cannot be made, or tool rounds exceed their limit.
    """
    began = time.monotonic()
    turn.signal("begin")
    try:
        if await turn.inspect():
            await turn.look()
        while turn.progress.state not in FINAL:
            await _STEPS[turn.progress.state](turn)
            if turn.progress.state == "sending":
                await turn.look()
    except BaseException as error:
        turn.error = error
        if turn.progress.state not in FINAL:
            turn.signal("failed" if isinstance(error, MullError) else "stopped")
        raise
    finally:
        turn.seconds = round(time.monotonic() - began, 3)


def _overflow(turn: Turn, refused: Prepared, error: TooLongError) -> None:
    """Go on with what is known about the length that was rejected."""
    from mull.policy.heal.overflow import overflowed

    turn.overflow, turn.too_long = overflowed(refused, error.overflow), False
    turn.rejected = error, len(turn.log)
    turn.note(Note("overflow", f"rejected for its length: {error.text}", warning=True))
    turn.signal("overflow")


def _check_length(turn: Turn, prepared: Prepared) -> None:
    """Send nothing that is known to be too long, and nothing again that was rejected as such.

    Raises:
        TooLongError: the endpoint's own words, if it could not be shortened since.
        LocalError: it is too long by our count.
    """
    error, length = turn.rejected or (None, 0)
    turn.too_long = prepared.too_long or (error is not None and length == len(turn.log))
    if turn.too_long:
        raise error or LocalError(too_long_text(prepared))


async def _send(turn: Turn) -> None:
    """One request and its answer."""
    situation = turn.now
    prepared = turn.prepared = _prepare(turn, situation)
    shorten = turn.shorten()
    if shorten is not None and turn.allows("full") and shorten.needed(prepared, situation):
        turn.signal("full")
        return
    _check_length(turn, prepared)
    cut, turn.cut = turn.cut, None
    if cut is not None:
        from mull.agent.hurry_plan import tell_cut  # few turns need it

        turn.say(tell_cut(cut, prepared))
    turn.note(*prepared.notes)
    answer = turn.answer = Answer(turn, prepared)
    try:
        async with (
            answer.watched(situation),
            aclosing(situation.send(prepared, sending=answer.sending)) as batches,
        ):
            async for events in batches:
                turn.heard = time.monotonic()
                if events:
                    answer.take(events)
    except ThoughtStopped as stopped:
        from mull.agent.hurry_plan import Cut, ask_now

        asked_now = ask_now(answer.keep(), answer.asked.target)
        turn.add(Entry(user(asked_now), time.time(), own=True))
        turn.cut = Cut(stopped.cause, answer.asked.request.thinking)
        turn.signal(stopped.cause)
        return
    except TooLongError as error:
        if error.overflow is None:
            raise
        turn.too_long = True
        if shorten is None or not turn.allows("overflow"):
            raise
        _overflow(turn, answer.asked, error)
        await turn.look()
        return
    finally:
        turn.heard = None
        message = answer.keep()
    answer.end()
    turn.overflow, turn.rejected = UNAMENDED, None
    said = meaning(message, turn.progress, turn.limits, tools=bool(situation.tools))
    misfit = _read_value(turn, message) if said == "answered" else None
    turn.signal(said if misfit is None else "misfit")
    if misfit is not None:
        assert turn.shape is not None
        turn.add(Entry(turn.shape.correction(message, misfit), time.time(), own=True))
        turn.say(Corrected(str(misfit)))
    elif said == "silent":
        text = UNUSABLE if has_broken(message) else NUDGE
        turn.add(Entry(user(text), time.time(), own=True))
        turn.say(Nudged(turn.progress.nudges, turn.limits.nudges))


def _read_value(turn: Turn, message: Message) -> MisfitError | None:
    """Read the value of an answer in a shape; returns why it must be asked for again.

    Raises:
        MisfitError: there is none, and asking again does not help.
    """
    if turn.shape is None or (turn.calls_tools(message) and not turn.now.tools):
        return None  # the value comes once the caller has given the results
    try:
        turn.value = turn.shape.read(message)
    except MisfitError as misfit:
        if message.status in ("truncated", "truncated_in_reasoning"):
            why = f"{misfit}: it was cut off; raise max_tokens"
            raise MisfitError(why, message.text) from None
        if message.stop_reason in _DECLINED:
            said = f": {message.text.strip()[:_QUOTED]}" if message.text.strip() else ""
            why = f"the model or its provider declined to answer{said}"
            raise MisfitError(why, message.text) from None
        if not turn.allows("misfit"):
            raise MisfitError(f"{misfit} (asked twice)", message.text) from None
        return misfit
    if (receipt := turn.shape.receipt(message)) is not None:
        turn.add(Entry(receipt, time.time()))
    return None


def _prepare(turn: Turn, situation: Situation) -> Prepared:
    choice = situation.options.tool_choice
    if turn.progress.round == 1:
        check_choice(situation.options)
    elif choice not in (None, "auto", "none"):
        # forced again after its result, the model could never answer
        situation = replace(situation, options=replace(situation.options, tool_choice=None))
    if turn.cut is None:
        return situation.quickly_prepared(turn.log)
    options = replace(situation.options, least_thinking=True)
    prepared = replace(situation, options=options).quickly_prepared(turn.log)
    from mull.agent.hurry_plan import note_cut

    return note_cut(turn.cut, prepared)


def prepare_quickly(
    log: Log,
    snapshot: Snapshot,
    target: Target,
    options: RequestOptions,
    *,
    counter: Counter,
    amendment: Amendment = UNAMENDED,
) -> Prepared:
    """The request; a tokenizer is not loaded for one that is short compared with its window: its
    estimate is high.
    """
    prepared = prepare(log, snapshot, target, options, amendment=amendment)
    usable = prepared.usable
    near = QUICKLY_COUNTED_UNKNOWN if usable is None else min(QUICKLY_COUNTED, usable // 2)
    if prepared.estimate > near:
        return prepare(log, snapshot, target, options, counter=counter, amendment=amendment)
    return prepared


async def _shorten(turn: Turn) -> None:
    """Shorten the request; if that fails, it is sent as it is if it may fit."""
    shorten, prepared = turn.shorten(), turn.prepared
    assert shorten is not None
    assert prepared is not None
    for record in await shorten.run(prepared, turn.now, turn.say):
        turn.add(record)
    turn.signal("shortened")


async def _run_tools(turn: Turn) -> None:
    """Run all calls of the last answer at once; their results are in the order of the calls."""
    from mull.agent.calls import Calls, allow_all

    loop, going_on = asyncio.get_running_loop(), True
    held: list[Event] = []

    def put(event: Event) -> None:
        loop.call_soon_threadsafe(tell, event)

    def tell(event: Event) -> None:
        if not going_on:  # a tool that did not end with its call
            return
        if isinstance(event, ToolRan) and calls.all_ran:
            held.append(event)  # published when all results are stored, which follows immediately
            return
        if turn.recorder is not None:
            turn.recorder.events((event,))
        turn.hub.publish(tuple(calls.in_order(event)))

    made, approve = turn.messages[-1].tool_calls, turn.approve or allow_all
    calls = Calls(
        made,
        turn.now.tools,
        approve,
        put,
        _allowance(turn, len(made)),
        deps=turn.context,
        messages=turn.log.messages,
    )
    try:
        await calls.run()
    finally:
        going_on = False
        turn.add(Entry(Message(role="tool", blocks=calls.results()), time.time()))
        if held:
            turn.hub.publish([shown for event in held for shown in calls.in_order(event)])
    if turn.allows("results"):
        _steer(turn)
        turn.signal("results")
        return
    turn.signal("exhausted")
    raise LocalError(
        f"the model called tools in {turn.limits.rounds} rounds without answering: "
        "stopped. Its work is kept; send a message to continue"
    )


def _steer(turn: Turn) -> None:
    """Add the user's new messages to the results."""
    while turn.steering:
        said = turn.steering.popleft()
        turn.add(Entry(said, time.time(), steers=True))
        turn.say(Steered(said.text))


def _allowance(turn: Turn, calls: int) -> int | None:
    """Tokens that each result may have."""
    prepared = turn.prepared
    return result_allowance(prepared.usable, prepared.estimate, calls) if prepared else None


_Step = Callable[[Turn], Awaitable[None]]
_STEPS: Mapping[str, _Step] = {"sending": _send, "compressing": _shorten, "tools": _run_tools}
