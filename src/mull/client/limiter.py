"""How many requests go to one endpoint at once, learnt from what it says about its limits.

All requests with one key to one model share a limiter. When the endpoint says that they are too
many, all of them pause together, and fewer go out afterwards; each answer allows a little more
again. What the headers of its responses say is left of its limits is not exceeded: requests and
tokens that are under way and not yet in such a count are subtracted from it.

A limiter reads no clock and waits for nothing; `Gate` does that for it, on any event loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Self

from msgspec import Struct

from mull.client.clock import SystemClock
from mull.client.rate_limit import rate_limit_of
from mull.client.retry import may_pass, wait_asked
from mull.neutral.rate_limit import RateLimit, RateWindow
from mull.policy.failure import Failure, meaning_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mull.client.access import Access
    from mull.client.clock import Clock
    from mull.neutral.target import Target
    from mull.policy.prepare import Prepared

__all__ = ["LONGEST_ASKED", "Gate", "Limiter", "Ticket", "limiter_of"]

WINDOW = 60.0
"""Seconds after which an account usually has its limits again. A longer reset is a daily limit that
is refilled all the time, or one that the endpoint itself will refuse: it is tried again after this,
with the share that should be there by then."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
LONGEST_ASKED = 3600.0
_KEPT = 256
_CROWDED = frozenset({"rate", "overload"})


class _Window(Struct):
    """What is left of one limit, by our own count, and when to stop believing that."""

    left: float
    until: float
    then: float | None


class Limiter:
    """The state of one key at one model. Every method is told the time, in seconds of any clock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._windows: dict[str, _Window] = {}
        self._paused_until = 0.0
        self._pauses = 0
        self._width = float("inf")
        self._narrowed = 0
        self._heard = 0
        self._admitted = 0
        self._sent: dict[str, float] = {"requests": 0.0, "tokens": 0.0}
        self._output = 0.0
        self.running: int = 0

    @property
    def width(self) -> float:
        """How many requests may be under way at once."""
        return self._width

    def paused(self, now: float) -> float:
        """Seconds until the pause ends."""
        return max(self._paused_until - now, 0.0)

    def wait(self, tokens: int, now: float) -> float | None:
        """Seconds to wait before a request of this size may go out: 0 for none, None until another
        one is answered.
        """
        with self._lock:
            if now < self._paused_until:
                return self._paused_until - now
            if self.running >= self._width:
                return None
            return max((self._lack(name, tokens, now) for name in list(self._windows)), default=0.0)

    def _lack(self, name: str, tokens: int, now: float) -> float:
        window = self._windows[name]
        if now >= window.until:
            if window.then is None:
                del self._windows[name]
                return 0.0
            window.left, window.until = window.then, now + WINDOW
        if window.left >= self._needs(name, tokens):
            return 0.0
        # One that needs more than the whole limit is the endpoint's to refuse.
        is_whole = window.then is not None and window.left >= window.then
        return 0.0 if is_whole and self.running == 0 else window.until - now

    def _needs(self, name: str, tokens: int) -> float:
        match name:
            case "requests":
                return 1
            case "input_tokens":
                return tokens
            case "output_tokens":
                return self._output
            case _:
                return tokens + self._output

    def admit(self, tokens: int) -> tuple[int, dict[str, float]]:
        """Count a request that goes out; returns its number, and all that was sent with it."""
        with self._lock:
            self.running += 1
            self._admitted += 1
            for name, window in self._windows.items():
                window.left -= self._needs(name, tokens)
            self._sent["requests"] += 1
            self._sent["tokens"] += tokens
            return self._admitted, dict(self._sent)

    def leave(self, *, answered: bool) -> None:
        """A request is over."""
        with self._lock:
            self.running -= 1
            if answered:
                self._pauses = 0
                self._width += 1 / max(self._width, 1)

    def heard(self, number: int, sent: Mapping[str, float], limit: RateLimit, now: float) -> None:
        """What a response says is left. Requests that went out after its own may not be in it."""
        with self._lock:
            if number < self._heard:
                return
            self._heard = number
            for name in RateLimit.__struct_fields__:
                window: RateWindow = getattr(limit, name)
                if window.remaining is not None:
                    left = window.remaining - self._sent_after(name, sent)
                    self._windows[name] = _believed(window, left, now)

    def _sent_after(self, name: str, sent: Mapping[str, float]) -> float:
        """How much of a limit those need that went out since then."""
        requests, tokens = (self._sent[one] - sent[one] for one in ("requests", "tokens"))
        match name:
            case "requests":
                return requests
            case "input_tokens":
                return tokens
            case "output_tokens":
                return requests * self._output
            case _:
                return tokens + requests * self._output

    def used(self, output: int) -> None:
        """How many tokens an answer had: others will have about as many."""
        with self._lock:
            self._output += (output - self._output) / (8 if self._output else 1)

    def crowded(self, number: int, asked: float | None, now: float) -> None:
        """The endpoint says that there is too much; it may ask to wait."""
        with self._lock:
            pause = 0.0 if asked is None else asked
            if number > self._narrowed:  # those that were under way with it say nothing new
                if asked is None:
                    pause = min(FIRST_PAUSE * 2 ** min(self._pauses, 10), LONGEST_PAUSE)
                self._narrowed = self._admitted
                self._pauses += 1
                self._width = max(1.0, min(self._width, self.running) / 2)
            self._paused_until = max(self._paused_until, now + pause)


def _believed(window: RateWindow, left: float, now: float) -> _Window:
    reset = WINDOW if window.reset is None else window.reset
    then = None if window.limit is None else float(window.limit)
    if reset > WINDOW and window.limit is not None and window.remaining is not None:
        share = (window.limit - window.remaining) * WINDOW / reset
        then = max(1.0, left + share)
    return _Window(left, now + min(reset, WINDOW), then)


_limiters: OrderedDict[tuple[str, bytes, str], Limiter] = OrderedDict()
_choosing = threading.Lock()


def limiter_of(way: Access, target: Target) -> Limiter:
    """The limiter of a key at a model's endpoint; the same for all who ask in this process."""
    secret = way.key.reveal() if way.key is not None else repr(sorted(way.headers.items()))
    place = way.base_url, sha256(secret.encode()).digest(), target.model
    with _choosing:
        limiter = _limiters.pop(place, None) or Limiter()
        _limiters[place] = limiter
        if len(_limiters) > _KEPT:
            _limiters.popitem(last=False)
        return limiter


