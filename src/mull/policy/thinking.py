"""From what the user wants of thinking to what the request asks for, with the reasons.

One ladder of levels for all models. What a model takes comes from its facts (words, a token
budget, a switch), what the endpoint takes from its compat row (the writer); this file joins the
two and says what became of the wish. Nothing here knows a model's name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from mull.neutral.blocks import Value
from mull.neutral.errors import BudgetError
from mull.neutral.messages import Dialect
from mull.neutral.request import Note
from mull.neutral.target import Target
from mull.neutral.thinking import LADDER, Level, ThinkingPlan, WriterName, write_thinking
from mull.policy.budget import (
    ANSWER_ROOM,
    Window,
    budget_for_level,
    check_range,
    fit_budget,
    least,
    most,
    shrink_for_context,
)

if TYPE_CHECKING:
    from mull.settings.layers import Snapshot

__all__ = [
    "LevelRow",
    "Planned",
    "Wish",
    "asking_least",
    "feedback",
    "level_table",
    "plan_thinking",
    "plan_without_thinking",
    "window_of",
    "wish_of",
]

SMALL_BUDGET = 512
"""For a model that turned out to be unable to stop, although its range begins at 0."""
DEFAULT_BUDGET = 10_000
"""What a budget model gets when nobody said anything (document 002)."""

MAX_TOKENS_REQUIRED: frozenset[Dialect] = frozenset({"anthropic"})
"""Dialects whose requests are refused without max_tokens."""

CANNOT_STOP = "This model does not support disabling thinking"

_TAKES_WORDS: frozenset[WriterName] = frozenset(
    {
        "openai-effort",
        "responses",
        "anthropic-adaptive",
        "gemini-level",
        "openrouter",
        "thinking-type",
        "enable-thinking",
        "template-kwargs",
        "ollama-think",
    }
)
_BUDGET_WRITER: dict[WriterName, WriterName] = {
    "anthropic-budget": "anthropic-budget",
    "anthropic-adaptive": "anthropic-budget",
    "gemini-budget": "gemini-budget",
    "openrouter": "openrouter",
    "enable-thinking": "enable-thinking",
    "template-kwargs": "template-kwargs",
}
_ASKS_TO_SEE: frozenset[WriterName] = frozenset(
    {"responses", "anthropic-adaptive", "gemini-budget", "gemini-level"}
)
_SHARE_OF_OUTPUT = {"minimal": 10, "low": 20, "medium": 50, "high": 80, "xhigh": 95}
_RESPONSES_BUFFER = 25_000


class Wish(Value, frozen=True):
    """What the user wants: off, a budget, a level, or nothing said. `about` is the setting."""

    about: str = "reasoning.effort"
    level: Level | None = None
    budget: int | None = None

    @property
    def words(self) -> str:
        """The wish as the user put it."""
        if self.budget is not None:
            return f"{self.budget:,} tokens"
        return self.level or "unset"


class Planned(Value, frozen=True):
    """The plan, the max_tokens it needs, what to tell the user, and the one-line summary.

    `thinks` is whether the model may think in answer to this request.
    """

    plan: ThinkingPlan
    summary: str
    thinks: bool = True
    max_tokens: int | None = None
    notes: tuple[Note, ...] = ()


class LevelRow(Value, frozen=True):
    """What one level becomes on one model."""

    level: str
    text: str
    sent_as: str
    warning: str | None = None


class _Choice(Value, frozen=True):
    state: Literal["absent", "default", "on", "off"]
    summary: str
    writer: WriterName | None = None
    effort: str | None = None
    budget: int | None = None
    explicit: bool = False
    thinks: bool = True
    warnings: tuple[str, ...] = ()


def window_of(target: Target, snapshot: Snapshot) -> int | None:
    """The tokens a request to this target may hold; the user's own number goes before any."""
    limit = target.facts.limit
    window: int | None = snapshot["context.limit"] or limit.input or limit.context
    return window


