"""What follows when thinking is to end early: whether it is stopped, and how the answer is
requested.

The answer is requested with thinking off, or with the least the model accepts. If neither is
possible, the time limit does not stop the thinking: that would pay twice for the same. Messages are
derived from the actual request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from mull.agent.turn import Cause, Limits, Progress, allows
from mull.neutral.blocks import Value
from mull.neutral.events import Hurried
from mull.neutral.messages import Message
from mull.neutral.request import Note
from mull.neutral.target import Target
from mull.neutral.thinking import ThinkingPlan, write_thinking
from mull.policy.prepare import Prepared
from mull.policy.reasoning import thinking_to_reasoning_field
from mull.policy.thinking.plan import Planned

__all__ = [
    "ABOUT",
    "ASK_NOW",
    "STOPPED",
    "Cut",
    "ask_now",
    "note_cut",
    "reason_to_go_on",
    "tell_cut",
]

ASK_NOW = "Stop thinking and answer now."
STOPPED = "stopped the thinking and asked for the answer"
_GOES_ON = "the thinking continues"
_TOLD_ALREADY = "the model has already been told to answer"
_ONCE = "mull stops the thinking only once per turn for this"

ABOUT: Mapping[Cause, str] = {"hurried": "thinking", "overdue": "reasoning.maxSeconds"}
"""Messages about it concern the setting that caused it, or thinking."""
_LEAST = "reasoning.effort"
"""The subject of notes about requesting the least."""


class Cut(Value, frozen=True):
    """Stopped thinking: its cause, and what its request had asked for."""

    cause: Cause
    plan: ThinkingPlan


def ask_now(unfinished: Message, target: Target) -> str:
    """The instruction after thinking was stopped, with the thinking so far, if the model reads
    that.
    """
    thought = thinking_to_reasoning_field(unfinished.thinking)
    if not thought or not thought.strip() or target.facts.declines_thoughts:
        return ASK_NOW
    return f"{ASK_NOW} Your thoughts so far:\n\n{thought.strip()}"


def reason_to_go_on(
    cause: Cause, progress: Progress, limits: Limits, sent: Prepared, least: Planned
) -> str | None:
    """Why the thinking in answer to `sent` is not stopped for this cause; None if it is.

    `least` is what a request for an answer would ask of thinking. The user may stop thinking that
    the time limit does not: an instruction may help.
    """
    if not allows(progress, "hurried", limits):
        return f"{_GOES_ON}: {_TOLD_ALREADY}"
    if cause == "hurried":
        return None
    why = None if allows(progress, "overdue", limits) else _ONCE
    if why is None and not _eases(sent.request.thinking, least.plan, sent.target):
        why = _why_not_less(least.plan, least.summary)
    return None if why is None else f"the time limit for thinking has passed, but {_GOES_ON}: {why}"


def tell_cut(cut: Cut, follows: Prepared) -> Hurried:
    """The message about stopped thinking when the following request is made."""
    return Hurried(ABOUT[cut.cause], *_outcome(cut, follows))


def note_cut(cut: Cut, follows: Prepared) -> Prepared:
    """The request that follows stopped thinking, with a note about it.

    The reduced thinking was not requested by the user, so notes about it are left out.
    """
    told, fragment = tell_cut(cut, follows), write_thinking(follows.request.thinking)
    note = Note(
        told.about,
        told.text,
        effective=follows.thinking,
        sent_as=msgspec.json.encode(fragment).decode() if fragment else None,
    )
    others = (one for one in follows.notes if one.about != _LEAST)
    return msgspec.structs.replace(follows, notes=(*others, note))


def _outcome(cut: Cut, follows: Prepared) -> tuple[Literal["off", "less", "words"], str]:
    plan = follows.request.thinking
    if not _eases(cut.plan, plan, follows.target):
        why = _why_not_less(plan, follows.thinking)
        return "words", f"{STOPPED} with an instruction only: {why}"
    if _is_off(plan):
        return "off", f"{STOPPED} with thinking off"
    return "less", f"{STOPPED} with less thinking: {follows.thinking}"


def _eases(before: ThinkingPlan, least: ThinkingPlan, target: Target) -> bool:
    """Whether the least that can be requested is less than before."""
    if write_thinking(least) == write_thinking(before):
        return False
    usual = target.facts.default_effort
    if before.state == "default" and usual is not None and least.effort == usual:
        return False
    return _is_off(least) or least.state == "on"


def _why_not_less(least: ThinkingPlan, summary: str) -> str:
    if _is_off(least):
        return "its thinking is already off"
    if least.state == "on":
        return f"{summary} is the lowest it accepts"
    return "mull knows no way to turn its thinking off or down"


def _is_off(plan: ThinkingPlan) -> bool:
    return plan.state == "off" or not plan.thinks
