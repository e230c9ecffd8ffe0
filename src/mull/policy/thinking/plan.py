"""From the user's thinking settings to what the request asks for, with the reasons.

There is one scale of levels for all models. What a model accepts comes from its facts (words, a
token budget, a switch), what the endpoint accepts from its compat row (the writer); this module
combines the two and reports the result. Nothing here depends on a model's name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mull.dialects.traits import TRAITS
from mull.neutral.blocks import Value
from mull.neutral.errors import BudgetError
from mull.neutral.recent import RecentOf
from mull.neutral.request import Note
from mull.neutral.target import Target
from mull.neutral.thinking import (
    LADDER,
    WRITERS,
    ThinkingPlan,
    WriterName,
    sayable,
    write_thinking,
)
from mull.policy.heal.amendment import UNAMENDED, Amendment
from mull.policy.thinking.budget import (
    ANY_BUDGET,
    SERVER_BUDGET,
    Window,
    fit_budget,
    least,
    shrink_for_context,
)
from mull.policy.thinking.steering import (
    DEFAULT_BUDGET,
    MAY_GO_ON,
    Choice,
    choose,
    choose_off,
)
from mull.policy.thinking.wish import Wish, wish_of

if TYPE_CHECKING:
    from mull.settings.layers import Snapshot

__all__ = [
    "DEFAULT_BUDGET",
    "NOTHING",
    "OUTCOME",
    "LevelRow",
    "Planned",
    "Wish",
    "feedback",
    "level_table",
    "plan_least",
    "plan_thinking",
    "window_of",
    "wish_of",
]

_SHARE_OF_OUTPUT = {"minimal": 10, "low": 20, "medium": 50, "high": 80, "xhigh": 95}
OUTCOME = "outcome"
"""The kind of the note about what was requested."""
_MOST_PLANS = 200
NOTHING = "nothing"
"""How tables show that a request says nothing about thinking."""


class Planned(Value, frozen=True):
    """The plan, the max_tokens it needs, notes for the user, and the one-line summary.

    `thinks` is whether the model may think in answer to this request, `minds_size` whether the
    plan depends on how much the request holds even while that is far from the window.
    """

    plan: ThinkingPlan
    summary: str
    thinks: bool = True
    max_tokens: int | None = None
    notes: tuple[Note, ...] = ()
    minds_size: bool = False

    @property
    def sent_as(self) -> str | None:
        """The part of the body that asks for it, as JSON."""
        fragment = write_thinking(self.plan)
        return msgspec.json.encode(fragment).decode() if fragment else None


_PLANS: RecentOf[Planned] = RecentOf(_MOST_PLANS)
"""Requests to one target under the same settings ask for the same, as long as they are short."""


class LevelRow(Value, frozen=True):
    """What one level becomes on one model."""

    level: str
    text: str
    sent_as: str
    warning: str | None = None


def window_of(target: Target, snapshot: Snapshot) -> int | None:
    """The tokens a request to this target may contain; the user's own number takes precedence."""
    limit = target.facts.limit
    window: int | None = snapshot["context.limit"] or limit.input or limit.context or None
    return window


def plan_thinking(
    target: Target,
    snapshot: Snapshot,
    *,
    max_tokens: int | None = None,
    used: int = 0,
    amendment: Amendment = UNAMENDED,
) -> Planned:
    """Decide what this request asks of the model's thinking.

    `max_tokens` is the user's own answer limit, `used` the tokens already in the context,
    `amendment` what applies once after a rejection.

    Raises:
        BudgetError: the user's numbers cannot be combined.
    """
    if used or amendment is not UNAMENDED:
        return _plan(target, snapshot, wish_of(snapshot), max_tokens, used, amendment)
    of = target, snapshot
    known = _PLANS.get(of, max_tokens)
    if known is not None:
        return known
    planned = _plan(target, snapshot, wish_of(snapshot), max_tokens, used, amendment)
    return _PLANS.put(planned, of, max_tokens)


def plan_least(
    target: Target,
    snapshot: Snapshot,
    *,
    max_tokens: int | None = None,
    used: int = 0,
    amendment: Amendment = UNAMENDED,
) -> Planned:
    """The plan for a request with as little thinking as possible, whatever the settings.

    Raises:
        BudgetError: the user's answer limit is above the model's.
    """
    wish = wish_of(snapshot)  # if the user's setting may be sent as a guess, so may this
    explicit = wish.says_how_much and wish.explicit
    least = Wish(level="none", explicit=explicit)
    return _plan(target, snapshot, least, max_tokens, used, amendment)


def level_table(target: Target, snapshot: Snapshot) -> tuple[LevelRow, ...]:
    """What every level, and no level at all, becomes on this target."""
    rows = []
    for level in (None, *LADDER):
        planned = _plan(target, snapshot, Wish(level=level), None, 0, UNAMENDED)
        warnings = [note.text for note in planned.notes if note.warning]
        told = "; ".join(warnings) or None
        rows.append(LevelRow(level or "unset", planned.summary, planned.sent_as or NOTHING, told))
    return tuple(rows)


def feedback(target: Target, planned: Planned) -> tuple[str, ...]:
    """The lines a user sees after choosing a model (document 004)."""
    traits = TRAITS[target.dialect]
    api = f" ({traits.api})" if traits.api else ""
    lines = [f"✓ Switched to {target.provider_name} {target.model}{api}"]
    lines += [f"  ⚠ {note.text}" for note in planned.notes if note.warning]
    lines.append(f"  Thinking: {planned.summary}")
    if traits.buffer is not None and planned.plan.effort not in (None, "none"):
        lines.append(f"  Recommended output buffer: {traits.buffer:,} tokens")
    return tuple(lines)


