"""How full the context window is: what was counted, what the provider reported, the best estimate
from both.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Literal, TypeAlias

from msgspec.structs import astuple, replace

from mull.neutral.blocks import Value
from mull.policy.parts import Parts
from mull.policy.prepare import Prepared

__all__ = ["Fullness", "Meter", "fullness", "meter_of"]

Fullness: TypeAlias = Literal["ok", "warn", "full", "unknown"]

WARN_FROM = 0.7
FULL_FROM = 0.9
"""Shares of the usable window."""


class Meter(Value, frozen=True):
    """The context before the next request, in tokens."""

    effective: int
    """The displayed count: what the request holds, by mull's own count corrected by what the
    provider reported.
    """
    raw: int
    """The total of `stored`."""
    window: int | None
    """The context window; None if unknown."""
    usable: int | None
    """The window without the room that the answer needs; None if unknown."""
    counted: Parts
    """mull's own count of what the request holds, by purpose."""
    stored: Parts
    """The same for everything in the log, as if nothing were left out."""
    counter: str
    """The name of the counter, such as that of a vocabulary, or of the estimate by characters."""
    exact: bool
    """Whether the counter uses the model's own vocabulary."""
    reported: int | None = None
    """The input that the provider counted for the last request to this target; None if it did not
    report it.
    """

    def __str__(self) -> str:
        """`123000/212000`; an unknown window is a question mark."""
        return f"{self.effective}/{self.window or '?'}"

    @property
    def share(self) -> float | None:
        """The used share of the usable window."""
        return self.effective / self.usable if self.usable else None

    @property
    def fullness(self) -> Fullness:
        """The share in words, for a colour."""
        return fullness(self.share)

    @property
    def thinking_left_out(self) -> int:
        """Tokens of stored thinking that are not sent."""
        return max(self.stored.thinking - self.counted.thinking, 0)

    @property
    def other_left_out(self) -> int:
        """Tokens of anything else that is stored but not sent."""
        return max(self.raw - self.counted.total - self.thinking_left_out, 0)

    @property
    def parts(self) -> Parts:
        """What the effective count consists of; the parts add up to it.

        What the provider counts beyond our own count is a part of its own, because it may be
        anything, such as a prompt that a proxy adds. If it counts less, our counts were too high,
        and each part is reduced in proportion.
        """
        surplus = self.effective - self.counted.total
        if surplus >= 0:
            return replace(self.counted, surplus=surplus)
        shares, whole = list[int](), self.counted.total
        for upto in accumulate(astuple(self.counted)):
            shares.append(round(self.effective * upto / whole) - sum(shares))
        return Parts(*shares)

    @property
    def rows(self) -> tuple[tuple[str, int], ...]:
        """The parts for a table: names and tokens, without empty ones."""
        held = self.parts
        rows = ((words, getattr(held, name)) for name, words in _WORDS.items())
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
    "surplus": "provider counts more",
}


def fullness(share: float | None) -> Fullness:
    """What a share of the usable window means."""
    if share is None:
        return "unknown"
    return "full" if share >= FULL_FROM else "warn" if share >= WARN_FROM else "ok"


def meter_of(prepared: Prepared) -> Meter:
    """How much of the context window a prepared request takes, and what takes it."""
    return Meter(
        effective=prepared.estimate,
        raw=prepared.raw_tokens,
        window=prepared.window,
        usable=prepared.usable,
        counted=prepared.parts,
        stored=prepared.stored,
        counter=prepared.counter,
        exact=prepared.exact,
        reported=prepared.reported,
    )
