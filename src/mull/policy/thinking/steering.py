"""What a target is asked for: the choice, before a number is fitted into a window.

What a model accepts comes from its facts (words, a token budget, a switch), what the endpoint
accepts from its compat row (the writer). For an unknown model, the setting is sent as it is; for an
unknown endpoint, it is sent in its dialect's usual format, and the user is told that this is a
guess. Nothing is claimed about an unknown model, and nothing here depends on a model's name.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from mull.dialects.traits import TRAITS
from mull.neutral.blocks import Value
from mull.neutral.target import ModelFacts, ReasoningOption, Target
from mull.neutral.thinking import (
    LADDER,
    WRITERS,
    Level,
    ThinkingPlan,
    WriterName,
    write_thinking,
)
from mull.policy.thinking.budget import (
    ANY_BUDGET,
    budget_for_level,
    check_range,
    least,
    level_for_budget,
    most,
)
from mull.policy.thinking.wish import Wish

__all__ = [
    "BY_ITSELF",
    "CANNOT_STOP",
    "DEFAULT_BUDGET",
    "LEFT",
    "MAY_GO_ON",
    "Choice",
    "cannot_stop",
    "choose",
    "choose_off",
]

SMALL_BUDGET = 512
"""For a model that turned out to be unable to stop, although its range starts at 0."""
DEFAULT_BUDGET = 10_000
"""The default budget of a budget model (document 002)."""
DEFAULT_LEVEL: Level = "medium"
"""The default for a model controlled by words that does not think by itself, but should."""

CANNOT_STOP = "This model does not support disabling thinking"
MAY_GO_ON = "thinking may continue"
_ALWAYS = "always on"
LEFT, BY_ITSELF = "left to the endpoint", "the model's default"
"""The effect if a request says nothing: in general, or for a model whose default is known."""
_SETTLE = "set thinkingWriter in a [[compat]] row"


class Choice(Value, frozen=True):
    """How a request is to control thinking."""

    state: Literal["absent", "default", "on", "off"]
    """Whether the request says nothing, asks only to see the thinking, or turns it on or off."""
    silent: str = LEFT
    """The effect if the request says nothing about thinking, in words for the user."""
    name: str | None = None
    """What a number or word stands for, in words for the user, such as the level that became a
    budget.
    """
    writer: WriterName | None = None
    """The request format; None is that of the compat row."""
    effort: str | None = None
    """The endpoint's own word for how much to think; None sends none."""
    budget: int | None = None
    """The most tokens the model may think; None sends none."""
    explicit: bool = False
    """Whether the budget is the user's own number."""
    guessed: bool = False
    """Whether it is unknown how the endpoint controls thinking, so that a usual format is tried."""
    thinks: bool = True
    """Whether the model may think in its answer."""
    warnings: tuple[str, ...] = ()
    """What the user should know because it is not as requested."""


class _Means(Value, frozen=True):
    """How the endpoint is told about thinking: by which words, which number, which switch.

    `guessed` means that its row does not say, and that the usual format is tried. `templated` is a
    server that renders the template of whatever model it was given: what is known about the model
    elsewhere does not apply to it.
    """

    writer: WriterName
    guessed: bool = False
    words: WriterName | None = None
    budget: WriterName | None = None
    switch: bool = False
    templated: bool = False

    @property
    def unsure(self) -> bool:
        """Whether nothing is known to be understood."""
        return self.guessed or self.writer == "none"


def _means_of(target: Target) -> _Means:
    row = target.compat.thinking_writer
    writer = TRAITS[target.dialect].usual_writer if row == "usual" else row
    form = WRITERS[writer]
    words = writer if form.takes_words else None
    if words is None and target.facts.budget is None:
        words = form.words_of_unknown
    budget = form.budget
    if form.budget_needs_field and not target.compat.budget_field:
        budget = None
    guessed = row == "usual" or target.compat.thinking_is_guess
    templated = form.is_template and not target.known
    return _Means(writer, guessed, words, budget, form.has_switch, templated)