def wish_of(snapshot: Snapshot) -> Wish:
    """Read the wish out of the settings: off beats a budget, a budget beats a level."""
    if not snapshot["reasoning.enabled"]:
        return Wish("reasoning.enabled", level="none")
    budget: int | None = snapshot["reasoning.maxTokens"]
    if budget is not None:
        return Wish("reasoning.maxTokens", budget=budget)
    return Wish("reasoning.effort", level=snapshot["reasoning.effort"])


def asking_least(snapshot: Snapshot) -> Snapshot:
    """The settings with the wish for no thinking, or for the least that the model takes."""
    return snapshot.having({"reasoning.effort": "none", "reasoning.maxTokens": None})


def plan_thinking(
    target: Target, snapshot: Snapshot, *, max_tokens: int | None = None, used: int = 0
) -> Planned:
    """Decide what this request asks of the model's thinking.

    `max_tokens` is the user's own limit on the answer, `used` the tokens already in the context.

    Raises:
        BudgetError: numbers that the user gave cannot hold.
    """
    return _plan(target, snapshot, wish_of(snapshot), max_tokens, used)


def plan_without_thinking(
    target: Target, snapshot: Snapshot, reason: str, *, max_tokens: int | None = None, used: int = 0
) -> Planned:
    """The plan for a request that must not think, whatever was wished."""
    planned = _plan(target, snapshot, Wish(level="none"), max_tokens, used)
    note = Note(about="reasoning.enabled", text=reason, warning=True, effective=planned.summary)
    return msgspec.structs.replace(planned, notes=(note, *planned.notes))


def level_table(target: Target, snapshot: Snapshot) -> tuple[LevelRow, ...]:
    """What every level of the ladder, and no level at all, becomes on this target."""
    rows = []
    for level in (None, *LADDER):
        planned = _plan(target, snapshot, Wish(level=level), None, 0)
        warnings = [note.text for note in planned.notes if note.warning]
        fragment = write_thinking(planned.plan)
        sent = msgspec.json.encode(fragment).decode() if fragment else "nothing"
        rows.append(LevelRow(level or "unset", planned.summary, sent, "; ".join(warnings) or None))
    return tuple(rows)


def feedback(target: Target, planned: Planned) -> tuple[str, ...]:
    """The lines a user sees after choosing a model (document 004)."""
    responses = target.dialect == "openai-responses"
    api = " (Responses API)" if responses else ""
    lines = [f"✓ Switched to {target.provider_name} {target.model}{api}"]
    lines += [f"  ⚠ {note.text}" for note in planned.notes if note.warning]
    lines.append(f"  Thinking: {planned.summary}")
    if responses and planned.plan.effort not in (None, "none"):
        lines.append(f"  Recommended output buffer: {_RESPONSES_BUFFER:,} tokens")
    return tuple(lines)


def _plan(
    target: Target, snapshot: Snapshot, wish: Wish, max_tokens: int | None, used: int
) -> Planned:
    choice = _choose(target, wish)
    notes = [Note(about=wish.about, text=text, warning=True) for text in choice.warnings]
    window = Window(
        max_tokens=max_tokens,
        output=target.facts.limit.output,
        context=window_of(target, snapshot),
        used=used,
    )
    if window.is_full:
        text = f"the request holds about {used:,} tokens of a window of {window.context:,}"
        notes.append(Note(about="context.limit", text=text, warning=True, kind="full"))
    _check_limit(target, max_tokens)
    if choice.budget:
        choice, max_tokens, more = _fit(target, snapshot, choice, window)
        notes += more
    if max_tokens is None and target.dialect in MAX_TOKENS_REQUIRED:
        max_tokens = window.ceiling or ANSWER_ROOM
    summary = snapshot["reasoning.summary"]
    plan = ThinkingPlan(
        state=choice.state,
        writer=choice.writer or target.compat.thinking_writer,
        effort=choice.effort,
        budget=choice.budget,
        summary=None if summary == "none" else summary,
        budget_field=target.compat.budget_field,
        off_type=target.facts.off_type,
        template_key=target.compat.template_key,
        thinks=choice.thinks,
    )
    fragment = write_thinking(plan)
    outcome = Note(
        about=wish.about,
        text=choice.summary,
        requested=wish.words,
        effective=choice.summary,
        sent_as=msgspec.json.encode(fragment).decode() if fragment else None,
        kind="outcome",
    )
    return Planned(plan, choice.summary, choice.thinks, max_tokens, (*notes, outcome))


