"""Notifies observers, such as usage accounting, metrics and the watch page, when a request starts,
produces events and ends."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from mull.neutral.blocks import Value
from mull.neutral.errors import MullError, RefusedError
from mull.neutral.events import Event, Failed, Finished, UsageReported
from mull.neutral.usage import Usage

if TYPE_CHECKING:
    from mull.gateway.job import Job

__all__ = ["Ending", "Observed", "Observer", "Outcome"]

Ending: TypeAlias = Literal["complete", "refused", "broken", "left"]
"""How a request ended: with a complete answer; rejected by the upstream before its first event;
broken off by the upstream; or abandoned by the client."""


class Outcome(Value, frozen=True):
    """How a request ended. Times are from `time.monotonic`; `first` is the time of the first event,
    None if the upstream sent none."""

    ending: Ending
    first: float | None
    ended: float
    usage: Usage | None = None
    status: int = 200
    error: str = ""


class Observer(Protocol):
    """Is notified of each request sent upstream. Its methods must not raise or block: they are
    called between the chunks of an answer."""

    def began(self, job: Job) -> None:
        """The request is about to be sent."""

    def emitted(self, job: Job, events: Sequence[Event]) -> None:
        """These events are being sent to the client."""

    def ended(self, job: Job, outcome: Outcome) -> None:
        """The request has ended. Called exactly once for each request that began."""


class Observed:
    """Notifies observers of one request: `with Observed(…) as observed`."""

    def __init__(self, observers: Sequence[Observer], job: Job) -> None:
        self._observers = observers
        self._job = job
        self._first: float | None = None
        self._usage: Usage | None = None
        self._last: Event | None = None

    def __enter__(self) -> Observed:
        for observer in self._observers:
            observer.began(self._job)
        return self

    def emitted(self, events: Sequence[Event]) -> None:
        """Notify the observers of events that are being sent to the client."""
        if self._first is None:
            self._first = time.monotonic()
        for event in events:
            if isinstance(event, UsageReported):
                self._usage = event.usage
        self._last = events[-1]
        for observer in self._observers:
            observer.emitted(self._job, events)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        outcome = self._outcome(error)
        for observer in self._observers:
            observer.ended(self._job, outcome)

    def _outcome(self, error: BaseException | None) -> Outcome:
        ending: Ending = "left"
        status, text = 200, ""
        if isinstance(self._last, Finished):
            ending = "complete"
        elif isinstance(self._last, Failed):
            ending, text = "broken", self._last.text
        elif error is None:
            ending = "broken"
        elif isinstance(error, MullError):
            ending, text = "broken" if self._first is not None else "refused", str(error)
            status = error.status if isinstance(error, RefusedError) else 502
        return Outcome(ending, self._first, time.monotonic(), self._usage, status, text)
