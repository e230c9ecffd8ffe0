"""Fixes of what a request asks of the model's thinking: its format, its level, its budget.

A fix states the fact that the rejection revealed. The request is then planned as usual, from the
user's own settings; so what is sent now is what will be sent from now on.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from mull.dialects.traits import TRAITS
from mull.neutral.target import ModelFacts
from mull.neutral.thinking import WRITERS, Level, WriterName, as_level, sayable, write_thinking
from mull.policy.heal.amendment import UNAMENDED, Amendment, thought_name
from mull.policy.heal.case import Case, Mend, Mends, once
from mull.policy.heal.lessons import Lesson
from mull.policy.reasoning import turn_start
from mull.policy.thinking.budget import ANY_BUDGET

__all__ = [
    "clamp_budget",
    "drop_budget",
    "drop_effort",
    "drop_summary",
    "lower_budget",
    "lower_limit",
    "must_think",
    "nearest_effort",
    "off_unheard",
    "other_level",
    "other_shape",
    "steer_by",
    "stop_thinking",
    "take_back",
]

_SURE_BUDGET = {"type": "budget_tokens", "min": 1024, "max": 24_576, "learnt": True}
"""A range inside those of all models that accept a budget."""
_WORD = re.compile(r"[a-z]+")


def other_shape(case: Case, found: re.Match[str]) -> Mends:
    """The same request in the endpoint's other format; the group's name is the rejected one's."""
    plan = case.plan
    writer = WRITERS[plan.writer].other_shape
    names_it = plan.writer.partition("-")[2] in found.groupdict()
    if plan.state != "absent" and names_it and writer is not None:
        text = f"controlled by {writer} instead of {plan.writer}"
        yield Mend(text, steer_by(writer, case.target.facts))


def steer_by(writer: WriterName, facts: ModelFacts) -> Lesson:
    """The lesson that a model is controlled in this format, by values it certainly accepts."""
    taught: dict[str, Any] = {}
    if sure := WRITERS[writer].sure_words:
        efforts = facts.efforts or sure
        taught["reasoning_options"] = _options(facts, effort=efforts, budget={})
    elif facts.budget is None:
        taught["reasoning_options"] = _options(facts, budget=_SURE_BUDGET)
    return Lesson(compat={"thinkingWriter": writer}, facts=taught)


def must_think(case: Case, found: re.Match[str]) -> Mends:
    """Thinking cannot be turned off here: use as little as the model accepts."""
    plan, facts = case.plan, case.target.facts
    if plan.state != "off" and plan.effort != "none" and plan.budget != 0:
        return
    if "between_tools" in case.said and plan.off_type != "between_tools":
        between = Lesson(facts={"off_type": "between_tools"})
        yield Mend("thinking between tool calls only, the lowest setting", between)
    words = tuple[Level, ...](word for word in facts.efforts if word != "none")
    words = words or WRITERS[plan.writer].sure_words
    taught: dict[str, Any] = {"can_be_off": False, "off_type": "disabled"}
    if words:
        taught["reasoning_options"] = _options(facts, effort=words)
    yield Mend("thinking cannot be turned off here", Lesson(facts=taught))


def nearest_effort(case: Case, found: re.Match[str]) -> Mends:
    """The level is not among those that the rejection lists: use the nearest of them."""
    effort = case.plan.effort
    listed = tuple(dict.fromkeys(w for w in _WORD.findall(found["values"].lower()) if as_level(w)))
    if effort is None or not listed:
        return
    if not _mentions(case, effort) and (effort in listed or "effort" not in found[0].lower()):
        return
    taught: dict[str, Any] = {"reasoning_options": _options(case.target.facts, effort=listed)}
    if effort == "none":
        taught["can_be_off"] = False
    # An endpoint that lists the values accepts them.
    guessed = case.target.compat.thinking_writer == "usual"
    lesson = Lesson(compat={"thinkingWriter": case.plan.writer} if guessed else {}, facts=taught)
    yield Mend(f"this model has no {effort} level", lesson)


def other_level(case: Case, found: re.Match[str]) -> Mends:
    """The level is rejected and no other is named: use the nearest remaining one, otherwise plain
    on.
    """
    effort, facts = case.plan.effort, case.target.facts
    if effort is None or not _mentions(case, effort):
        return
    words = facts.efforts or WRITERS[case.plan.writer].sure_words
    left = tuple(word for word in words if word != as_level(effort))
    lesson = Lesson(facts={"reasoning_options": _options(facts, effort=left)})
    yield Mend(f"this model has no {effort} level", lesson if left else _on_or_off(facts))
    yield from take_back(case)  # an endpoint that turns thinking on only by a level


def drop_effort(case: Case, found: re.Match[str]) -> Mends:
    """The model accepts no effort; whether it thinks stays the same, if that can still be
    expressed.
    """
    if case.plan.effort is None:
        return
    plan = msgspec.structs.replace(case.plan, effort=None)
    is_switch = plan.writer == "anthropic-adaptive" or sayable(plan).state == plan.state
    if write_thinking(plan) and is_switch:
        yield Mend("no effort sent: the model accepts none", _on_or_off(case.target.facts))
    yield from take_back(case)


