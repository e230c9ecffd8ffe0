"""The thinking plan and the request formats that express it.

Policy decides the plan, a dialect merges the output of the plan's writer into its body, and the
notes quote the same fragment: what a user is told is what is sent. The writers are a closed table
of formats; which one an endpoint accepts, and its numbers, are data (compat rows).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import msgspec

from mull.neutral.blocks import Value

__all__ = [
    "DEFAULT_ANSWER",
    "LADDER",
    "LEVEL_ALIASES",
    "UNSIGNED_CALL",
    "WRITERS",
    "Level",
    "TemplateWords",
    "ThinkingPlan",
    "WriterName",
    "WriterTraits",
    "as_level",
    "sayable",
    "traits_of_writer",
    "write_thinking",
]

Level: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How much a model thinks, lowest first."""
LADDER: tuple[Level, ...] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
LEVEL_ALIASES: Mapping[str, Level] = MappingProxyType({"med": "medium", "off": "none"})

DEFAULT_ANSWER = 8192
"""Tokens for the answer, beside any budget, if no limit was given and one must be sent."""
UNSIGNED_CALL = "skip_thought_signature_validator"
"""Google's own value for "this call was not yours": ai.google.dev thought signatures, questions."""

WriterName: TypeAlias = Literal[
    "openai-effort",
    "responses",
    "anthropic-budget",
    "anthropic-adaptive",
    "gemini-budget",
    "gemini-level",
    "openrouter",
    "thinking-type",
    "enable-thinking",
    "template-kwargs",
    "template-responses",
    "template-messages",
    "ollama-think",
    "nova",
    "usual",
    "none",
]
"""`none`: the endpoint accepts no such parameter. `usual`: unknown, so that an explicit setting is
planned in the dialect's usual format and nothing is sent without one.
"""


def as_level(word: str) -> Level | None:
    """The canonical spelling of a level, or None if the word is not one."""
    lowered = word.lower()
    lowered = LEVEL_ALIASES.get(lowered, lowered)
    return next((level for level in LADDER if level == lowered), None)


class TemplateWords(Value, frozen=True):
    """The keywords that tell a model's chat template about thinking: beside the two common
    switches, those that say `on` and `off`, and those that take an effort and a budget. A template
    ignores keywords it does not know.
    """

    on: dict[str, Any] = {}
    off: dict[str, Any] = {}
    effort: str | None = "reasoning_effort"
    budget: str | None = None


_SWITCHES = ("enable_thinking", "thinking")


class ThinkingPlan(Value, frozen=True):
    """What a request asks of the model's thinking."""

    state: Literal["absent", "default", "on", "off"]
    """`absent` sends nothing, `default` leaves thinking to the model but asks to see it, `on` and
    `off` are explicit; an `off` that the writer cannot express is still wanted.
    """
    writer: WriterName = "none"
    """The request format that expresses the plan."""
    effort: str | None = None
    """The wire's own word for how much to think, such as `high`; None sends none."""
    budget: int | None = None
    """The most tokens the model may think; None sends none."""
    summary: str | None = None
    """How detailed a summary of the thinking is requested; None requests none."""
    budget_field: str | None = None
    """The endpoint's name for a budget, where the format itself has none."""
    off_type: str = "disabled"
    """The endpoint's value of `thinking.type` for being off."""
    template: TemplateWords = TemplateWords()
    """The keywords of the model's chat template."""
    thinks: bool = True
    """Whether the model may think in its answer. `absent` can mean off, a model that never thinks,
    or one left to itself, and some endpoints continue thinking when told to stop.
    """


Fragment: TypeAlias = dict[str, Any]


def _openai_effort(plan: ThinkingPlan) -> Fragment:
    return {"reasoning_effort": plan.effort} if plan.effort else {}


def _responses(plan: ThinkingPlan) -> Fragment:
    reasoning: Fragment = {}
    if plan.effort:
        reasoning["effort"] = plan.effort
    if plan.summary and plan.state != "off":
        reasoning["summary"] = plan.summary
    return {"reasoning": reasoning} if reasoning else {}


def _anthropic_budget(plan: ThinkingPlan) -> Fragment:
    if plan.state == "off":
        return {"thinking": {"type": plan.off_type}}
    return _anthropic_enabled(plan)


def _anthropic_enabled(plan: ThinkingPlan) -> Fragment:
    if plan.budget is None:
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": plan.budget}}


def _anthropic_adaptive(plan: ThinkingPlan) -> Fragment:
    if plan.state == "off":
        return {"thinking": {"type": plan.off_type}}
    fragment: Fragment = {"thinking": {"type": "adaptive", "display": "summarized"}}
    if plan.effort:
        fragment["output_config"] = {"effort": plan.effort}
    return fragment


def _gemini(plan: ThinkingPlan, choice: Fragment) -> Fragment:
    config = choice if plan.state == "off" else {**choice, "includeThoughts": True}
    return {"generationConfig": {"thinkingConfig": config}} if config else {}


def _gemini_budget(plan: ThinkingPlan) -> Fragment:
    return _gemini(plan, {} if plan.budget is None else {"thinkingBudget": plan.budget})


def _gemini_level(plan: ThinkingPlan) -> Fragment:
    return _gemini(plan, {"thinkingLevel": plan.effort.upper()} if plan.effort else {})


