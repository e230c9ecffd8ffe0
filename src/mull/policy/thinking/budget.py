"""Arithmetic of thinking budgets: what a level is worth, and what fits beside the answer.

A budget is always below max_tokens. A number that mull derived is lowered until it fits; a number
from the user is either valid or an error that names both numbers.
"""

from __future__ import annotations

from mull.neutral.blocks import Value
from mull.neutral.errors import BudgetError
from mull.neutral.request import Note
from mull.neutral.target import ReasoningOption
from mull.neutral.thinking import DEFAULT_ANSWER, Level

__all__ = [
    "ANSWER_ROOM",
    "ANY_BUDGET",
    "LEAST_ANSWER",
    "SERVER_BUDGET",
    "Fit",
    "Window",
    "budget_for_level",
    "check_range",
    "fit_budget",
    "is_full",
    "least",
    "least_answer",
    "level_for_budget",
    "most",
    "shrink_for_context",
]

ANSWER_ROOM = DEFAULT_ANSWER
"""Tokens for the answer beside the budget, if the limits allow it."""
LEAST_ANSWER = 1024
"""Minimum tokens for the answer that a derived budget leaves."""
_FLOOR = 1024
_UNKNOWN_TOP = 32_000
ANY_BUDGET = ReasoningOption("budget_tokens")
"""The range of an unknown model."""
SERVER_BUDGET = ReasoningOption("budget_tokens", min=1)
"""The range of a server that counts thinking tokens itself, whatever the model."""


def least_answer(window: int) -> int:
    """Tokens for the answer that a window of this size should leave, whatever the request
    contains.
    """
    return min(LEAST_ANSWER, max(window // 8, 1))


def is_full(context: int | None, used: int) -> bool:
    """Whether hardly an answer fits beside what is used of a context window, by our count."""
    return context is not None and context - used < least_answer(context)


class Window(Value, frozen=True):
    """The limits a budget must fit: the user's max_tokens, the model's output limit, and the
    context window with its current content. None is unknown.
    """

    max_tokens: int | None = None
    output: int | None = None
    context: int | None = None
    used: int = 0

    @property
    def is_full(self) -> bool:
        """Whether hardly an answer fits beside the context, by our count."""
        return is_full(self.context, self.used)

    @property
    def ceiling(self) -> int | None:
        """The maximum tokens of one answer, including thinking."""
        room = max(self.context - self.used, least_answer(self.context)) if self.context else None
        limits = [limit for limit in (self.output, room) if limit]
        return min(limits) if limits else None

    def answer(self, budget: int = 0) -> int:
        """The answer limit if none was given: everything the model can write, as far as the window
        allows. If that is unknown, the budget and room for an answer beside it.
        """
        limit = self.output or budget + ANSWER_ROOM
        return min(limit, self.ceiling or limit)


class Fit(Value, frozen=True):
    """A budget that fits, or None if there is no room for thinking; with the max_tokens to send."""

    budget: int | None
    max_tokens: int
    notes: tuple[Note, ...] = ()


def least(option: ReasoningOption) -> int:
    """The smallest budget with thinking."""
    return option.min if option.min is not None else _FLOOR


def most(option: ReasoningOption) -> int:
    """The largest budget."""
    return option.max if option.max is not None else max(_UNKNOWN_TOP, least(option))


def budget_for_level(option: ReasoningOption, level: Level) -> int:
    """What a level above `none` is worth, in thirds of the model's range."""
    low, span = least(option), most(option) - least(option)
    match level:
        case "none" | "minimal":
            return low
        case "low":
            return low + span // 3
        case "medium":
            return low + 2 * span // 3
        case _:
            return low + span


def level_for_budget(option: ReasoningOption, budget: int) -> Level:
    """The level that a number stands for: the lowest of the common three that is worth as much."""
    levels: tuple[Level, ...] = ("low", "medium")
    return next((one for one in levels if budget_for_level(option, one) >= budget), "high")


def check_range(option: ReasoningOption, budget: int, model: str) -> int:
    """A user's budget if the model accepts it; the nearest end of a range learnt from a rejection.

    Raises:
        BudgetError: it is below the minimum or above the maximum in the catalog.
    """
    if option.learnt:
        raised = budget if option.min is None else max(budget, option.min)
        return raised if option.max is None else min(raised, option.max)
    if option.min is not None and budget < option.min:
        raise BudgetError(
            f"a thinking budget of {budget:,} is below {option.min:,}, the minimum of {model}"
        )
    if option.max is not None and budget > option.max:
        raise BudgetError(
            f"a thinking budget of {budget:,} is above {option.max:,}, the maximum of {model}"
        )
    return budget


def shrink_for_context(budget: int, used: int, over: int, cap: int) -> tuple[int, Note | None]:
    """Cap a budget once the context is long (reasoning.dynamicBudget)."""
    if used <= over or budget <= cap:
        return budget, None
    text = f"the context holds {used:,} tokens, over {over:,}: budget {budget:,} → {cap:,}"
    return cap, Note(
        about="reasoning.dynamicBudget",
        text=text,
        requested=str(budget),
        effective=str(cap),
        kind="shrunk",
    )


def fit_budget(budget: int, *, explicit: bool, option: ReasoningOption, window: Window) -> Fit:
    """Fit the budget below max_tokens and max_tokens below the model's limits.

    Raises:
        BudgetError: a budget from the user does not fit a limit, or the user's own max_tokens.
    """
    if window.max_tokens is not None:
        top, what = window.max_tokens, f"max_tokens {window.max_tokens:,}"
    else:
        top = window.answer(budget)
        what = f"the {top:,} tokens an answer can have here"
    if explicit and budget >= top:
        raise BudgetError(
            f"a thinking budget of {budget:,} does not fit {what}:"
            " the budget is part of the answer's tokens and must be smaller"
        )
    if explicit or budget <= top - LEAST_ANSWER:
        return Fit(budget, top)
    lowered = top - LEAST_ANSWER
    if lowered < least(option):
        text = f"{what} leave no room for the smallest budget of {least(option):,} tokens"
        return Fit(None, top, (_lowered(budget, "none", text),))
    text = f"budget {budget:,} → {lowered:,}, to leave room for the answer in {what}"
    return Fit(lowered, top, (_lowered(budget, str(lowered), text),))


def _lowered(requested: int, effective: str, text: str) -> Note:
    return Note(
        about="reasoning.maxTokens",
        text=text,
        warning=True,
        requested=str(requested),
        effective=effective,
        kind="lowered",
    )
