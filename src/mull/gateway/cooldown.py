"""Cool-downs: targets that failed recently receive no requests for a while.

The cool-down of a failed target lasts as long as the target asks for; otherwise it grows with each
consecutive failure. Afterwards a single request probes the target, and all others treat it as still
cooling down until that request succeeds or fails. The caller decides what counts as a failure.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

__all__ = ["FIRST_COOLDOWN", "LONGEST_COOLDOWN", "LONGEST_REQUESTED", "Cooldowns"]

FIRST_COOLDOWN, LONGEST_COOLDOWN = 1.0, 60.0
"""Seconds of cool-down after the first failure, and at most."""
LONGEST_REQUESTED = 3_600.0
"""The longest cool-down in seconds that a target may ask for."""
_MOST = 2_000


class _Cooldown:
    """The cool-down of one target: how often it failed in a row, when the cool-down ends, and
    whether a request is probing the target."""

    __slots__ = ("failures", "probing", "until")

    def __init__(self) -> None:
        self.failures = 0
        self.until = 0.0
        self.probing = False


class Cooldowns:
    """The targets that failed recently. Any hashable value may identify a target."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._cooldowns: OrderedDict[Hashable, _Cooldown] = OrderedDict()

    def wait(self, target: Hashable) -> float:
        """Seconds until the target may receive a request; 0 if it may now."""
        cooldown = self._cooldowns.get(target)
        if cooldown is None:
            return 0.0
        left = cooldown.until - self._clock()
        if left > 0:
            return left
        return FIRST_COOLDOWN if cooldown.probing else 0.0

    def begin(self, target: Hashable) -> None:
        """Record that a request is sent to the target."""
        if cooldown := self._cooldowns.get(target):
            cooldown.probing = True

    def succeed(self, target: Hashable) -> None:
        """Record that the target responded."""
        self._cooldowns.pop(target, None)

    def fail(self, target: Hashable, asked: float | None = None) -> None:
        """Record that the target failed; `asked` is the cool-down it asked for, in seconds."""
        cooldown = self._cooldowns.setdefault(target, _Cooldown())
        self._cooldowns.move_to_end(target)
        while len(self._cooldowns) > _MOST:
            self._cooldowns.popitem(last=False)
        cooldown.probing = False
        cooldown.failures += 1
        seconds = min(FIRST_COOLDOWN * 2.0 ** min(cooldown.failures - 1, 30), LONGEST_COOLDOWN)
        if asked is not None:
            seconds = min(max(asked, 0.0), LONGEST_REQUESTED)
        # several requests may fail at the same time: the longest cool-down applies
        cooldown.until = max(cooldown.until, self._clock() + seconds)

    def leave(self, target: Hashable) -> None:
        """Record that the client cancelled the request, which says nothing about the target."""
        if cooldown := self._cooldowns.get(target):
            cooldown.probing = False