def _check_limit(target: Target, max_tokens: int | None) -> None:
    limit = target.facts.limit.output
    if max_tokens is not None and limit and max_tokens > limit:
        raise BudgetError(
            f"max_tokens {max_tokens:,} is over {limit:,}, the most {target.model} can answer"
        )


def _choose(target: Target, wish: Wish) -> _Choice:
    facts, writer = target.facts, target.compat.thinking_writer
    asked = wish.budget is not None or wish.level is not None
    if not facts.reasoning and (target.known or wish.level == "none" or not asked):
        warnings = () if not asked or wish.level == "none" else (f"{target.model} does not reason",)
        if not target.known:
            return _Choice("absent", "left to the endpoint")
        words = "none (this model does not reason)"
        return _Choice("absent", words, thinks=False, warnings=warnings)
    unsteered = target.known and not facts.reasoning_options
    if writer == "none" and not unsteered:
        warnings = ("no way to steer thinking is known for this endpoint",) if asked else ()
        return _Choice("absent", "left to the endpoint", warnings=warnings)
    if wish.level == "none":
        return _choose_off(target)
    if wish.budget is not None:
        return _choose_budget(target, wish.budget)
    if wish.level is not None:
        return _choose_level(target, wish.level)
    return _choose_default(target)


def _choose_off(target: Target) -> _Choice:
    facts, writer = target.facts, target.compat.thinking_writer
    if facts.can_stop_thinking:
        if facts.thinks_by_default is False and "none" not in facts.efforts:
            return _Choice("absent", "off", thinks=False)
        says_none = writer == "openai-effort" or "none" in facts.efforts
        effort = "none" if writer in _TAKES_WORDS and says_none else None
        budget = 0 if writer == "gemini-budget" else None
        thinks = facts.off_type != "disabled"
        return _Choice("off", "off", effort=effort, budget=budget, thinks=thinks)
    warnings = (CANNOT_STOP,)
    if facts.efforts and writer in _TAKES_WORDS:
        lowest = facts.efforts[0]
        words = f"{_effort_words(writer, lowest, share=False)} (minimum)"
        return _Choice("on", words, effort=lowest, warnings=warnings)
    if facts.budget and writer in _BUDGET_WRITER:
        low = least(facts.budget) or SMALL_BUDGET
        return _Choice("on", f"minimum ({low:,} tokens)", budget=low, warnings=warnings)
    return _Choice("default", "always on", warnings=warnings)


def _choose_budget(target: Target, budget: int) -> _Choice:
    facts, writer = target.facts, target.compat.thinking_writer
    words = f"{budget:,} tokens"
    through = _BUDGET_WRITER.get(writer)
    if facts.budget and through:
        fits = check_range(facts.budget, budget, target.model)
        changed = f"budget {budget:,} → {fits:,}, as {target.model} takes it by what it refused"
        warnings = () if fits == budget else (changed,)
        words = f"{fits:,} tokens"
        return _Choice("on", words, through, budget=fits, explicit=True, warnings=warnings)
    if not target.known and through:
        return _Choice("on", words, through, budget=budget, explicit=True)
    unsteered = _choose_default(target)
    warning = f"{target.model} takes no token budget: {words} not sent"
    return msgspec.structs.replace(unsteered, warnings=(warning,))