def choose(target: Target, wish: Wish) -> Choice:
    """What to ask this target for.

    Raises:
        BudgetError: the user's budget is outside the model's range.
    """
    facts, means = target.facts, _means_of(target)
    if target.known and not facts.reasoning:
        wants = wish.is_said and not wish.is_off
        warnings = (f"{target.model} does not reason",) if wants else ()
        words = "none (this model does not reason)"
        return Choice("absent", words, thinks=False, warnings=warnings)
    if not wish.is_said and (target.wants_thinking or facts.own_reasoning):
        wish = Wish(on=True)
    steered = wish.says_how_much or (wish.is_off and means.templated)
    if facts.always_thinks and (target.known or not steered):
        return _always(target, means, wish)
    if not wish.is_said:
        return _by_default(target, means)
    if means.writer == "none" or (means.guessed and not wish.explicit):
        return _unsayable(target, wish)
    choice = _choose(target, means, wish)
    choice = msgspec.structs.replace(choice, writer=choice.writer or means.writer)
    return _as_guess(choice, wish) if means.guessed else choice


def choose_off(target: Target) -> Choice:
    """What to ask for if a request must not think, whatever the settings."""
    return choose(target, Wish(level="none", explicit=False))


def _choose(target: Target, means: _Means, wish: Wish) -> Choice:
    if wish.level == "none":
        return _off(target, means)
    if wish.budget is not None:
        return _budget(target, means, wish.budget, wish.level)
    if wish.level is not None:
        return _level(target, means, wish.level)
    return _on(target, means)


def _as_guess(choice: Choice, wish: Wish) -> Choice:
    """The same choice, marked as a guess if it says anything at all."""
    if choice.state not in ("on", "off"):
        return choice
    is_off = choice.state == "off"
    what = "off" if is_off else choice.effort or wish.words
    told = (
        f"it is not known how this endpoint controls thinking: {what} is sent as most "
        f"servers accept it{f', and {MAY_GO_ON}' if is_off else ''}; "
        f"{_SETTLE}"
    )
    warnings = (*choice.warnings, told)
    return msgspec.structs.replace(choice, guessed=True, thinks=True, warnings=warnings)


def _unsayable(target: Target, wish: Wish) -> Choice:
    """No parameter is accepted here, or only mull itself wants to send one."""
    facts, explicit = target.facts, wish.explicit
    if wish.on and facts.thinks_by_default:
        return Choice("absent", BY_ITSELF)
    if not wish.is_off:
        told = f"{target.model} accepts no thinking parameter here: {wish.words} not sent"
        return Choice("absent", warnings=(told,) if explicit else ())
    if _silence_is_off(facts):
        return Choice("absent", "off", thinks=False)
    if cannot_stop(facts):
        return Choice("absent", _ALWAYS, warnings=(CANNOT_STOP,))
    if not explicit:
        return Choice("absent")
    told = f"it is not known how to turn thinking off for {target.model} here: {MAY_GO_ON}"
    return Choice("off", f"{LEFT}: {MAY_GO_ON}", warnings=(told,))


def _always(target: Target, means: _Means, wish: Wish) -> Choice:
    """A model that is known to always think: only showing it can be requested."""
    warnings: tuple[str, ...] = ()
    if wish.is_off:
        warnings = (CANNOT_STOP,)
    elif wish.says_how_much:
        budget = wish.budget
        unsent = () if budget is None else (f"{_no_budget(target, budget)} not sent",)
        uncontrolled = ("This model's thinking cannot be controlled",) if wish.level else ()
        warnings = unsent + uncontrolled
    return Choice("absent" if means.unsure else "default", _ALWAYS, warnings=warnings)


def _silence_is_off(facts: ModelFacts) -> bool:
    return facts.reasoning and facts.thinks_by_default is False and "none" not in facts.efforts


def cannot_stop(facts: ModelFacts) -> bool:
    """Whether it is known that thinking cannot be turned off; for an unknown model it is not."""
    if facts.can_be_off is not None:
        return not facts.can_be_off
    return bool(facts.reasoning_options) and not facts.can_stop_thinking


def _off(target: Target, means: _Means) -> Choice:
    facts = target.facts
    if cannot_stop(facts) and not means.templated:
        return _least(target, means)
    if means.templated:
        return _switched_off(target, means)
    if _silence_is_off(facts) and (target.known or means.guessed):
        return Choice("absent", "off", thinks=False)
    says_none = WRITERS[means.writer].switches_by_word or "none" in facts.efforts
    effort = "none" if means.words == means.writer and says_none else None
    budget = WRITERS[means.writer].off_budget
    if not write_thinking(ThinkingPlan("off", means.writer, effort, budget)):
        return _unsayable(target, Wish(level="none"))
    thinks = facts.off_type != "disabled"
    return Choice("off", effort=effort, budget=budget, thinks=thinks)


