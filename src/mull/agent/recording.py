"""Stores a running session on disk, by the clock of its event loop.

What cannot be written is kept and retried with the next write: a full disk ends neither the answer
nor the session, but the user is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from mull.history.log import Record
from mull.neutral.errors import LocalError
from mull.neutral.events import Event, ToolRan
from mull.neutral.messages import Origin

__all__ = ["FLUSH_SECONDS", "Journal", "TimedRecorder"]

FLUSH_SECONDS = 0.8
"""Seconds of a running answer that a crash may cost."""


if TYPE_CHECKING:

    class Journal(Protocol):
        """Where records go, and the events of an answer while it arrives."""

        def begin(self, origin: Origin | None) -> None: ...
        def event(self, event: Event) -> None: ...
        def append(self, *records: Record) -> None: ...
        def flush(self) -> None: ...


class TimedRecorder:
    """Writes what has accumulated, at most this many seconds after the first of it arrived."""

    def __init__(
        self,
        journal: Journal,
        warn: Callable[[str], None],
        seconds: float = FLUSH_SECONDS,
    ) -> None:
        self._journal = journal
        self._warn = warn
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None
        self._unsaved: list[Record] = []
        self._warned = False

    def begin(self, origin: Origin) -> None:
        """An answer from this origin is about to arrive."""
        self._journal.begin(origin)

    def events(self, events: Sequence[Event]) -> None:
        """Process events of the answer; they are stored within the second."""
        self._try(lambda: self._note(events))  # they may only be in memory: not a success
        if any(isinstance(event, ToolRan) for event in events):
            self._flush()  # the effects of a tool cannot be repeated
        elif self._timer is None and events:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._seconds, self._flush)

    def _note(self, events: Sequence[Event]) -> None:
        for event in events:
            self._journal.event(event)

    def append(self, record: Record) -> None:
        """Write a record; unless a warning was given, it is stored when this returns."""
        self._stop_timer()
        self._unsaved.append(record)
        if self._try(lambda: self._journal.append(*self._unsaved)):
            self._unsaved.clear()
            self._warned = False

    def close(self) -> None:
        """Write what arrived of an unfinished answer. Retry what could not be written, and report
        what is lost.
        """
        self._flush()
        if not self._unsaved:
            return
        try:
            self._journal.append(*self._unsaved)
        except LocalError as error:
            count = len(self._unsaved)
            lost = "the last message" if count == 1 else f"the last {count:,} messages"
            self._warn(f"{lost} of the session could not be saved: {error}")
        else:
            self._warn("everything is saved now")
        self._unsaved.clear()

    def _flush(self) -> None:
        self._stop_timer()
        if self._try(self._journal.flush):
            self._warned = False

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _try(self, write: Callable[[], None]) -> bool:
        try:
            write()
        except LocalError as error:
            if not self._warned:
                self._warn(
                    f"not saved: {error}\nThe session continues, and mull tries again to save it"
                )
            self._warned = True
            return False
        return True