def drop_summary(case: Case, found: re.Match[str]) -> Mends:
    """Summaries are rejected: think without one."""
    yield once("no reasoning summary requested", "summary")


def drop_budget(case: Case, found: re.Match[str]) -> Mends:
    """The server cannot enforce a budget: think without one."""
    if case.plan.budget:
        lesson = Lesson(compat={"budgetField": None})
        yield once("no thinking budget sent: the server accepts none", "budget", lesson=lesson)


def lower_budget(case: Case, found: re.Match[str]) -> Mends:
    """The budget leaves no room for the answer: lower it, or do not think."""
    named = found.groupdict().get("limit")
    limit = _number(named) if named else case.request.max_tokens
    if limit and case.plan.budget:
        text = f"a thinking budget that leaves room for the answer in {limit:,} tokens"
        yield Mend(text, amendment=Amendment(limit=limit))


def lower_limit(case: Case, found: re.Match[str]) -> Mends:
    """The answer limit is too high here: use the one the rejection allows, and a budget below
    it.
    """
    named = {name: _number(text) for name, text in found.groupdict().items()}
    asked, limit = case.request.max_tokens or 0, named.get("limit") or (named.get("over") or 0) - 1
    facts = msgspec.to_builtins(case.target.facts.limit)
    lesson = Lesson(facts={"limit": {**facts, "output": limit}})
    if 0 < limit < asked:
        text = f"max_tokens {asked:,} → {limit:,}, as the endpoint allows"
        yield Mend(text, lesson, Amendment(limit=limit))


def clamp_budget(case: Case, found: re.Match[str]) -> Mends:
    """The budget is outside the model's range: move it into the range that the rejection names."""
    budget, named = case.plan.budget, found.groupdict()
    if budget is None:
        return
    low, high = _number(named.get("low")), _number(named.get("high"))
    if (low is not None and budget < low) or (high is not None and budget > high):
        option = case.target.facts.budget or ANY_BUDGET
        low, high = option.min if low is None else low, option.max if high is None else high
        ranged = {"type": "budget_tokens", "min": low, "max": high, "learnt": True}
        lesson = Lesson(facts={"reasoning_options": _options(case.target.facts, budget=ranged)})
        yield Mend("a thinking budget in the model's range", lesson)
    else:
        yield once("no thinking budget sent: the model decides", "budget")


def take_back(case: Case, found: re.Match[str] | None = None) -> Mends:
    """The model or server accepts no thinking parameter: none is sent, now and from now on."""
    taught: dict[str, Any] = {"thinkingWriter": "none"}
    if set(write_thinking(case.plan)) & set(case.target.compat.keep_thinking or ()):
        taught["keepThinking"] = None  # the same parameter from another source
    amendment = UNAMENDED
    if TRAITS[case.target.dialect].off_forbids_thoughts:  # no parameter means no thinking
        messages = case.request.messages
        chain = (thought for m in messages[turn_start(messages) :] for thought in m.thinking)
        amendment = Amendment(thoughts=frozenset(map(thought_name, chain)))
    yield Mend("no thinking parameter sent", Lesson(compat=taught), amendment)


def off_unheard(case: Case, found: re.Match[str]) -> Mends:
    """The endpoint misses thinking in a request that does not think: it did not hear off."""
    if case.off and not case.plan.thinks:
        text = "thinking sent back although it is off: the endpoint thinks all the same"
        yield Mend(text, Lesson(compat={"ignoresOff": True}))


def stop_thinking(case: Case, found: re.Match[str]) -> Mends:
    """This request is sent without thinking; the next is not affected."""
    yield once("told not to think, for this request only", "thinking")


def _on_or_off(facts: ModelFacts) -> Lesson:
    """A model without levels; whether it can be turned off stays the same."""
    options = [option for option in _options(facts, effort=()) if option["type"] != "toggle"]
    options.append({"type": "toggle"})
    stops = facts.can_stop_thinking
    return Lesson(facts={"reasoning_options": options, "can_be_off": stops})


def _options(
    facts: ModelFacts,
    *,
    effort: tuple[str, ...] | None = None,
    budget: dict[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """The model's reasoning options with one kind replaced."""
    replaced = {"effort": effort is not None, "budget_tokens": budget is not None}
    kept = [option for option in facts.reasoning_options if not replaced.get(option.type, False)]
    options: list[dict[str, Any]] = msgspec.json.decode(msgspec.json.encode(kept))
    if effort:
        options.append({"type": "effort", "values": list(effort)})
    if budget:
        options.append({name: value for name, value in budget.items() if value is not None})
    return options


def _mentions(case: Case, word: str) -> bool:
    return re.search(rf"\b{re.escape(word)}\b", case.said, re.IGNORECASE) is not None


def _number(text: str | None) -> int | None:
    digits = (text or "").replace(",", "")
    return int(digits) if digits and len(digits) <= 9 else None