def _switched_off(target: Target, means: _Means) -> Choice:
    """Off by the template's switch, and reliably so if the server ends thinking by its budget.

    A model that has words for thinking and none for stopping also gets its lowest one.
    """
    facts, told = target.facts, tuple[str, ...]()
    efforts = _thinking_words(facts) if cannot_stop(facts) else ()
    budget = 0 if target.compat.zero_budget_ends and means.budget else None
    effort = efforts[0] if efforts else "none" if means.guessed else None
    thinks = cannot_stop(facts) and (budget is None or bool(efforts))
    if thinks:
        told = (f"{target.model} is known to always think: it is told not to, and {MAY_GO_ON}",)
    return Choice("off", effort=effort, budget=budget, thinks=thinks, warnings=told)


def _least(target: Target, means: _Means) -> Choice:
    """As little thinking as possible for a model that cannot stop."""
    facts, warnings = target.facts, (CANNOT_STOP,)
    efforts = _thinking_words(facts)
    if means.words and (efforts or means.guessed):
        lowest = efforts[0] if efforts else "low"
        return Choice("on", _ALWAYS, "minimum", means.words, effort=lowest, warnings=warnings)
    if facts.budget and means.budget:
        low = least(facts.budget) or SMALL_BUDGET
        return Choice("on", _ALWAYS, "minimum", means.budget, budget=low, warnings=warnings)
    return Choice("default", _ALWAYS, warnings=warnings)


def _budget(target: Target, means: _Means, budget: int, level: Level | None) -> Choice:
    """A number where one can be sent, else the level said beside it, else the level that it is
    worth.
    """
    facts, through, option = target.facts, means.budget, _range(target.facts, means)
    if option and through:
        fits = check_range(option, budget, target.model)
        changed = (
            f"budget {budget:,} → {fits:,}, the range of {target.model} according to an "
            "earlier rejection"
        )
        warnings = () if fits == budget else (changed,)
        return Choice("on", writer=through, budget=fits, explicit=True, warnings=warnings)
    if through and (not facts.reasoning_options or not target.known):
        # a server enforces it for any of its models
        return Choice("on", writer=through, budget=budget, explicit=True)
    choice = _level(target, means, level or level_for_budget(option or ANY_BUDGET, budget))
    done = "not sent"
    if choice.effort is not None:
        done = (
            f"sent as {choice.effort}" if level is None else f"not sent, {choice.effort} effort is"
        )
    told = f"{_no_budget(target, budget)} {done}"
    return msgspec.structs.replace(choice, warnings=(told, *(choice.warnings if level else ())))


def _no_budget(target: Target, budget: int) -> str:
    return f"{target.model} accepts no token budget: {budget:,} tokens"


def _level(target: Target, means: _Means, level: Level) -> Choice:
    facts, efforts = target.facts, _thinking_words(target.facts)
    if efforts and means.words:
        nearest = _nearest(level, efforts)
        told = f"This model has no {level} level: using {nearest}"
        warnings = () if nearest == level else (told,)
        budget = _below_words(target, means, level, efforts)
        if budget is not None:
            return Choice("on", name=level, writer=means.words, effort=nearest, budget=budget)
        return Choice("on", writer=means.words, effort=nearest, warnings=warnings)
    if means.budget and target.compat.level_budgets and not facts.budget:
        return _counted(target, means, level)
    option = _range(facts, means)
    if option and means.budget:
        budget = budget_for_level(option, level)
        if budget == 0:
            warnings = (f"{level} turns thinking off on this model",)
            return msgspec.structs.replace(_off(target, means), warnings=warnings)
        warnings = () if facts.budget or means.guessed else (_as_asked(target, level),)
        return Choice("on", name=level, writer=means.budget, budget=budget, warnings=warnings)
    if means.words and (not facts.reasoning_options or not target.known or means.guessed):
        effort = _nearest(level, WRITERS[means.words].words)
        warnings = () if means.guessed else (_as_asked(target, level, effort),)
        return Choice("on", writer=means.words, effort=effort, warnings=warnings)
    return _switched(target, means, level)


def _below_words(
    target: Target, means: _Means, level: Level, efforts: tuple[Level, ...]
) -> int | None:
    """What the server's token limit can add if a level is below all words of the model."""
    if means.words != means.budget or LADDER.index(level) >= LADDER.index(efforts[0]):
        return None
    return target.compat.level_budgets.get(level)


def _counted(target: Target, means: _Means, level: Level) -> Choice:
    """A level as a number of tokens that the server enforces; the highest have none.

    An unknown model gets the word too: its template may know it.
    """
    budget, unknown = target.compat.level_budgets.get(level), not target.facts.reasoning
    effort = level if unknown and means.words else None
    name = None if effort and budget is None else level
    warnings = (_as_asked(target, level),) if unknown else ()
    return Choice("on", LEFT, name, means.budget, effort, budget, warnings=warnings)


