"""The states of a turn, and what leads from one to the next.

A table and two pure functions: `meaning` says what an answer asks for, `advance` where that leads.
The runner does the waiting; it can only do what the table allows. Every limit is counted here, and
nothing but a new turn sets a count back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from mull.neutral.blocks import Value
from mull.neutral.messages import Message

__all__ = ["FINAL", "TABLE", "Limits", "Progress", "Signal", "State", "advance", "meaning"]

State: TypeAlias = Literal[
    "idle", "sending", "streaming", "tools", "compressing", "healing", "done", "failed"
]
Signal: TypeAlias = Literal[
    "begin",  # the user has spoken
    "full",  # the request must be made shorter first
    "shortened",  # it was, or it cannot be
    "event",  # the first sign of an answer
    "hurried",  # the thought was cut short, and the answer is asked for without it
    "healed",  # it was refused, and a repaired request is on its way
    "called",  # the answer calls tools
    "results",  # they have run
    "silent",  # the model thought and said nothing: ask once more
    "answered",  # the answer is there
    "exhausted",  # one more request would be one too many
    "failed",  # it broke off
    "stopped",  # the user has had enough
]

FINAL: frozenset[State] = frozenset({"done", "failed"})
_ASKING: tuple[State, ...] = ("sending", "streaming", "healing")

TABLE: Mapping[tuple[State, Signal], State] = {
    ("idle", "begin"): "sending",
    ("sending", "full"): "compressing",
    ("compressing", "shortened"): "sending",
    ("sending", "event"): "streaming",
    ("healing", "event"): "streaming",
    ("streaming", "hurried"): "sending",
    ("tools", "results"): "sending",
    ("tools", "exhausted"): "failed",
    **{(state, "healed"): "healing" for state in _ASKING},
    **{(state, "called"): "tools" for state in _ASKING},
    **{(state, "silent"): "sending" for state in _ASKING},
    **{(state, "answered"): "done" for state in _ASKING},
    **{(state, "failed"): "failed" for state in (*_ASKING, "compressing", "tools")},
    **{(state, "stopped"): "done" for state in (*_ASKING, "compressing", "tools")},
}


class Limits(Value, frozen=True):
    """How often a turn may do what could go on for ever."""

    rounds: int = 50
    nudges: int = 1


class Progress(Value, frozen=True):
    """Where a turn stands. `round` counts requests that were answered with tool calls, plus one."""

    state: State = "idle"
    round: int = 0
    nudges: int = 0


def advance(progress: Progress, signal: Signal) -> Progress:
    """Where the signal leads.

    Raises:
        ValueError: there is no such way; the runner is wrong.
    """
    state = TABLE.get((progress.state, signal))
    if state is None:
        raise ValueError(f"a turn that is {progress.state} cannot be {signal}")
    begins = signal in ("begin", "results")
    return Progress(state, progress.round + begins, progress.nudges + (signal == "silent"))


def meaning(answer: Message, progress: Progress, limits: Limits, *, tools: bool) -> Signal:
    """What a whole answer asks the turn to do next."""
    if answer.status in ("interrupted", "error"):
        return "failed"
    if tools and answer.tool_calls and answer.status == "complete":
        return "called"
    if tools and answer.status == "no_answer" and progress.nudges < limits.nudges:
        return "silent"
    return "answered"
