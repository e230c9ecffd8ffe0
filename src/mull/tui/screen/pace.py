"""How fast the line to the terminal is, and how much may be sent over it.

After a drawing the terminal is asked where its cursor is: the answer says that all before it has
arrived. Until then no other drawing is sent, so that on a slow line little waits in front of what
matters next, and a key is answered soon. On a fast line only now and then a drawing asks. A
terminal that never answers is drawn for as if the line were fast.

The time of one answer is no measure: a few bytes arrive soon on any line, and late on one with a
long way or at a busy terminal. But what has arrived in that time is the least that the line can
carry, so the most of the last few answers is taken for its rate.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable

__all__ = ["QUERY", "Pace"]

QUERY = "\x1b[6n"
_SLOW = 0.15
"""Seconds for an answer of a terminal that never gave one."""
_REMEMBERED = 8
"""Answers."""
_FAST = 16_000
"""Bytes a second, from which on a line is fast."""
_LOST = 10.0
"""Seconds after which an answer is taken for lost."""
_SELDOM = 4000
"""Bytes after which a fast line is asked again."""
_AT_A_TIME = 0.2
"""Seconds that one drawing should take on a slow line."""
_LEAST, _MOST = 200, 64 << 10
"""Bytes of finished lines in one drawing."""


class Pace:
    """One terminal's line."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._asked: float | None = None
        self._unasked = 0  # bytes since it was asked last
        self._asked_about = 0
        self._answers = False
        self._rates: deque[float] = deque(maxlen=_REMEMBERED)

    @property
    def is_waiting(self) -> bool:
        """Whether what was sent is still on its way, as far as that is known."""
        if self._asked is None:
            return False
        if self._clock() - self._asked > _LOST:
            self._asked = None
        return self._asked is not None and self._answers

    @property
    def is_asked(self) -> bool:
        """Whether an answer may still come; one that never answered is not waited for long."""
        soon = self._asked is not None and self._clock() - self._asked < _SLOW
        return soon or (self._asked is not None and self._answers)

    @property
    def most(self) -> int:
        """Bytes that may be sent now."""
        rate = max(self._rates, default=math.inf)
        return int(max(_LEAST, min(_MOST, rate * _AT_A_TIME)))

    def sent(self, size: int) -> bool:
        """So many bytes were sent; whether the terminal is to be asked for an answer now."""
        self._unasked += size
        wants = max(self._rates, default=0) < _FAST or self._unasked >= _SELDOM
        if self._asked is not None or not wants:
            return False
        self._asked, self._asked_about, self._unasked = self._clock(), self._unasked, 0
        return True

    def answered(self) -> None:
        """The terminal has answered."""
        self._answers = True
        if self._asked is not None:
            self._rates.append(self._asked_about / max(self._clock() - self._asked, 1e-6))
            self._asked = None

    def forget(self) -> None:
        """Somebody else has the terminal, and its answers."""
        self._asked = None
