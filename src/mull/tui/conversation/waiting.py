"""What a turn is waiting for, in words: a retry countdown, or a silent endpoint."""

from __future__ import annotations

from math import ceil

from mull.neutral.events import Event, Retrying, StateChanged

__all__ = ["SILENT_FROM", "Wait"]

SILENT_FROM = 10
"""Seconds without data after which the user is told."""


class Wait:
    """Follows the events of a turn to know what it is waiting for."""

    def __init__(self) -> None:
        self._retry: Retrying | None = None
        self._until = 0.0
        self.silence = 0.0
        """Seconds since the endpoint last sent anything."""

    def event(self, event: Event, now: float) -> None:
        """Something happened; any event ends the wait for a retry."""
        self.silence = 0.0
        if isinstance(event, Retrying):
            self._retry, self._until = event, now + event.seconds
        elif not isinstance(event, StateChanged) or event.state not in ("sending", "healing"):
            self._retry = None

    @property
    def is_silent(self) -> bool:
        """Whether the endpoint has been silent long enough to tell the user."""
        return self.silence >= SILENT_FROM

    def text(self, work: str, now: float) -> str:
        """`Waiting for the model 12 s · no data for 11 s · Esc interrupts`."""
        if self._retry is not None:
            return self._retrying(self._retry, now)
        quiet = f" · no data for {int(self.silence)} s" if self.is_silent else ""
        return f"{work}{quiet} · Esc interrupts"

    def _retrying(self, retry: Retrying, now: float) -> str:
        of = f"/{retry.attempts}" if retry.attempts else ""
        left = ceil(self._until - now)
        when = f"Retrying in {left} s" if left > 0 else "Retrying now"
        return f"{when} (attempt {retry.attempt}{of}) · Esc cancels"
