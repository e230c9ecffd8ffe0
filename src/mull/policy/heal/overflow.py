"""A request that was refused for its length: what that teaches, and an answer that fits beside it.

The window and the true count that a refusal names hold from now on. Where the request itself fits
and only the answer's limit does not, the limit is lowered; otherwise the conversation has to become
shorter, which is not done here.
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

__all__ = ["lower_answer", "overflow_lesson", "overflowed"]

TELLING = 500
"""Tokens from which a request tells how far our own count is off."""
MOST_SCALE = 4.0
LEAST_WINDOW = 256


def lower_answer(prepared: Prepared, overflow: Overflow) -> Iterator[Mend]:
    """The request with a limit on its answer that the window has room for, if it has enough."""
    asked, window = prepared.request.max_tokens, overflow.window
    if overflow.asked is None or asked is None or window is None:
        return
    room = window - (overflow.held or prepared.estimate)
    if least_answer(window) <= room < asked:
        text = f"max_tokens {asked:,} → {room:,}, as the window of {window:,} allows"
        lesson = overflow_lesson(prepared.target, Overflow(window))
        yield Mend(text, lesson, Amendment(limit=room))


def overflow_lesson(target: Target, overflow: Overflow, counted: int | None = None) -> Lesson:
    """What a refusal teaches of its target: the window, and how its tokens compare with ours.

    `counted` is what we counted in the request by the vocabulary of the target. Numbers that no
    server has, or that contradict the refusal, teach nothing.
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
    """The limits as the refusal has them; what is larger than the whole cannot be right either."""
    context = overflow.window or limit.context
    inside = overflow.input or limit.input
    if overflow.window and inside and inside > overflow.window:
        inside = None
    output = limit.output
    if overflow.window and output and output > overflow.window:
        output = None
    return Limit(context=context, output=output, input=inside)


def overflowed(refused: Prepared, overflow: Overflow) -> Amendment:
    """The next request with the true count of a refused one: as the refusal names it, else more
    than there was room for."""
    floor = max(refused.estimate, overflow.limit or refused.window or 0) + 1
    return Amendment(counted=Reported(refused.characters, overflow.held or floor))