def _plan(
    target: Target,
    snapshot: Snapshot,
    wish: Wish,
    max_tokens: int | None,
    used: int,
    amendment: Amendment,
) -> Planned:
    if "budget" in amendment.without and wish.level is not None:
        wish = msgspec.structs.replace(wish, budget=None)  # the level said beside it holds
    choice = choose(target, wish)
    if target.compat.ignores_off:
        choice = msgspec.structs.replace(choice, thinks=True)
    if "budget" in amendment.without:
        choice = msgspec.structs.replace(choice, budget=None)
    limits = [limit for limit in (target.facts.limit.output, amendment.limit) if limit]
    notes = [Note(about=wish.about, text=text, warning=True) for text in choice.warnings]
    window = Window(
        max_tokens=max_tokens,
        output=min(limits, default=None),
        context=window_of(target, snapshot),
        used=used,
    )
    if window.is_full:
        text = f"the request holds about {used:,} tokens of a window of {window.context:,}"
        notes.append(Note(about="context.limit", text=text, warning=True, kind="full"))
    _check_limit(target, max_tokens)
    needs = TRAITS[target.dialect].needs_limit
    minds_size = bool(choice.budget) or (max_tokens is None and needs == "always")
    if choice.budget:
        choice, more = _fit(target, snapshot, choice, window, bends=amendment.limit is not None)
        notes += more
    if max_tokens is None and (needs == "always" or (needs == "budget" and choice.budget)):
        max_tokens = window.answer(choice.budget or 0)
    plan = sayable(_plan_of(target, snapshot, choice))
    if "summary" in amendment.without:
        plan = msgspec.structs.replace(plan, summary=None)
    planned = Planned(plan, _words(choice, plan), choice.thinks, max_tokens)
    outcome = Note(
        about=wish.about,
        text=planned.summary,
        requested=wish.words,
        effective=planned.summary,
        sent_as=planned.sent_as,
        kind=OUTCOME,
    )
    notes.append(outcome)
    return msgspec.structs.replace(planned, notes=tuple(notes), minds_size=minds_size)


def _plan_of(target: Target, snapshot: Snapshot, choice: Choice) -> ThinkingPlan:
    summary = snapshot["reasoning.summary"]
    return ThinkingPlan(
        state=choice.state,
        writer=choice.writer or target.compat.thinking_writer,
        effort=choice.effort,
        budget=choice.budget,
        summary=None if summary == "none" else summary,
        budget_field=target.compat.budget_field,
        off_type=target.facts.off_type,
        template=target.compat.template_words,
        thinks=choice.thinks,
    )


def _words(choice: Choice, plan: ThinkingPlan) -> str:
    """The result of what was requested, derived from the plan that is sent."""
    if plan.state == "off" and write_thinking(plan):
        if plan.off_type != "disabled":
            return f"off ({plan.off_type})"
        return f"off ({MAY_GO_ON})" if choice.thinks else "off"
    if plan.state != "on":
        return choice.silent
    if plan.budget is not None:
        tokens = f"{plan.budget:,} tokens"
        return f"{choice.name} ({tokens})" if choice.name else tokens
    if plan.effort is None:
        return f"{choice.name} (no token limit)" if choice.name else "on"
    words = _effort_words(plan.writer, plan.effort, share=choice.name is None)
    return f"{words} ({choice.name})" if choice.name else words


def _check_limit(target: Target, max_tokens: int | None) -> None:
    limit = target.facts.limit.output
    if max_tokens is not None and limit and max_tokens > limit:
        raise BudgetError(
            f"max_tokens {max_tokens:,} is above {limit:,}, the maximum answer of {target.model}"
        )


def _fit(
    target: Target, snapshot: Snapshot, choice: Choice, window: Window, *, bends: bool
) -> tuple[Choice, list[Note]]:
    """The choice with a budget that fits; the user's own number only `bends` to a rejection."""
    budget, notes, explicit = choice.budget, list[Note](), choice.explicit and not bends
    assert budget is not None
    if target.facts.budget is None and explicit and window.max_tokens is not None:
        return choice, notes  # both numbers are the user's, and the model's is unknown
    option = target.facts.budget or (SERVER_BUDGET if target.compat.level_budgets else ANY_BUDGET)
    if snapshot["reasoning.dynamicBudget"]:
        over, cap = snapshot["reasoning.dynamicBudgetOver"], snapshot["reasoning.dynamicBudgetCap"]
        budget, note = shrink_for_context(budget, window.used, over, max(cap, least(option)))
        notes += [note] if note else []
    users_own = explicit and not choice.warnings and not notes
    fit = fit_budget(budget, explicit=users_own, option=option, window=window)
    notes += fit.notes
    if fit.budget is not None:
        return msgspec.structs.replace(choice, budget=fit.budget), notes
    if target.facts.can_stop_thinking or not target.facts.reasoning_options:
        return choose_off(target), notes
    return msgspec.structs.replace(choice, budget=least(option)), notes


def _effort_words(writer: WriterName, effort: str, *, share: bool = True) -> str:
    if writer == "responses" and share and effort in _SHARE_OF_OUTPUT:
        return f"{effort} effort (~{_SHARE_OF_OUTPUT[effort]}% of output budget)"
    return WRITERS[writer].effort_words(effort)
