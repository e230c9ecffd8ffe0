"""How long an answer took, and how much of that was thinking."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mull.neutral.events import (
    Event,
    Failed,
    Finished,
    TextDelta,
    ThinkingCarrier,
    ThinkingDelta,
    ToolCallDelta,
)

__all__ = ["Stopwatch"]

_THOUGHTS: frozenset[type] = frozenset({ThinkingDelta, ThinkingCarrier})
_ENDS_THOUGHT: frozenset[type] = frozenset({TextDelta, ToolCallDelta, Finished, Failed})


class Stopwatch:
    """Runs from its making. A thought lasts from its first piece to whatever else comes next."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began = clock()
        self._thought_since: float | None = None
        self._thought: float | None = None

    def add_all(self, events: Iterable[Event]) -> None:
        """Take events in that came together."""
        for kind in dict.fromkeys(map(type, events)):  # each kind once, in the order they came
            if kind in _THOUGHTS:
                if self._thought_since is None:
                    self._thought_since = self._clock()
            elif self._thought_since is not None and kind in _ENDS_THOUGHT:
                self._thought = self.thought_seconds
                self._thought_since = None

    @property
    def seconds(self) -> float:
        """How long the answer has taken so far."""
        return round(self._clock() - self._began, 3)

    @property
    def thought_seconds(self) -> float | None:
        """How long the model has thought so far; None if it did not."""
        if self._thought_since is None:
            return self._thought
        return round((self._thought or 0.0) + self._clock() - self._thought_since, 3)