def _openrouter(plan: ThinkingPlan) -> Fragment:
    if plan.budget is not None:
        return {"reasoning": {"max_tokens": plan.budget}}
    if plan.effort:
        return {"reasoning": {"effort": plan.effort}}
    if plan.state in ("on", "off"):
        return {"reasoning": {"enabled": plan.state == "on"}}
    return {}


def _thinking_type(plan: ThinkingPlan) -> Fragment:
    fragment: Fragment = {}
    if plan.state == "off":
        fragment["thinking"] = {"type": plan.off_type}
    elif plan.state == "on":
        fragment["thinking"] = {"type": "enabled"}
    if plan.effort:
        fragment["reasoning_effort"] = plan.effort
    return fragment


def _enable_thinking(plan: ThinkingPlan) -> Fragment:
    fragment: Fragment = {}
    if plan.state in ("on", "off"):
        fragment["enable_thinking"] = plan.state == "on"
    if plan.budget is not None and plan.state != "off":
        fragment[plan.budget_field or "thinking_budget"] = plan.budget
    if plan.effort:
        fragment["reasoning_effort"] = plan.effort
    return fragment


def _template_words(plan: ThinkingPlan) -> Fragment:
    """The keywords of the chat template, if there are any."""
    words: Fragment = {}
    if plan.state in ("on", "off"):
        is_on, template = plan.state == "on", plan.template
        words = {**dict.fromkeys(_SWITCHES, is_on), **(template.on if is_on else template.off)}
    if plan.effort not in (None, "none") and plan.template.effort:
        words[plan.template.effort] = plan.effort
    if plan.budget and plan.template.budget:
        words[plan.template.budget] = plan.budget
    return {"chat_template_kwargs": words} if words else {}


def _template_budget(plan: ThinkingPlan) -> Fragment:
    if plan.budget is None or not plan.budget_field:
        return {}
    return {plan.budget_field: plan.budget}


def _template_kwargs(plan: ThinkingPlan) -> Fragment:
    return {**_template_words(plan), **_template_budget(plan), **_openai_effort(plan)}


def _template_responses(plan: ThinkingPlan) -> Fragment:
    return {**_template_words(plan), **_template_budget(plan), **_responses(plan)}


def _template_messages(plan: ThinkingPlan) -> Fragment:
    # a budget of 0 ends all thinking, even if the template does not know the switch
    is_off = plan.state == "off" and plan.budget is None
    thinking = _anthropic_budget(plan) if is_off else _anthropic_enabled(plan)
    return {**_template_words(plan), **thinking}


def _ollama_think(plan: ThinkingPlan) -> Fragment:
    if plan.effort and plan.state != "off":
        return {"think": plan.effort}
    return {"think": plan.state == "on"} if plan.state in ("on", "off") else {}


def _nova(plan: ThinkingPlan) -> Fragment:
    if plan.state == "off":
        return {"reasoningConfig": {"type": plan.off_type}}
    if not plan.effort:
        return {}
    return {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": plan.effort}}


def _nothing(plan: ThinkingPlan) -> Fragment:
    return {}


WRITERS: Mapping[WriterName, Callable[[ThinkingPlan], Fragment]] = MappingProxyType(
    {
        "openai-effort": _openai_effort,
        "responses": _responses,
        "anthropic-budget": _anthropic_budget,
        "anthropic-adaptive": _anthropic_adaptive,
        "gemini-budget": _gemini_budget,
        "gemini-level": _gemini_level,
        "openrouter": _openrouter,
        "thinking-type": _thinking_type,
        "enable-thinking": _enable_thinking,
        "template-kwargs": _template_kwargs,
        "template-responses": _template_responses,
        "template-messages": _template_messages,
        "ollama-think": _ollama_think,
        "nova": _nova,
        "usual": _nothing,
        "none": _nothing,
    }
)


class WriterTraits(Value, frozen=True):
    """What applies to every model controlled in this format. Some require the signatures of their
    calls back; `off_budget` is the budget that turns thinking off, if one does; `effort_words` is
    how a user is told about an effort.
    """

    demands_signatures: bool = False
    off_budget: int | None = None
    effort_words: Callable[[str], str] = "{} effort".format


_USUAL = WriterTraits()
_TRAITS: Mapping[WriterName, WriterTraits] = MappingProxyType(
    {
        "gemini-budget": WriterTraits(off_budget=0),
        "gemini-level": WriterTraits(
            demands_signatures=True, effort_words=lambda effort: f"{effort.upper()} level"
        ),
    }
)


def traits_of_writer(name: WriterName) -> WriterTraits:
    """What is known about models from the format that controls them."""
    return _TRAITS.get(name, _USUAL)


def write_thinking(plan: ThinkingPlan) -> Fragment:
    """The part of the request body that expresses the plan; a new value each time."""
    return {} if plan.state == "absent" else WRITERS[plan.writer](plan)


def sayable(plan: ThinkingPlan) -> ThinkingPlan:
    """The plan without what its writer cannot express: what it still claims is in the body."""
    fragment = write_thinking(plan)
    for part in ("effort", "budget"):
        without = msgspec.structs.replace(plan, **{part: None})
        if write_thinking(without) == fragment:
            plan = without
    by_itself = msgspec.structs.replace(plan, state="default")
    if plan.state == "on" and plan.effort is None and plan.budget is None:
        return by_itself if write_thinking(by_itself) == fragment else plan
    return plan
