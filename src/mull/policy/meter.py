"""How full the context is: what mull counted, what the provider said, and the best guess from both.

A provider's own count of the last request corrects the next estimate: that count, plus what our
own count grew by since. It says nothing about another model, nor about another way of counting.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from mull.neutral.blocks import Value
from mull.neutral.messages import Origin
from mull.neutral.usage import Usage
from mull.policy.parts import Parts
from mull.policy.prepare import Prepared

__all__ = ["Fullness", "Meter", "Reported", "fullness", "meter_of", "reported_by"]

Fullness: TypeAlias = Literal["ok", "warn", "full", "unknown"]

WARN_FROM = 0.7
FULL_FROM = 0.9
"""Shares of the usable window."""
TELLING = 2000
"""Tokens from which a request says how far off the vocabulary is. In a smaller one the difference
is mostly what the endpoint adds to every request."""
LEAST_SCALE, MOST_SCALE = 0.5, 2.0
"""How far off a count can be. A report beyond that is about more than the request: an endpoint
that runs tools of its own adds up everything they read."""
MOST_HIDDEN = 4000
"""Tokens that an endpoint may add to any request, however short."""


class Reported(Value, frozen=True):
    """What one request was counted to hold, and what its provider said it held."""

    origin: Origin
    counter: str
    estimated: int
    input: int


class Meter(Value, frozen=True):
    """The context before the next request.

    `effective` is what the request holds by our count, `raw` what the log holds, `reported` what
    the provider said of the last request to this target, `estimate` the best guess.
    """

    effective: int
    raw: int
    estimate: int
    window: int | None
    usable: int | None
    parts: Parts
    stored: Parts
    counter: str
    exact: bool
    reported: int | None = None

    def __str__(self) -> str:
        """`123000/212000`; an unknown window is a question mark."""
        return f"{self.estimate}/{self.window or '?'}"

    @property
    def share(self) -> float | None:
        """How much of the usable window is taken."""
        return self.estimate / self.usable if self.usable else None

    @property
    def fullness(self) -> Fullness:
        """The share in words, for a colour."""
        return fullness(self.share)

    @property
    def thinking_left_out(self) -> int:
        """Tokens of stored thinking that are not sent."""
        return max(self.stored.thinking - self.parts.thinking, 0)

    @property
    def other_left_out(self) -> int:
        """Tokens of anything else that is stored and not sent."""
        return max(self.raw - self.effective - self.thinking_left_out, 0)

    @property
    def rows(self) -> tuple[tuple[str, int], ...]:
        """What the request is made of, for a table: names and tokens, without empty ones."""
        found = ((words, getattr(self.parts, name)) for name, words in _WORDS.items())
        return tuple((words, tokens) for words, tokens in found if tokens)


_WORDS = {
    "frame": "added by the endpoint",
    "system": "system prompt",
    "tools": "tool definitions",
    "user": "your messages",
    "answers": "answers",
    "thinking": "thinking sent back",
    "calls": "tool calls",
    "results": "tool results",
    "other": "media and other",
}


def fullness(share: float | None) -> Fullness:
    """What a share of the usable window means."""
    if share is None:
        return "unknown"
    return "full" if share >= FULL_FROM else "warn" if share >= WARN_FROM else "ok"


def reported_by(prepared: Prepared, usage: Usage | None) -> Reported | None:
    """What the answer to a request teaches; None where the provider counted nothing."""
    if usage is None or not usage.input or not prepared.tokens:
        return None
    return Reported(prepared.target.origin, prepared.counter, prepared.tokens, usage.input)


def meter_of(prepared: Prepared, last: Reported | None = None) -> Meter:
    """The meter of a request, corrected by what was reported of the last one."""
    if last and (last.origin != prepared.target.origin or last.counter != prepared.counter):
        last = None
    return Meter(
        effective=prepared.tokens,
        raw=prepared.raw_tokens,
        estimate=_corrected(prepared.tokens, last) if last else prepared.tokens,
        window=prepared.window,
        usable=prepared.usable,
        parts=prepared.parts,
        stored=prepared.stored,
        counter=prepared.counter,
        exact=prepared.exact,
        reported=last.input if last else None,
    )


def _corrected(now: int, last: Reported) -> int:
    """The reported count moved by what changed since; the change is as far off as the count was."""
    scale = last.input / last.estimated if last.estimated >= TELLING else 1.0
    scale = min(max(scale, LEAST_SCALE), MOST_SCALE)
    moved = last.input + (now - last.estimated) * scale
    return round(min(max(moved, now * LEAST_SCALE), now * MOST_SCALE + MOST_HIDDEN))