def _range(facts: ModelFacts, means: _Means) -> ReasoningOption | None:
    """The range of the model's budgets; any, if the endpoint understands only numbers."""
    return facts.budget or (ANY_BUDGET if means.words is None else None)


def _as_asked(target: Target, level: Level, effort: Level | None = None) -> str:
    who = f"{target.model} is not in the catalog"
    if target.known:
        who = f"the catalog does not list the levels of {target.model}"
    return f"{who}: {level} is sent as {'asked' if effort in (None, level) else effort}"


def _switched(target: Target, means: _Means, level: Level) -> Choice:
    """A level for a model that is on or off, or that can only be told so here."""
    facts = target.facts
    warnings = (f"This model's thinking is on or off: {level} means on",)
    if means.switch:
        return Choice("on", warnings=warnings)
    if means.writer == "anthropic-adaptive":
        return msgspec.structs.replace(_default(target, means), warnings=warnings)
    if not facts.has_toggle and not facts.efforts:
        told = f"mull knows no way to request {level} from {target.model} here: not sent"
        return Choice("default", _by_itself(facts), warnings=(told,))
    if _is_switched_by_words(facts, means):
        return Choice("on", effort=level, warnings=warnings)
    silent = f"on ({BY_ITSELF})" if facts.thinks_by_default else _by_itself(facts)
    return Choice("default", silent, warnings=warnings)


def _is_switched_by_words(facts: ModelFacts, means: _Means) -> bool:
    """Whether a model that knows only on and off needs a word to think."""
    by_word = WRITERS[means.writer].switches_by_word and facts.has_toggle
    return by_word and facts.thinks_by_default is not True


def _on(target: Target, means: _Means) -> Choice:
    """Make it think, as much as is usual for it."""
    facts, efforts = target.facts, _thinking_words(target.facts)
    unknown = not facts.reasoning_options
    budgeted = means.writer == "anthropic-budget" and facts.budget
    switched = means.switch and (unknown or facts.has_toggle)
    by_itself = facts.thinks_by_default and not budgeted and not switched
    if means.writer == "anthropic-adaptive" or by_itself:
        return _default(target, means)
    if switched:
        return Choice("on")
    if means.words and (unknown or efforts):
        effort = _nearest(DEFAULT_LEVEL, efforts or LADDER)
        return Choice("on", writer=means.words, effort=effort)
    option = _range(facts, means)
    if option and means.budget:
        budget = min(max(DEFAULT_BUDGET, least(option)), most(option))
        return Choice("on", name="default", writer=means.budget, budget=budget)
    if _is_switched_by_words(facts, means):
        return Choice("on", effort=DEFAULT_LEVEL)
    return _default(target, means)


def _by_default(target: Target, means: _Means) -> Choice:
    """Nothing was requested: a model that can think does so, if it is known how to request it."""
    facts = target.facts
    if not facts.reasoning or means.unsure:
        return Choice("absent")
    unsure = facts.thinks_by_default is None and WRITERS[means.writer].switch_is_harmless
    sayable = not facts.thinks_by_default and (facts.reasoning_options or unsure)
    budgeted = means.writer == "anthropic-budget" and facts.budget is not None
    return _on(target, means) if budgeted or sayable else _default(target, means)


def _default(target: Target, means: _Means) -> Choice:
    """What the model does by itself; it is only asked to show it."""
    facts = target.facts
    if means.unsure:
        return Choice("absent")
    if means.writer == "anthropic-adaptive":
        return Choice("default", "adaptive")
    usual = facts.default_effort if facts.default_effort != "none" else None
    return Choice("default", f"default ({usual})" if usual else _by_itself(facts))


def _by_itself(facts: ModelFacts) -> str:
    """What a model does that is told nothing; of most models nobody knows."""
    if facts.thinks_by_default is None:
        return LEFT
    return BY_ITSELF if facts.thinks_by_default else f"off ({BY_ITSELF})"


def _thinking_words(facts: ModelFacts) -> tuple[Level, ...]:
    """The levels with thinking, lowest first."""
    return tuple(word for word in facts.efforts if word != "none")


def _nearest(level: Level, available: tuple[Level, ...]) -> Level:
    """The nearest level of the model: upward first, then downward."""
    rank = LADDER.index(level)
    above = [one for one in available if LADDER.index(one) >= rank]
    return above[0] if above else available[-1]
