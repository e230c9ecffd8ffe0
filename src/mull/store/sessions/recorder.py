"""Keeps a running session on disk: records as they come, and the answer while it comes.

There is no timer here. Events are written about once a second when more of them come; whoever
waits for events asks `due` from time to time, so that the last ones before a silence are safe too.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from mull.history.log import Record
from mull.neutral.events import Event
from mull.neutral.messages import Origin
from mull.store.sessions.journal import is_journaled
from mull.store.sessions.records import ends_answer
from mull.store.sessions.values import SessionStore

__all__ = ["EVERY", "Recorder"]

EVERY = 1.0
"""Seconds of an answer that a crash may cost."""


class Recorder:
    """Writes one session from `position` on. Whoever makes it holds the session.

    Every method may raise ConfigError (the disk is full or read-only) or SessionError (somebody
    else wrote the session). What was to be written is then still to be written.
    """

    def __init__(
        self,
        store: SessionStore,
        session: str,
        position: int,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._session = session
        self.position = position
        self._now = now
        self._origin: Origin | None = None
        self._waiting: list[Event] = []
        self._written = -EVERY

    def begin(self, origin: Origin | None) -> None:
        """An answer from this origin is to come; one before it that left nothing is over."""
        self._origin = origin
        self._waiting.clear()

    def event(self, event: Event) -> None:
        """Take an event of the answer in; write what waits, if that is due."""
        if is_journaled(event):
            self._waiting.append(event)
        if self.due():
            self.flush()

    def due(self) -> bool:
        """Whether events wait for as long as they may."""
        return bool(self._waiting) and self._now() - self._written >= EVERY

    def flush(self) -> None:
        """Write what waits."""
        if self._waiting:
            self._store.journal(self._session, self._waiting, self._origin)
            self._waiting.clear()
            self._written = self._now()

    def append(self, *records: Record) -> None:
        """Write records; they are on disk when this returns.

        An answer, or the results of tools, stand for all events before them.
        """
        self._store.append(self._session, self.position, *records)
        self.position += len(records)
        if any(map(ends_answer, records)):
            self._waiting.clear()
