"""A request rejected for its length: what that teaches, and an answer limit that fits.

The window and the true count that a rejection names apply from now on. If the request itself fits
and only the answer limit does not, the limit is lowered; otherwise the conversation must be
shortened, which is not done here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from mull.neutral.target import Limit, Target
from mull.policy.heal.amendment import Amendment
from mull.policy.heal.case import Mend
from mull.policy.heal.lessons import Lesson
from mull.policy.lengths import Overflow
from mull.policy.prepare import Prepared
from mull.policy.reported import Reported
from mull.policy.thinking.budget import least_answer

__all__ = ["far_below", "lower_answer", "overflow_lesson", "overflowed"]

TELLING = 500
"""Minimum tokens of a request for judging how far our own count is off."""
MOST_SCALE = 4.0
LEAST_WINDOW = 256
FAR_BELOW = 0.5
"""The fraction of a limit below which a request cannot exceed it, however wrong our count is."""
UNKNOWN_WINDOW = 2048
"""The least that is expected of a limit that nobody names."""


def far_below(prepared: Prepared, overflow: Overflow) -> int | None:
    """The limit that a request rejected for its length is far below, so that it must have been
    another one; None if the request may be too long, by our count or the endpoint's own.
    """
    named = overflow.limit
    if overflow.held and named and overflow.held > named >= LEAST_WINDOW:
        return None
    limit: int = overflow.share or named or prepared.window or UNKNOWN_WINDOW
    held = max(prepared.tokens, prepared.estimate)
    return limit if held < FAR_BELOW * limit else None


def lower_answer(prepared: Prepared, overflow: Overflow) -> Iterator[Mend]:
    """The request with an answer limit that fits the window, if there is enough room."""
    asked, window = prepared.request.max_tokens, overflow.window
    if overflow.asked is None or asked is None or window is None:
        return
    room = window - (overflow.held or prepared.estimate)
    if least_answer(window) <= room < asked:
        text = f"max_tokens {asked:,} → {room:,}, to fit the context window of {window:,}"
        lesson = overflow_lesson(prepared.target, Overflow(window))
        yield Mend(text, lesson, Amendment(limit=room))


def overflow_lesson(target: Target, overflow: Overflow, counted: int | None = None) -> Lesson:
    """What a rejection teaches about its target: the window, and how its tokens compare with ours.

    `counted` is what we counted in the request with the vocabulary of the target. Implausible
    numbers, or ones that contradict the rejection, teach nothing.
    """
    facts: dict[str, Any] = {}
    limits = [number for number in (overflow.window, overflow.input) if number]
    if any(number < LEAST_WINDOW or number > (overflow.held or number) for number in limits):
        return Lesson()
    limit = _limit(target.facts.limit, overflow)
    if limit != target.facts.limit:
        facts["limit"] = msgspec.to_builtins(limit)
    known = target.facts
    if counted and overflow.held and counted >= TELLING and not known.tokenizer_exact:
        scale = known.tokenizer_scale * overflow.held / counted
        if scale > known.tokenizer_scale:
            facts["tokenizer_scale"] = round(min(scale, MOST_SCALE), 2)
    return Lesson(facts=facts)


def _limit(limit: Limit, overflow: Overflow) -> Limit:
    """The limits that the rejection names; a part larger than the whole is implausible too."""
    context = overflow.window or limit.context
    inside = overflow.input or limit.input
    if overflow.window and inside and inside > overflow.window:
        inside = None
    output = limit.output
    if overflow.window and output and output > overflow.window:
        output = None
    return Limit(context=context, output=output, input=inside)


def overflowed(refused: Prepared, overflow: Overflow) -> Amendment:
    """The next request with the true count of a rejected one: as the rejection names it, otherwise
    more than the window.
    """
    floor = max(refused.estimate, overflow.limit or refused.window or 0) + 1
    return Amendment(counted=Reported(refused.characters, overflow.held or floor))
