"""Measures how long an answer took, and how much of that was thinking."""

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
_PIECES: frozenset[type] = frozenset({ThinkingDelta, TextDelta, ToolCallDelta})
_ENDS_THOUGHT: frozenset[type] = frozenset({TextDelta, ToolCallDelta, Finished, Failed})


class Stopwatch:
    """Runs from its creation. Thinking lasts from its first chunk until anything else arrives."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began = clock()
        self._thought_since: float | None = None
        self._thought: float | None = None
        self.first_seconds: float | None = None
        """How long the first piece of the answer took; None if there is none yet."""

    def add_all(self, events: Iterable[Event]) -> None:
        """Process events that arrived together."""
        for kind in dict.fromkeys(map(type, events)):  # each kind once, in order
            if self.first_seconds is None and kind in _PIECES:
                self.first_seconds = self.seconds
            if kind in _THOUGHTS:
                if self._thought_since is None:
                    self._thought_since = self._clock()
            elif self._thought_since is not None and kind in _ENDS_THOUGHT:
                self._thought = self.thought_seconds
                self._thought_since = None

    @property
    def seconds(self) -> float:
        """The duration of the answer so far."""
        return round(self._clock() - self._began, 3)

    @property
    def thought_seconds(self) -> float | None:
        """The duration of the thinking so far; None if there was none."""
        if self._thought_since is None:
            return self._thought
        return round((self._thought or 0.0) + self._clock() - self._thought_since, 3)
