"""Whether a server that ended is started again, and when: arithmetic on times, no clock."""

from __future__ import annotations

__all__ = ["Restarts"]

PAUSES = (0.25, 1.0, 4.0)
"""Seconds before each start in a row; there is none after the last."""
STEADY = 60.0
"""After so many seconds a server counts as running well, and its starts are forgotten."""


class Restarts:
    """The starts of one server since it last ran well."""

    def __init__(self) -> None:
        self._made = 0

    def next_pause(self, ran: float) -> float | None:
        """Seconds to wait when it ended after `ran` seconds; None: leave it."""
        if ran >= STEADY:
            self._made = 0
        if self._made == len(PAUSES):
            return None
        self._made += 1
        return PAUSES[self._made - 1]
