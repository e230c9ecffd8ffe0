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
    "Writer",
    "WriterName",
    "as_level",
    "sayable",
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


class Writer(Value, frozen=True):
    """A request format for thinking, and what applies to every model and endpoint that takes it."""

    write: Callable[[ThinkingPlan], Fragment]
    """The part of the request body that expresses a plan."""
    takes_words: bool = False
    """Whether it can say an effort."""
    words: tuple[Level, ...] = LADDER
    """The efforts that its endpoints accept, whatever the model."""
    sure_words: tuple[Level, ...] = ()
    """The efforts that every model accepts which it controls by words."""
    words_of_unknown: WriterName | None = None
    """The format that says an effort to an unknown model, if this one cannot: such a model is newer
    than those that take budgets.
    """
    budget: WriterName | None = None
    """The format that says a budget: this one or its relative; None if neither can."""
    budget_needs_field: bool = False
    """Whether a budget goes out only if the compat row names its field."""
    off_budget: int | None = None
    """The budget that turns thinking off, if one does."""
    has_switch: bool = False
    """Whether it can say on without an amount."""
    switch_is_harmless: bool = False
    """Whether its switch harms no model that reasons, whether or not it is known to have one."""
    switches_by_word: bool = False
    """Whether any effort says on, and the word `none` off; a server may ignore that word."""
    is_template: bool = False
    """Whether its servers render the model's chat template and pass parameters on to it."""
    other_shape: WriterName | None = None
    """The format that the same API's other models take."""
    demands_signatures: bool = False
    """Whether its models require the signatures of their calls back."""
    refuses_forced_tools: bool = False
    """Whether its endpoints reject a forced tool while the model thinks."""
    chain_starts_with_thought: bool = False
    """Whether its endpoints reject thinking in a tool chain that began without any."""
    effort_words: Callable[[str], str] = "{} effort".format
    """How a user is told about an effort."""


WRITERS: Mapping[WriterName, Writer] = MappingProxyType(
    {
        "openai-effort": Writer(_openai_effort, takes_words=True, switches_by_word=True),
        "responses": Writer(_responses, takes_words=True, switches_by_word=True),
        "anthropic-budget": Writer(
            _anthropic_budget,
            budget="anthropic-budget",
            other_shape="anthropic-adaptive",
            refuses_forced_tools=True,
            chain_starts_with_thought=True,
        ),
        "anthropic-adaptive": Writer(
            _anthropic_adaptive,
            takes_words=True,
            words=("low", "medium", "high", "xhigh", "max"),
            sure_words=("low", "medium", "high"),
            budget="anthropic-budget",
            other_shape="anthropic-budget",
            refuses_forced_tools=True,
        ),
        "gemini-budget": Writer(
            _gemini_budget,
            words_of_unknown="gemini-level",
            budget="gemini-budget",
            off_budget=0,
            other_shape="gemini-level",
        ),
        "gemini-level": Writer(
            _gemini_level,
            takes_words=True,
            words=("minimal", "low", "medium", "high"),
            sure_words=("low", "high"),
            other_shape="gemini-budget",
            demands_signatures=True,
            effort_words=lambda effort: f"{effort.upper()} level",
        ),
        "openrouter": Writer(
            _openrouter,
            takes_words=True,
            budget="openrouter",
            has_switch=True,
            switch_is_harmless=True,
        ),
        "thinking-type": Writer(_thinking_type, takes_words=True, has_switch=True),
        "enable-thinking": Writer(
            _enable_thinking,
            takes_words=True,
            budget="enable-thinking",
            has_switch=True,
            refuses_forced_tools=True,
        ),
        "template-kwargs": Writer(
            _template_kwargs,
            takes_words=True,
            budget="template-kwargs",
            budget_needs_field=True,
            has_switch=True,
            switch_is_harmless=True,
            is_template=True,
        ),
        "template-responses": Writer(
            _template_responses,
            takes_words=True,
            budget="template-responses",
            budget_needs_field=True,
            has_switch=True,
            switch_is_harmless=True,
            is_template=True,
        ),
        "template-messages": Writer(
            _template_messages,
            takes_words=True,
            budget="template-messages",
            has_switch=True,
            switch_is_harmless=True,
            is_template=True,
        ),
        "ollama-think": Writer(
            _ollama_think,
            takes_words=True,
            words=("low", "medium", "high", "max"),
            has_switch=True,
        ),
        "nova": Writer(_nova, takes_words=True, words=("low", "medium", "high")),
        "usual": Writer(_nothing),
        "none": Writer(_nothing),
    }
)


def write_thinking(plan: ThinkingPlan) -> Fragment:
    """The part of the request body that expresses the plan; a new value each time."""
    return {} if plan.state == "absent" else WRITERS[plan.writer].write(plan)


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
