"""Which targets are left alone for a while because they failed.

A target that fails rests for as long as it asks to, or for a time that grows with each failure in a
row. After that one request tries it; the others go on as if it still rested, until that one has
been answered. What counts as a failure is not decided here.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

__all__ = ["FIRST_REST", "LONGEST_ASKED", "LONGEST_REST", "Cooldowns"]

FIRST_REST, LONGEST_REST = 1.0, 60.0
"""Seconds after the first failure, and after many."""
LONGEST_ASKED = 3_600.0
"""Seconds that a target may ask for."""
_MOST = 2_000


class _Rest:
    """One target that failed: how often in a row, until when it rests, and whether a request is
    trying it."""

    __slots__ = ("failures", "tried", "until")

    def __init__(self) -> None:
        self.failures = 0
        self.until = 0.0
        self.tried = False


class Cooldowns:
    """The targets that failed lately, by whatever names one."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rests: OrderedDict[Hashable, _Rest] = OrderedDict()

    def wait(self, target: Hashable) -> float:
        """Seconds until a request may go to the target; 0 where it may now."""
        rest = self._rests.get(target)
        if rest is None:
            return 0.0
        left = rest.until - self._clock()
        if left > 0:
            return left
        return FIRST_REST if rest.tried else 0.0

    def begin(self, target: Hashable) -> None:
        """A request goes to the target."""
        if rest := self._rests.get(target):
            rest.tried = True

    def succeed(self, target: Hashable) -> None:
        """The target answered."""
        self._rests.pop(target, None)

    def fail(self, target: Hashable, asked: float | None = None) -> None:
        """The target failed, and perhaps asks for a number of seconds."""
        rest = self._rests.setdefault(target, _Rest())
        self._rests.move_to_end(target)
        while len(self._rests) > _MOST:
            self._rests.popitem(last=False)
        rest.tried = False
        rest.failures += 1
        seconds = min(FIRST_REST * 2.0 ** min(rest.failures - 1, 30), LONGEST_REST)
        if asked is not None:
            seconds = min(max(asked, 0.0), LONGEST_ASKED)
        # several requests may fail at once: the longest rest holds
        rest.until = max(rest.until, self._clock() + seconds)

    def leave(self, target: Hashable) -> None:
        """The request ended without an answer, for reasons of the client's."""
        if rest := self._rests.get(target):
            rest.tried = False
