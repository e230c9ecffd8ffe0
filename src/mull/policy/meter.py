"""How full the context window is: what was counted, what the provider reported, the best estimate
from both.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from mull.neutral.blocks import Value
from mull.policy.parts import Parts
from mull.policy.prepare import Prepared

__all__ = ["Fullness", "Meter", "fullness", "meter_of"]

Fullness: TypeAlias = Literal["ok", "warn", "full", "unknown"]

WARN_FROM = 0.7
FULL_FROM = 0.9
"""Shares of the usable window."""


class Meter(Value, frozen=True):
    """The context before the next request.

    `effective` is what the request contains by our count, `raw` what the log contains, `reported`
    what the provider reported for the last request to this target, `estimate` the best estimate.
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
        """The used share of the usable window."""
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
        """Tokens of anything else that is stored but not sent."""
        return max(self.raw - self.effective - self.thinking_left_out, 0)

    @property
    def rows(self) -> tuple[tuple[str, int], ...]:
        """The parts of the request, for a table: names and tokens, without empty ones.

        They add up to the estimate: each part has its share of what the provider counts.
        """
        held = [(words, getattr(self.parts, name)) for name, words in _WORDS.items()]
        rows, counted, told = list[tuple[str, int]](), 0, 0
        for words, tokens in held:
            counted += tokens
            upto = round(self.estimate * counted / self.effective) if self.effective else 0
            rows.append((words, upto - told))
            told = upto
        return tuple(row for row in rows if row[1])


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


def meter_of(prepared: Prepared) -> Meter:
    """How much of the context window a prepared request takes, and what takes it."""
    return Meter(
        effective=prepared.tokens,
        raw=prepared.raw_tokens,
        estimate=prepared.estimate,
        window=prepared.window,
        usable=prepared.usable,
        parts=prepared.parts,
        stored=prepared.stored,
        counter=prepared.counter,
        exact=prepared.exact,
        reported=prepared.reported,
    )
