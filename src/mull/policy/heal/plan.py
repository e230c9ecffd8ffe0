"""Repairs of what a request asks of the model's thinking: its shape, its level, its budget.

A repair states the fact that the refusal revealed and plans again with it, by the one planner
that plans every request; so what is sent now is what will be sent from now on.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from mull.neutral.errors import BudgetError
from mull.neutral.target import ModelFacts, Target
from mull.neutral.thinking import (
    Level,
    ThinkingPlan,
    WriterName,
    as_level,
    sayable,
    write_thinking,
)
from mull.policy.heal.case import Case, Change
from mull.policy.heal.lessons import Lesson
from mull.policy.thinking.budget import ANY_BUDGET, LEAST_ANSWER, budget_for_level, least
from mull.policy.thinking.plan import Planned, plan_thinking
from mull.policy.thinking.steering import DEFAULT_BUDGET
from mull.settings.layers import Settings

__all__ = [
    "clamp_budget",
    "drop_budget",
    "drop_effort",
    "drop_summary",
    "level_of",
    "lower_budget",
    "lower_limit",
    "must_think",
    "nearest_effort",
    "no_thinking_parameter",
    "other_level",
    "replan",
    "stop_thinking",
    "take_back",
    "to_adaptive",
    "to_budget",
    "to_gemini_budget",
    "to_gemini_level",
    "without_thinking",
]

_OTHER_SHAPE: dict[WriterName, WriterName] = {
    "anthropic-adaptive": "anthropic-budget",
    "anthropic-budget": "anthropic-adaptive",
    "gemini-level": "gemini-budget",
    "gemini-budget": "gemini-level",
}
_SURE_WORDS: dict[WriterName, tuple[Level, ...]] = {
    "anthropic-adaptive": ("low", "medium", "high"),
    "gemini-level": ("low", "high"),
}
"""What every model takes that is steered by words in this shape."""
_SURE_BUDGET = {"type": "budget_tokens", "min": 1024, "max": 24_576, "learnt": True}
"""A range inside those of all models that take a budget."""
_WORD = re.compile(r"[a-z]+")
_LEVELS: tuple[Level, ...] = ("minimal", "low", "medium", "high")


def to_adaptive(case: Case, found: re.Match[str]) -> Change | None:
    """A budget is refused: the model decides, at the effort the budget stood for."""
    return _switch(case, "anthropic-adaptive", "adaptive thinking instead of a budget")


def to_budget(case: Case, found: re.Match[str]) -> Change | None:
    """Adaptive thinking is refused: the budget that the effort stands for."""
    return _switch(case, "anthropic-budget", "a thinking budget instead of adaptive thinking")


def to_gemini_level(case: Case, found: re.Match[str]) -> Change | None:
    """A budget is refused: the level it stood for."""
    return _switch(case, "gemini-level", "a thinking level instead of a budget")


def to_gemini_budget(case: Case, found: re.Match[str]) -> Change | None:
    """A level is refused: the budget it stands for."""
    return _switch(case, "gemini-budget", "a thinking budget instead of a level")


def must_think(case: Case, found: re.Match[str]) -> Change | None:
    """Thinking cannot be off here: as little of it as the model takes."""
    plan = case.plan
    if plan.state != "off" and plan.effort != "none" and plan.budget != 0:
        return None
    if "between_tools" in case.said and plan.off_type != "between_tools":
        lesson = Lesson(facts={"off_type": "between_tools"})
        off = msgspec.structs.replace(plan, off_type="between_tools")
        return case.plans("thinking between tool calls only, the least there is", off, lesson)
    facts = case.target.facts
    words = tuple[Level, ...](word for word in facts.efforts if word != "none")
    words = words or _SURE_WORDS.get(plan.writer, ())
    taught: dict[str, Any] = {"can_be_off": False, "off_type": "disabled"}
    if words:
        taught["reasoning_options"] = _options(facts, effort=words)
    lesson = Lesson(facts=taught)
    planned = replan(case, lesson, "none")
    return _planned(case, planned, lesson, "thinking cannot be off here: the least there is")


def nearest_effort(case: Case, found: re.Match[str]) -> Change | None:
    """The level is not among those that the refusal lists: the nearest of them."""
    effort = case.plan.effort
    listed = tuple(dict.fromkeys(w for w in _WORD.findall(found["values"].lower()) if as_level(w)))
    if effort is None or not listed:
        return None
    if not _mentions(case, effort) and (effort in listed or "effort" not in found[0].lower()):
        return None
    taught: dict[str, Any] = {"reasoning_options": _options(case.target.facts, effort=listed)}
    if effort == "none":
        taught["can_be_off"] = False
    guessed = case.target.compat.thinking_writer == "usual"  # who lists the values takes them
    lesson = Lesson(compat={"thinkingWriter": case.plan.writer} if guessed else {}, facts=taught)
    planned = replan(case, lesson, level_of(case))
    return _planned(case, planned, lesson, f"this model has no {effort} level")


def other_level(case: Case, found: re.Match[str]) -> Change | None:
    """The level is refused and no other is named: the nearest that is left, else plain on."""
    effort = case.plan.effort
    if effort is None or not _mentions(case, effort):
        return None
    facts = case.target.facts
    known = facts.efforts or _SURE_WORDS.get(case.plan.writer, ())
    left = tuple(word for word in known if word != as_level(effort))
    lesson = Lesson(facts={"reasoning_options": _options(facts, effort=left)})
    if not left:
        lesson = _on_or_off(facts)
    planned = replan(case, lesson, level_of(case))
    change = _planned(case, planned, lesson, f"this model has no {effort} level")
    return change or take_back(case)  # an endpoint that says on by a level only


def drop_effort(case: Case, found: re.Match[str]) -> Change | None:
    """The model takes no effort; whether it thinks stays as it is, where that can still be said."""
    if case.plan.effort is None:
        return None
    plan = msgspec.structs.replace(case.plan, effort=None)
    is_switch = plan.writer == "anthropic-adaptive" or sayable(plan).state == plan.state
    if not (write_thinking(plan) and is_switch):
        return take_back(case)
    lesson = _on_or_off(case.target.facts)
    return case.plans("no effort sent: the model takes none", plan, lesson)


def drop_summary(case: Case, found: re.Match[str]) -> Change | None:
    """Summaries are refused: think without one."""
    plan = msgspec.structs.replace(case.plan, summary=None)
    return case.plans("no summary of the reasoning asked for", plan)


def drop_budget(case: Case, found: re.Match[str]) -> Change | None:
    """The server cannot hold to a budget: think without one."""
    if not case.plan.budget:
        return None
    plan = msgspec.structs.replace(case.plan, budget=None)
    lesson = Lesson(compat={"budgetField": None})
    return case.plans("no thinking budget sent: the server takes none", plan, lesson)


def lower_budget(case: Case, found: re.Match[str]) -> Change | None:
    """The budget leaves no room for the answer: lower it, or do not think."""
    named = found.groupdict().get("limit")
    limit = _number(named) if named else case.request.max_tokens
    budget = case.plan.budget
    if limit is None or not budget:
        return None
    plan = _budget_under(case, limit)
    if plan is None or plan.budget is None:
        return stop_thinking(case, found)
    if plan == case.plan:
        return None
    text = f"thinking budget {budget:,} → {plan.budget:,}, under the answer's limit"
    return case.plans(text, plan)


def lower_limit(case: Case, found: re.Match[str]) -> Change | None:
    """The answer may not be that long here: as long as the refusal allows, and the budget under it.

    What one request leaves of the window is no fact about the model; its limit is.
    """
    named = {name: _number(text) for name, text in found.groupdict().items()}
    asked, limit, lesson = case.request.max_tokens or 0, named.get("limit"), Lesson()
    if limit is not None:
        known = msgspec.to_builtins(case.target.facts.limit)
        lesson = Lesson(facts={"limit": {**known, "output": limit}})
    else:
        limit = (named.get("window") or 0) - (named.get("used") or 0)
    if not LEAST_ANSWER <= limit < asked:
        return None
    plan = _budget_under(case, limit)
    if plan is None:
        return None
    text = f"max_tokens {asked:,} → {limit:,}, as the endpoint allows"
    if plan.budget != case.plan.budget:
        text += f"; thinking budget {case.plan.budget or 0:,} → {plan.budget or 0:,}"
    return case.plans(text, plan, lesson, max_tokens=limit)


def _budget_under(case: Case, limit: int) -> ThinkingPlan | None:
    """The plan with a budget that leaves room for the answer, else without thinking; None where
    the target cannot be kept from it."""
    budget, option = case.plan.budget, case.target.facts.budget
    lowered = max(limit - LEAST_ANSWER, limit // 2)
    if not budget or budget <= lowered:
        return case.plan
    floor = least(option) if option else (1024 if case.target.dialect == "anthropic" else 1)
    if lowered >= floor:
        return msgspec.structs.replace(case.plan, budget=lowered)
    quiet = without_thinking(case.target)
    return None if quiet.thinks else quiet.plan


def clamp_budget(case: Case, found: re.Match[str]) -> Change | None:
    """The budget is out of the model's range: the nearest end of it, as the refusal names it."""
    budget, named = case.plan.budget, found.groupdict()
    if budget is None:
        return None
    low, high = _number(named.get("low")), _number(named.get("high"))
    option = case.target.facts.budget or ANY_BUDGET
    if low is None and high is None:
        low, high = option.min, option.max
    clamped = max(budget, low) if low is not None else budget
    clamped = min(clamped, high) if high is not None else clamped
    limit = case.request.max_tokens
    if case.target.dialect == "anthropic" and limit is not None and clamped >= limit:
        return stop_thinking(case, found)
    if clamped == budget:
        plan = msgspec.structs.replace(case.plan, budget=None)
        return case.plans("no thinking budget sent: the model decides", plan)
    low, high = option.min if low is None else low, option.max if high is None else high
    ranged = {"type": "budget_tokens", "min": low, "max": high, "learnt": True}
    lesson = Lesson(facts={"reasoning_options": _options(case.target.facts, budget=ranged)})
    plan = msgspec.structs.replace(case.plan, budget=clamped)
    return case.plans(f"thinking budget {budget:,} → {clamped:,}, as the model takes", plan, lesson)


