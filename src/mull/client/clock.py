"""How long to wait for an endpoint, as arithmetic on times that the caller reads.

Two limits. The idle limit is for silence: it begins anew with every byte that comes, whatever the
byte means, so that comments and pings count and a long thought is no reason to give up. The total
limit is for the whole exchange and off unless someone sets it. How much silence is normal depends
on what the model shows of its thinking; the numbers stand here and nowhere else.
"""

from __future__ import annotations

import asyncio
import functools
import math
import time
from typing import TYPE_CHECKING, Literal, Protocol
from urllib.parse import urlsplit

from mull.client.proxy import is_loopback
from mull.dialects.traits import TRAITS
from mull.neutral.blocks import Value
from mull.neutral.request import Request
from mull.neutral.target import Target

__all__ = [
    "IDLE",
    "IDLE_OUT_OF_SIGHT",
    "IDLE_SPARSE",
    "Clock",
    "Patience",
    "SystemClock",
    "Verdict",
    "idle_limit",
    "say_seconds",
    "upload_seconds",
]

IDLE = 120.0
"""An endpoint that streams what it thinks, or pings while it does."""
IDLE_SPARSE = 300.0
"""One that thinks for minutes between the pieces it shows: summaries, or nothing but the answer."""
IDLE_OUT_OF_SIGHT = 600.0
"""One that says nothing until it is done; official SDKs wait as long. Also a server on this
machine: it may read a long prompt for minutes, and if it dies the socket tells at once."""

_UPLOAD_BYTES_PER_SECOND = 64 * 1024


def idle_limit(request: Request, target: Target) -> float:
    """How long this target may be silent over this request before it is given up."""
    if not request.stream or _is_near(target.endpoint or ""):
        return IDLE_OUT_OF_SIGHT
    plan = request.thinking
    if plan.state == "off" or not target.facts.reasoning:
        return IDLE
    match TRAITS[target.dialect].silence:
        case "summary":
            return IDLE_SPARSE if plan.summary and plan.state != "absent" else IDLE_OUT_OF_SIGHT
        case "asked":
            return IDLE_OUT_OF_SIGHT if plan.state == "absent" else IDLE_SPARSE
        case "switch":
            # This switch comes from an API that never shows what is thought.
            return IDLE_SPARSE if plan.writer in ("openai-effort", "usual", "none") else IDLE
        case "thoughts":
            return IDLE_SPARSE
        case "pings":
            return IDLE


@functools.lru_cache(maxsize=256)
def _is_near(endpoint: str) -> bool:
    try:
        return is_loopback(urlsplit(endpoint).hostname or "")
    except ValueError:
        return False


def upload_seconds(size: int) -> float:
    """How long a body of this size may take to go out before its silence counts."""
    return float(size // _UPLOAD_BYTES_PER_SECOND)


def say_seconds(seconds: float) -> str:
    """`0.5 s`, `120 s`, `6 min`, `6 min 20 s`, `3 h 5 min`: a span for people."""
    if seconds < 10:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    whole = round(seconds)
    if whole <= 120:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


class Verdict(Value, frozen=True):
    """The time is up: which limit it was, and how long it took."""

    limit: Literal["idle", "total", "closing"]
    seconds: float


class Patience:
    """The two limits over one answer, and the moment by which one that is closing has to end. It
    reads no clock: every step is told what time it is."""

    __slots__ = ("_began", "_idle", "_total", "ends", "since")

    def __init__(self, idle: float | None, total: float | None, now: float) -> None:
        self._idle = math.inf if idle is None else idle
        self._total = math.inf if total is None else total
        self._began = now
        self.since = math.inf
        """When the wait began that is under way; infinity while nobody waits. Time that the
        reader takes for itself between two waits is not the endpoint's silence."""
        self.ends = math.inf
        """When the rest of an answer that is closing must have come, whatever comes."""

    def due(self) -> float:
        """The earliest time at which one of the limits can be reached."""
        return min(self.since + self._idle, self._began + self._total, self.ends)

    def judge(self, now: float) -> Verdict | None:
        """The limit that was reached, if one was; silence only while somebody waits."""
        if now >= self.ends:
            return Verdict("closing", now - self._began)
        if now >= self.since + self._idle:
            return Verdict("idle", now - self.since)
        if now >= self._began + self._total:
            return Verdict("total", now - self._began)
        return None


if TYPE_CHECKING:

    class Clock(Protocol):
        """Time and chance, as an exchange needs them."""

        def now(self) -> float:
            """Seconds that only go forward."""

        def wall(self) -> float:
            """Seconds since 1970, for dates that a server names."""

        def rand(self) -> float:
            """A number from 0 to 1."""

        async def sleep(self, seconds: float) -> None:
            """Wait."""


class SystemClock:
    """The real thing."""

    def now(self) -> float:
        """Seconds that only go forward."""
        return time.monotonic()

    def wall(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def rand(self) -> float:
        """A number from 0 to 1."""
        from random import random  # only retries need it

        return random()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)
