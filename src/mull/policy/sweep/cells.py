"""What came of a sweep: one outcome for each answer, summed up for each model and level."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence

from mull.neutral.blocks import Value

__all__ = ["Cell", "Outcome", "interval", "pareto", "sum_up"]

_Z = 1.959964
"""Standard deviations of a 95 % confidence interval."""


class Outcome(Value, frozen=True, kw_only=True):
    """What came of one task with one model and level. Times are in seconds from the request."""

    task: str
    """The id of the task."""
    model: str
    """The model's name as the user gave it."""
    level: str | None = None
    """How much the model was to think; None leaves it to the model."""
    sample: int = 0
    """The number of the repetition, from 0."""
    right: bool | None = None
    """Whether the answer is right; None if nothing says what a right answer is, or the checker
    failed.
    """
    answer: str = ""
    """The text of the answer, or why it does not match its schema."""
    thinking_tokens: int | None = None
    """The tokens of its thinking; None if unknown, since a provider may hide them."""
    estimated: bool = False
    """Whether mull counted its thinking, because the provider did not."""
    tokens: int | None = None
    """Input and output tokens of all its requests together; None if unknown."""
    cost: float | None = None
    """Its price in dollars; None if unknown."""
    first: float | None = None
    """When the first piece of the answer or its thinking came; None if unknown."""
    seconds: float | None = None
    """When the answer was complete; None if unknown."""
    error: str | None = None
    """Why there is no answer; None if there is one."""
    checker: str = ""
    """The last line that the checker printed about an answer that is not right, or why the checker
    failed.
    """

    @property
    def cell(self) -> str:
        """The model and level, as one writes them."""
        return self.model if self.level is None else f"{self.model}/{self.level}"


class Cell(Value, frozen=True, kw_only=True):
    """The outcomes of one model and level."""

    name: str
    """The model and the level, as in `anthropic/claude-opus-4-5/high`; the model alone if no level
    was set.
    """
    answers: int
    """How many runs had an answer."""
    errors: int
    """How many had none."""
    graded: int
    """How many answers are known to be right or wrong."""
    right: int
    """How many of these are right."""
    accuracy: float | None
    """The share of right answers among them, from 0 to 1; None if none is graded."""
    low: float | None
    """The lower end of the range in which the true accuracy lies with a confidence of 95 %."""
    high: float | None
    """The upper end of that range."""
    thinking_tokens: float | None
    """The mean tokens of thinking for one answer; None if no answer has a count."""
    estimated: bool
    """Whether mull counted the thinking of any answer itself."""
    tokens: float | None
    """The mean input and output tokens for one answer; None if no answer has a count."""
    cost: float | None
    """The mean price of one answer in dollars; None if no answer has one."""
    first: float | None
    """The median seconds until the first piece; None if no answer has a time."""
    seconds: float | None
    """The median seconds until the answer was complete; None if no answer has a time."""


def sum_up(outcomes: Iterable[Outcome]) -> list[Cell]:
    """The cells, in the order in which they first appear."""
    by_name: dict[str, list[Outcome]] = {}
    for one in outcomes:
        by_name.setdefault(one.cell, []).append(one)
    return [_cell(name, found) for name, found in by_name.items()]


def _cell(name: str, outcomes: Sequence[Outcome]) -> Cell:
    answered = [one for one in outcomes if one.error is None]
    graded = [one.right for one in answered if one.right is not None]
    right = sum(graded)
    low, high = interval(right, len(graded))
    return Cell(
        name=name,
        answers=len(answered),
        errors=len(outcomes) - len(answered),
        graded=len(graded),
        right=right,
        accuracy=right / len(graded) if graded else None,
        low=low,
        high=high,
        thinking_tokens=_of(answered, "thinking_tokens", statistics.fmean),
        estimated=any(one.estimated for one in answered),
        tokens=_of(answered, "tokens", statistics.fmean),
        cost=_of(answered, "cost", statistics.fmean),
        first=_of(answered, "first", statistics.median),
        seconds=_of(answered, "seconds", statistics.median),
    )


def _of(
    outcomes: Sequence[Outcome], field: str, mean: Callable[[Sequence[float]], float]
) -> float | None:
    found = [value for one in outcomes if (value := getattr(one, field)) is not None]
    return mean(found) if found else None


def interval(right: int, of: int) -> tuple[float | None, float | None]:
    """Where the true share lies with a confidence of 95 % (Wilson)."""
    if of == 0:
        return None, None
    share, square = right / of, _Z * _Z
    middle = share + square / (2 * of)
    spread = _Z * math.sqrt(share * (1 - share) / of + square / (4 * of * of))
    scale = 1 + square / of
    low, high = (middle - spread) / scale, (middle + spread) / scale
    return min(max(low, 0.0), share), max(min(high, 1.0), share)  # whatever rounding does


def pareto(cells: Iterable[Cell], field: str) -> list[Cell]:
    """The cells that no other one beats: those with less of the field are less accurate. From the
    least to the most of it.
    """
    placed = [(getattr(one, field), one) for one in cells if one.accuracy is not None]
    known = sorted(
        ((spent, one) for spent, one in placed if spent is not None),
        key=lambda pair: (pair[0], -(pair[1].accuracy or 0)),
    )
    best: list[Cell] = []
    for _, one in known:
        assert one.accuracy is not None
        if not best or one.accuracy > (best[-1].accuracy or 0):
            best.append(one)
    return best
