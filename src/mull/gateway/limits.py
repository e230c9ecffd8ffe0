"""Whether a request is within the limits of its client, and if not, which limit it exceeds and for
how long.

Limits per minute count the requests that began in the last minute. Budgets apply to a day or a
month in UTC. A request that has not ended counts with its estimated usage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple, TypeAlias

from mull.gateway.ledger import WINDOW, Spent
from mull.gateway.tokens import Limits, Period
from mull.neutral.blocks import Value
from mull.policy.cost import format_cost

__all__ = ["Demand", "ExceededLimit", "LimitName", "Use", "find_exceeded", "say_duration"]

LimitName: TypeAlias = Literal["requests per minute", "tokens per minute", "tokens", "dollars"]
_NANO = 1_000_000_000


class Demand(NamedTuple):
    """The estimated usage of a request."""

    tokens: int
    nanodollars: int


class Use(NamedTuple):
    """The usage of requests that began at one time, if the ledger does not include it yet."""

    at: float
    requests: int
    tokens: int
    nanodollars: int


class ExceededLimit(Value, frozen=True):
    """A limit that a request would exceed. `seconds` is the time until it no longer would, or None
    if the request alone exceeds the limit."""

    limit: LimitName
    text: str
    seconds: float | None = None

    @property
    def of_budget(self) -> bool:
        """Whether the limit is a budget rather than a rate."""
        return self.limit in ("tokens", "dollars")


def find_exceeded(
    limits: Limits, spent: Spent, unsettled: Iterable[Use], demand: Demand, now: float
) -> ExceededLimit | None:
    """The limit that a request would exceed; of several, the one that lasts longest."""
    pending = tuple(unsettled)
    rates = _rates(limits, spent, pending, demand, now)
    budgets = _budgets(limits, spent, pending, demand, now)
    return max((*rates, *budgets), key=_longest, default=None)


def _longest(exceeded: ExceededLimit) -> float:
    return math.inf if exceeded.seconds is None else exceeded.seconds


def _rates(
    limits: Limits, spent: Spent, pending: Sequence[Use], demand: Demand, now: float
) -> Iterator[ExceededLimit]:
    if (most := limits.requests_per_minute) is not None:
        used = [(at, requests) for at, requests, _ in spent.recent]
        used += [(int(use.at), use.requests) for use in pending]
        text = f"this token may send {most:,} request{'s' if most > 1 else ''} a minute"
        yield from _too_fast("requests per minute", text, _wait(used, most - 1, now))
    if (most := limits.tokens_per_minute) is not None:
        text = f"this token may use {most:,} tokens a minute; this request needs about "
        text += f"{demand.tokens:,}"
        if demand.tokens > most:
            yield ExceededLimit(
                "tokens per minute", f"{text}: send less, or ask for a higher limit"
            )
            return
        used = [(at, tokens) for at, _, tokens in spent.recent]
        used += [(int(use.at), use.tokens) for use in pending]
        yield from _too_fast("tokens per minute", text, _wait(used, most - demand.tokens, now))


def _too_fast(limit: LimitName, text: str, wait: float | None) -> Iterator[ExceededLimit]:
    if wait is not None:
        yield ExceededLimit(limit, f"{text}: try again in {say_duration(wait)}", wait)


def _wait(used: Iterable[tuple[int, int]], room: int, now: float) -> float | None:
    """Seconds until the usage of the last minute is at most `room`; None if it is already."""
    recent = sorted((at, amount) for at, amount in used if at > int(now) - WINDOW)
    total = sum(amount for _, amount in recent)
    if total <= room:
        return None
    for at, amount in recent:
        total -= amount
        if total <= room:
            return at + WINDOW - now
    return float(WINDOW)


def _budgets(
    limits: Limits, spent: Spent, pending: Sequence[Use], demand: Demand, now: float
) -> Iterator[ExceededLimit]:
    for budget in limits.tokens:
        used = spent.of(budget.period).tokens
        used += sum(use.tokens for use in _within(pending, budget.period, now))
        amounts = (round(budget.amount), used, demand.tokens)
        yield from _used_up("tokens", budget.period, amounts, "{:,} tokens".format, now)
    for budget in limits.dollars:
        used = spent.of(budget.period).nanodollars
        used += sum(use.nanodollars for use in _within(pending, budget.period, now))
        amounts = (round(budget.amount * _NANO), used, demand.nanodollars)
        yield from _used_up("dollars", budget.period, amounts, _format_money, now)


def _used_up(
    limit: LimitName,
    period: Period,
    amounts: tuple[int, int, int],
    format_amount: Callable[[int], str],
    now: float,
) -> Iterator[ExceededLimit]:
    most, used, needed = amounts
    if used + needed <= most:
        return
    text = f"this token may use {format_amount(most)} a {period} and has used {format_amount(used)}"
    text += f"; this request needs about {format_amount(needed)}"
    if needed > most:
        yield ExceededLimit(limit, f"{text}: send less, or ask for a larger budget")
        return
    wait = _end(period, now) - now
    yield ExceededLimit(limit, f"{text}: the next {period} begins in {say_duration(wait)}", wait)


def _format_money(nanodollars: int) -> str:
    return format_cost(nanodollars / _NANO)


def _within(pending: Iterable[Use], period: Period, now: float) -> Iterator[Use]:
    start = _start(period, now).timestamp()
    return (use for use in pending if use.at >= start)


def _start(period: Period, now: float) -> datetime:
    day = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return day if period == "day" else day.replace(day=1)


def _end(period: Period, now: float) -> float:
    start = _start(period, now)
    if period == "day":
        return (start + timedelta(days=1)).timestamp()
    return (start + timedelta(days=32)).replace(day=1).timestamp()


def say_duration(seconds: float) -> str:
    """`12 s`, `5 min`, `3 h 20 min`, `12 days`; rounded up, so that no client retries too early."""
    whole = math.ceil(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes = math.ceil(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    return f"{math.ceil(hours / 24)} days"