def _choose_level(target: Target, level: Level) -> _Choice:
    facts, writer = target.facts, target.compat.thinking_writer
    takes_words = writer in _TAKES_WORDS
    efforts = tuple(word for word in facts.efforts if word != "none")
    if efforts and takes_words:
        nearest = _nearest(level, efforts)
        warnings = (
            () if nearest == level else (f"This model has no {level} level: using {nearest}",)
        )
        return _Choice("on", _effort_words(writer, nearest), effort=nearest, warnings=warnings)
    if facts.budget and writer in _BUDGET_WRITER:
        budget = budget_for_level(facts.budget, level)
        if budget == 0:
            off = _choose_off(target)
            return msgspec.structs.replace(off, warnings=(f"{level} is off on this model",))
        return _Choice("on", f"{level} ({budget:,} tokens)", _BUDGET_WRITER[writer], budget=budget)
    if not target.known and takes_words:
        warnings = (f"{target.model} is not in the catalog: {level} is sent as asked",)
        return _Choice("on", _effort_words(writer, level), effort=level, warnings=warnings)
    if facts.has_toggle or facts.efforts:
        warnings = (f"This model's thinking is on or off: {level} means on",)
        return _Choice("on", "on", warnings=warnings)
    warnings = ("This model's thinking cannot be steered",)
    return _Choice("default", "always on", warnings=warnings)


def _choose_default(target: Target) -> _Choice:
    facts, writer = target.facts, target.compat.thinking_writer
    if not facts.reasoning:
        return _Choice("absent", "left to the endpoint")
    if target.known and not facts.reasoning_options:
        return _Choice("default", "always on")
    if writer == "anthropic-budget" and facts.budget:
        budget = min(max(DEFAULT_BUDGET, least(facts.budget)), most(facts.budget))
        return _Choice("on", f"default ({budget:,} tokens)", budget=budget)
    if facts.thinks_by_default is False and facts.has_toggle and writer not in _ASKS_TO_SEE:
        return _Choice("on", "on")
    if facts.thinks_by_default is False and target.wants_thinking:
        return _choose_level(target, "medium")
    word = f"default ({facts.default_effort})" if facts.default_effort else "the model's default"
    return _Choice("default", "adaptive" if writer == "anthropic-adaptive" else word)


def _fit(
    target: Target, snapshot: Snapshot, choice: _Choice, window: Window
) -> tuple[_Choice, int | None, list[Note]]:
    facts, budget, notes = target.facts, choice.budget, list[Note]()
    assert budget is not None
    option = facts.budget
    if option is None:  # an unknown model with the user's own number: nothing to fit it to
        return choice, window.max_tokens, notes
    if snapshot["reasoning.dynamicBudget"]:
        over, cap = snapshot["reasoning.dynamicBudgetOver"], snapshot["reasoning.dynamicBudgetCap"]
        budget, note = shrink_for_context(budget, window.used, over, max(cap, least(option)))
        notes += [note] if note else []
    users_own = choice.explicit and not choice.warnings and not notes
    fit = fit_budget(budget, explicit=users_own, option=option, window=window)
    notes += fit.notes
    if fit.budget is None:
        if facts.can_stop_thinking:
            off = _choose_off(target)
            return off, window.max_tokens, notes
        fit = msgspec.structs.replace(fit, budget=least(option))
    if fit.budget != choice.budget:
        word = choice.summary.partition(" (")[0]
        summary = f"{fit.budget:,} tokens" if choice.explicit else f"{word} ({fit.budget:,} tokens)"
        choice = msgspec.structs.replace(choice, budget=fit.budget, summary=summary)
    needed = target.dialect in MAX_TOKENS_REQUIRED
    return choice, fit.max_tokens if needed else window.max_tokens, notes


def _nearest(level: Level, available: tuple[Level, ...]) -> Level:
    """The nearest level the model has: upward first, then downward."""
    rank = LADDER.index(level)
    above = [one for one in available if LADDER.index(one) >= rank]
    return above[0] if above else available[-1]


def _effort_words(writer: WriterName, effort: str, *, share: bool = True) -> str:
    if writer == "gemini-level":
        return f"{effort.upper()} level"
    if writer == "responses" and share and effort in _SHARE_OF_OUTPUT:
        return f"{effort} effort (~{_SHARE_OF_OUTPUT[effort]}% of output budget)"
    return f"{effort} effort"