def no_thinking_parameter(case: Case, found: re.Match[str]) -> Change | None:
    """The model or server takes no such parameter: none is sent."""
    return take_back(case)


def take_back(case: Case) -> Change:
    """Send no thinking parameter, now and from now on."""
    taught: dict[str, Any] = {"thinkingWriter": "none"}
    if set(write_thinking(case.plan)) & set(case.target.compat.keep_thinking or ()):
        taught["keepThinking"] = None  # the same parameter by another way
    lesson = Lesson(compat=taught)
    return case.plans("no thinking parameter sent", ThinkingPlan("absent"), lesson)


def stop_thinking(case: Case, found: re.Match[str]) -> Change | None:
    """This request goes without thinking; nothing is wrong with the next one."""
    planned = without_thinking(case.target)
    if planned.thinks:
        return None
    return case.plans("thinking is off for this request", planned.plan)


def without_thinking(target: Target) -> Planned:
    """How the target is asked not to think, as far as it can."""
    return plan_thinking(target, _settings("none").snapshot())


def _switch(case: Case, writer: WriterName, words: str) -> Change | None:
    """The same wish in the endpoint's other shape."""
    if case.plan.writer != _OTHER_SHAPE[writer] or case.plan.state == "absent":
        return None
    facts, taught = case.target.facts, dict[str, Any]()
    if writer in _SURE_WORDS:
        efforts = facts.efforts or _SURE_WORDS[writer]
        taught["reasoning_options"] = _options(facts, effort=efforts, budget={})
    elif facts.budget is None:
        taught["reasoning_options"] = _options(facts, budget=_SURE_BUDGET)
    lesson = Lesson(compat={"thinkingWriter": writer}, facts=taught)
    planned = replan(case, lesson, level_of(case))
    return _planned(case, planned, lesson, words)


