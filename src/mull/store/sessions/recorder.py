"""Keeps a running session on disk: records as they come, and the answer while it comes.

There is no timer here. Events are written a second after the first of them came, when more come;
whoever waits for events asks `due` from time to time, so that the last ones before a silence are
safe too. An answer that is whole within that second is written once, as a record.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from mull.history.log import Record
from mull.neutral.events import Event
from mull.neutral.messages import Origin
from mull.store.sessions.journal import is_journaled
from mull.store.sessions.records import ends_answer
from mull.store.sessions.writing import Writing

__all__ = ["EVERY", "Recorder"]

EVERY = 1.0
"""Seconds of an answer that a crash may cost."""


class Recorder:
    """Writes one session from the records on that it was opened with.

    Every method may raise ConfigError (the disk is full or read-only) or SessionError (somebody
    else wrote the session). What was to be written is then still to be written.
    """

    def __init__(self, session: Writing, now: Callable[[], float] = time.monotonic) -> None:
        self._session = session
        self.position = len(session.records)
        self._now = now
        self._origin: Origin | None = None
        self._waiting: list[Event] = []
        self._since = now()

    def begin(self, origin: Origin | None) -> None:
        """An answer from this origin is to come; one before it that left nothing is over."""
        self._origin = origin
        self._waiting.clear()

    def event(self, event: Event) -> None:
        """Take an event of the answer in; write what waits, if that is due."""
        if is_journaled(event):
            if not self._waiting:
                self._since = self._now()
            self._waiting.append(event)
        if self.due():
            self.flush()

    def due(self) -> bool:
        """Whether events wait for as long as they may."""
        return bool(self._waiting) and self._now() - self._since >= EVERY

    def flush(self) -> None:
        """Write what waits."""
        if self._waiting:
            self._session.journal(self._waiting, self._origin)
            self._waiting.clear()

    def append(self, *records: Record) -> None:
        """Write records; they are on disk when this returns.

        An answer, or the results of tools, stand for all events before them.
        """
        self._session.append(self.position, *records)
        self.position += len(records)
        if any(map(ends_answer, records)):
            self._waiting.clear()
