"""The states of a turn, and the transitions between them.

A table and pure functions: `meaning` says what an answer asks for, `allows` whether there is a
transition and its limit is not reached, `advance` where it leads. The runner does the waiting; it
can only do what is allowed here. Every transition back to `sending` is counted, so a turn sends at
most `Limits.requests` requests, whatever the other side does. A count for one request or one round
is reset by the next, and these are counted themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from mull.neutral.blocks import OpaqueBlock, Value
from mull.neutral.messages import Message

__all__ = [
    "FINAL",
    "TABLE",
    "Cause",
    "Limits",
    "Progress",
    "Signal",
    "State",
    "ThoughtStopped",
    "advance",
    "allows",
    "has_broken",
    "meaning",
]

State: TypeAlias = Literal[
    "idle", "sending", "streaming", "tools", "compressing", "healing", "done", "failed"
]
Signal: TypeAlias = Literal[
    "begin",  # the user has sent a message
    "full",  # the request must be shortened first
    "overflow",  # it was rejected for its length, and must be shortened
    "shortened",  # it was, or it cannot be
    "event",  # the first event of an answer
    "hurried",  # the user stopped the thinking, and the answer is requested
    "overdue",  # the thinking reached its time limit, and the answer is requested
    "healed",  # it was rejected, and a fixed request is being sent
    "called",  # the answer calls tools
    "results",  # they have run
    "silent",  # the model thought but did not answer: ask again
    "misfit",  # the answer does not match its schema: ask again
    "answered",  # the answer is complete
    "exhausted",  # the limit of requests is reached
    "failed",  # it broke off
    "stopped",  # the user interrupted it
]

Cause: TypeAlias = Literal["hurried", "overdue"]
"""Why thinking is to end, as the signals call it: on request, or at its time limit."""

FINAL: frozenset[State] = frozenset({"done", "failed"})
_ASKING: tuple[State, ...] = ("sending", "streaming", "healing")

TABLE: Mapping[tuple[State, Signal], State] = {
    ("idle", "begin"): "sending",
    ("sending", "full"): "compressing",
    ("compressing", "shortened"): "sending",
    ("sending", "event"): "streaming",
    ("healing", "event"): "streaming",
    ("streaming", "hurried"): "sending",
    ("streaming", "overdue"): "sending",
    ("tools", "results"): "sending",
    ("tools", "exhausted"): "failed",
    **{(state, "overflow"): "compressing" for state in _ASKING},
    **{(state, "healed"): "healing" for state in _ASKING},
    **{(state, "called"): "tools" for state in _ASKING},
    **{(state, "silent"): "sending" for state in _ASKING},
    **{(state, "misfit"): "sending" for state in _ASKING},
    **{(state, "answered"): "done" for state in _ASKING},
    **{(state, "failed"): "failed" for state in (*_ASKING, "compressing", "tools")},
    **{(state, "stopped"): "done" for state in (*_ASKING, "compressing", "tools")},
}


class ThoughtStopped(Exception):
    """The answer was stopped while the model was thinking."""

    def __init__(self, cause: Cause) -> None:
        self.cause = cause


class Limits(Value, frozen=True):
    """How often a turn may repeat what could otherwise go on forever."""

    rounds: int = 50
    """The most rounds of tools in a turn."""
    nudges: int = 1
    """How often per turn a model that did not answer may be asked again."""
    corrections: int = 1
    """How often per turn an answer that does not match its schema may be asked for again."""
    overdue: int = 1
    """How often per turn thinking may be stopped at its time limit."""
    hurries: int = 1
    """How often per round thinking may be stopped, for whatever reason."""
    shortenings: int = 2
    """How often one request may be shortened before it is sent: compressed or condensed."""
    overflows: int = 1
    """How often one request may be shortened after it was rejected for its length."""
    heals: int = 1
    """How often one request may be fixed after a rejection."""

    @property
    def requests(self) -> int:
        """The maximum requests of one turn, without the client's own retries and without those
        rejected for their length.
        """
        return self.rounds * (1 + self.hurries) + self.nudges + self.corrections


class Progress(Value, frozen=True):
    """The state of a turn, and how often it has done what `Limits` limits."""

    state: State = "idle"
    """What the turn is doing."""
    round: int = 0
    """The requests answered with tool calls, plus one; 0 before the turn begins."""
    nudges: int = 0
    """In this turn, how often the model was asked again because it did not answer."""
    corrections: int = 0
    """In this turn, how often an answer was asked for again because it did not match its schema."""
    overdue: int = 0
    """In this turn, how often thinking reached its time limit."""
    hurries: int = 0
    """In this round, how often thinking was stopped."""
    shortenings: int = 0
    """For this request, how often it was shortened before it was sent."""
    overflows: int = 0
    """For this request, how often it was rejected for its length."""
    heals: int = 0
    """For this request, how often it was fixed after a rejection."""


_COUNTED: Mapping[Signal, tuple[tuple[str, str], ...]] = {
    "results": (("round", "rounds"),),
    "silent": (("nudges", "nudges"),),
    "misfit": (("corrections", "corrections"),),
    "hurried": (("hurries", "hurries"),),
    "overdue": (("overdue", "overdue"), ("hurries", "hurries")),
    "full": (("shortenings", "shortenings"),),
    "overflow": (("overflows", "overflows"),),
    "healed": (("heals", "heals"),),
}
"""The counts of a turn that close a transition, each with its limit."""
_ASKS: frozenset[Signal] = frozenset({"begin", "results", "hurried", "overdue", "silent", "misfit"})
"""The signals that lead to another request."""


def allows(progress: Progress, signal: Signal, limits: Limits) -> bool:
    """Whether the table has this transition, and no limit closes it."""
    if (progress.state, signal) not in TABLE:
        return False
    return all(
        getattr(progress, name) < getattr(limits, most) for name, most in _COUNTED.get(signal, ())
    )


def advance(progress: Progress, signal: Signal, limits: Limits) -> Progress:
    """Where the signal leads.

    Raises:
        ValueError: there is no such transition, or its limit is reached; the runner is wrong.
    """
    if not allows(progress, signal, limits):
        raise ValueError(f"a turn that is {progress.state} cannot be {signal}")
    asks, round_begins = signal in _ASKS, signal in ("begin", "results")
    return Progress(
        state=TABLE[progress.state, signal],
        round=progress.round + round_begins,
        nudges=progress.nudges + (signal == "silent"),
        corrections=progress.corrections + (signal == "misfit"),
        overdue=progress.overdue + (signal == "overdue"),
        hurries=0 if round_begins else progress.hurries + (signal in ("hurried", "overdue")),
        shortenings=0 if asks else progress.shortenings + (signal == "full"),
        overflows=0 if asks else progress.overflows + (signal == "overflow"),
        heals=0 if asks else progress.heals + (signal == "healed"),
    )


def meaning(answer: Message, progress: Progress, limits: Limits, *, tools: bool) -> Signal:
    """What a complete answer asks the turn to do next."""
    if answer.status in ("interrupted", "error"):
        return "failed"
    if tools and answer.tool_calls and answer.status == "complete":
        return "called"
    lost = answer.status == "no_answer" or has_broken(answer)
    if tools and lost and allows(progress, "silent", limits):
        return "silent"
    return "answered"


def has_broken(answer: Message) -> bool:
    """Whether a part of the answer could not be used, such as a call without a name."""
    return any(isinstance(block, OpaqueBlock) and block.broken for block in answer.blocks)