def _planned(case: Case, planned: Planned | None, lesson: Lesson, words: str) -> Change | None:
    if planned is None:
        return None
    limit = case.request.max_tokens if planned.max_tokens is None else planned.max_tokens
    plan = msgspec.structs.replace(planned.plan, summary=case.plan.summary)
    if write_thinking(plan) == write_thinking(case.plan):
        return None
    return case.plans(f"{words}: {planned.summary}", plan, lesson, max_tokens=limit)


def replan(case: Case, lesson: Lesson, level: Level | None) -> Planned | None:
    """What the lesson's target is asked for at a level; None where the numbers cannot hold."""
    settings = _settings(level)
    if level is None and case.plan.state == "on":
        settings.set("reasoning.enabled", True)
    try:
        return plan_thinking(
            case.taught(lesson), settings.snapshot(), max_tokens=case.request.max_tokens
        )
    except BudgetError:
        return None


def _settings(level: Level | None) -> Settings:
    settings = Settings()
    if level is not None:
        settings.set("reasoning.effort", level)
    return settings


def level_of(case: Case) -> Level | None:
    """The level that the refused plan stood for; None where nobody chose one."""
    plan = case.plan
    if plan.state == "off":
        return "none"
    if plan.effort:
        return as_level(plan.effort)
    if not plan.budget or plan.budget == DEFAULT_BUDGET:
        return None
    option = case.target.facts.budget or ANY_BUDGET
    above = (one for one in _LEVELS if budget_for_level(option, one) >= plan.budget)
    return next(above, "high")


def _on_or_off(facts: ModelFacts) -> Lesson:
    """A model without levels; whether it can be off is as it was."""
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
    """The model's reasoning options with one kind of them replaced."""
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
