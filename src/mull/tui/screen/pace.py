"""Measures how fast the connection to the terminal is, and limits how much is sent.

After a redraw mull asks the terminal for its cursor position: the reply shows that everything
before it has arrived. Until then no other redraw is sent, so that on a slow connection the queue
stays short and keys are answered soon. On a fast connection only an occasional redraw asks. A
terminal that never replies is treated as fast.

The time of a single reply says little: a few bytes arrive soon on any connection, and late on one
with high latency or at a busy terminal. But what has arrived by then is the least that the
connection can carry, so the highest of the last few replies is taken as its rate.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable

__all__ = ["QUERY", "Pace"]

QUERY = "\x1b[6n"
_SLOW = 0.15
"""Seconds to wait for a reply from a terminal that has never sent one."""
_REMEMBERED = 8
"""Replies."""
_FAST = 16_000
"""Bytes per second from which a connection counts as fast."""
_LOST = 10.0
"""Seconds after which a reply counts as lost."""
_SELDOM = 4000
"""Bytes after which a fast connection is measured again."""
_AT_A_TIME = 0.2
"""Seconds that one redraw should take on a slow connection."""
_LEAST, _MOST = 200, 64 << 10
"""Bytes of finished lines in one redraw."""


class Pace:
    """The connection to one terminal."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._asked: float | None = None
        self._unasked = 0  # bytes since the last query
        self._asked_about = 0
        self._answers = False
        self._rates: deque[float] = deque(maxlen=_REMEMBERED)

    @property
    def is_waiting(self) -> bool:
        """Whether sent output is still on its way, as far as is known."""
        if self._asked is None:
            return False
        if self._clock() - self._asked > _LOST:
            self._asked = None
        return self._asked is not None and self._answers

    @property
    def is_asked(self) -> bool:
        """Whether a reply may still arrive; a terminal that never replied is not awaited for
        long.
        """
        soon = self._asked is not None and self._clock() - self._asked < _SLOW
        return soon or (self._asked is not None and self._answers)

    @property
    def most(self) -> int:
        """Bytes that may be sent now."""
        rate = max(self._rates, default=math.inf)
        return int(max(_LEAST, min(_MOST, rate * _AT_A_TIME)))

    def sent(self, size: int) -> bool:
        """Record the bytes sent; returns whether to ask the terminal for a reply now."""
        self._unasked += size
        wants = max(self._rates, default=0) < _FAST or self._unasked >= _SELDOM
        if self._asked is not None or not wants:
            return False
        self._asked, self._asked_about, self._unasked = self._clock(), self._unasked, 0
        return True

    def answered(self) -> None:
        """The terminal has replied."""
        self._answers = True
        if self._asked is not None:
            self._rates.append(self._asked_about / max(self._clock() - self._asked, 1e-6))
            self._asked = None

    def forget(self) -> None:
        """Another program has the terminal, and gets its replies."""
        self._asked = None
