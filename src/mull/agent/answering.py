"""An answer while it arrives: assembled, timed, published, and stored.

Its last events are held back until it is stored. If the user may end thinking early, the answer
ends with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mull.agent.watch import Stopwatch
from mull.history.log import Entry
from mull.neutral.assemble import Assembler
from mull.neutral.errors import LocalError
from mull.neutral.events import Event, Failed, Finished, Healed, Hurried, Started
from mull.neutral.messages import FAILED, Message
from mull.neutral.request import Note, WireRequest
from mull.policy.cost import cost_of
from mull.policy.prepare import Prepared
from mull.policy.thinking.plan import OUTCOME, plan_least

if TYPE_CHECKING:
    from mull.agent.debug import Spotter
    from mull.agent.run import Situation, Turn
    from mull.agent.turn import Cause

__all__ = ["Answer"]


class Answer:
    """The answer to one request of a turn, whichever request that finally is."""

    def __init__(self, turn: Turn, prepared: Prepared) -> None:
        self._turn = turn
        self._watch = Stopwatch(time.monotonic)
        self._spotter = _spotter(prepared, turn) if turn.debug else None
        self._kept: Message | None = None
        self._held: list[Event] = []
        self._begin(prepared)

    def _begin(self, asked: Prepared) -> None:
        self.asked = self._turn.prepared = asked
        self._folding = Assembler(asked.target.origin)
        if self._turn.recorder is not None:
            self._turn.recorder.begin(asked.target.origin)

    def watched(self, situation: Situation) -> AbstractAsyncContextManager[None]:
        """The time in which the answer arrives; ends early if its thinking is stopped.

        Raises:
            ThoughtStopped: the thinking was stopped, and the stream with it.
        """
        if self._spotter is not None:
            self._spotter.asked()
        seconds = situation.snapshot["reasoning.maxSeconds"]
        if seconds is None and not situation.interactive:
            self._turn.hurry = None
            return nullcontext()
        from mull.agent.hurry import Hurry  # most answers are not watched

        refuse = self._refusal(situation)
        hurry = self._turn.hurry = Hurry(seconds, situation.end_thought, refuse, self._tell)
        return hurry.watch()

    def sending(self, prepared: Prepared, wire: WireRequest) -> None:
        """A request is sent: this one, or after a rejection another, possibly in another
        dialect.
        """
        self._turn.heard = time.monotonic()
        self._turn.note(*wire.notes)
        if prepared is not self.asked:
            gone = [note for note in self.asked.notes if note not in prepared.notes]
            self._turn.notes[:] = [note for note in self._turn.notes if note not in gone]
            self._begin(prepared)
            self._turn.note(*(note for note in prepared.notes if note.kind == OUTCOME))

    @property
    def arriving(self) -> Message | None:
        """The answer as far as it has arrived; None when it is in the log, or not there yet."""
        if self._kept is not None:
            return None
        message = self._folding.message()
        return message if message.blocks else None

    def take(self, events: Sequence[Event]) -> None:
        """Process and publish events, up to the first that must be held back."""
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
        if isinstance(event, Started):
            turn.started = event
        if isinstance(event, Healed):
            if not turn.allows("healed"):
                raise LocalError("the endpoint rejects a request that was already fixed: stopped")
            self._folding = Assembler(self.asked.target.origin)
            turn.note(Note("healed", f"{event.change} ({event.reason})", warning=True))
            turn.signal("healed")
        elif not isinstance(event, Finished | Failed) and turn.allows("event"):
            turn.signal("event")

    def _tell(self, event: Hurried) -> None:
        """Publish what is done about the thinking."""
        if event.how != "asked":  # another event reports the outcome
            self._turn.note(Note(event.about, event.text))
        if self._held:
            self._held.append(event)
        else:
            self._turn.say(event)

    def _refusal(self, situation: Situation) -> Callable[[Cause], str | None]:
        """Why the thinking of this answer is not stopped for a cause."""
        from mull.agent.hurry_plan import reason_to_go_on

        turn, snapshot = self._turn, situation.snapshot

        def refuse(cause: Cause) -> str | None:
            asked, limit = self.asked, situation.options.max_tokens
            least = plan_least(asked.target, snapshot, max_tokens=limit, used=asked.estimate)
            why = reason_to_go_on(cause, turn.progress, turn.limits, asked, least)
            told = cause == "overdue" and any(note.text == why for note in turn.notes)
            return "" if told else why

        return refuse

    def keep(self) -> Message:
        """Put the answer, complete or not, into the log; once."""
        if self._kept is None:
            message = self._folding.message()
            failed = next((event for event in self._held if isinstance(event, Failed)), None)
            self._turn.failed = failed
            if message.stop_reason is None and failed is not None:
                message = replace(message, stop_reason=FAILED)
            self._kept = message
            if message.blocks or message.status != "interrupted":
                took = self._watch.seconds, self._watch.thought_seconds
                prefix = self.asked.prefix if message.thinking else None
                counted = self.asked.characters
                self._turn.add(Entry(message, time.time(), *took, prefix, counted=counted))
                self._turn.waits.append(self._watch.first_seconds)
                self._turn.costs.append(cost_of(message.usage, self.asked.target.facts.cost))
        return self._kept

    def end(self) -> None:
        """Publish the events held back: the answer is stored."""
        if self._spotter is not None:
            self._spotter.ended(self.asked)
        if self._held:
            self._turn.hub.publish(self._held)


def _spotter(prepared: Prepared, turn: Turn) -> Spotter:
    from mull.agent.debug import Spotter

    return Spotter(prepared, turn.say)