class Gate:
    """Lets requests out as fast as their limiters allow. Used on one event loop."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._changed = asyncio.Event()
        self._limiters: dict[str, Limiter] = {}

    @property
    def pause(self) -> float:
        """Seconds for which nothing is sent to any endpoint."""
        now = self._clock.now()
        return min((one.paused(now) for one in self._limiters.values()), default=0.0)

    def used(self, target: Target, output: int) -> None:
        """How many tokens an answer of this target had."""
        if target.name in self._limiters:
            self._limiters[target.name].used(output)

    async def wait(self, prepared: Prepared, way: Access) -> Ticket:
        """Wait until the request may go out; entering what this returns sends it."""
        limiter, tokens = limiter_of(way, prepared.target), prepared.estimate
        self._limiters[prepared.target.name] = limiter
        while (seconds := limiter.wait(tokens, self._clock.now())) != 0.0:
            if seconds is not None:
                await self._clock.sleep(seconds)
                continue
            # Another loop's request may be the one that ends, so do not rely on this event alone.
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._changed.wait()
        return Ticket(limiter, tokens, self._clock, self._changed)


class Ticket:
    """One request that may go out: it is under way while the context lasts."""

    def __init__(self, limiter: Limiter, tokens: int, clock: Clock, changed: asyncio.Event) -> None:
        self._limiter = limiter
        self._tokens = tokens
        self._clock = clock
        self._changed = changed
        self._answered = False
        self._number = 0
        self._sent: dict[str, float] = {}

    async def __aenter__(self) -> Self:
        self._number, self._sent = self._limiter.admit(self._tokens)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._limiter.leave(answered=self._answered)
        self._changed.set()

    def heard(self, status: int, headers: Mapping[str, str]) -> None:
        """The head of the response has arrived."""
        self._answered = status < 400
        limit = rate_limit_of(headers, self._clock.wall())
        if limit is not None:
            self._limiter.heard(self._number, self._sent, limit, self._clock.now())

    def failed(self, failure: Failure) -> None:
        """The request failed; what is told then may be too much for others too."""
        if meaning_of(failure).name in _CROWDED and may_pass(failure):
            asked = wait_asked(failure, self._clock.wall())
            if asked is None or asked <= LONGEST_ASKED:  # nobody waits longer than that
                self._limiter.crowded(self._number, asked, self._clock.now())
