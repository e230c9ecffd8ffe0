"""What an answer costs, from the provider's counts and the catalog's prices.

Prices are dollars per million tokens. Output is paid once, including reasoning; cached input has
its own price. Unknown values are None: a sum with an unknown part is at least the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from mull.neutral.blocks import Value
from mull.neutral.usage import Usage

__all__ = ["CostSum", "add_costs", "cost_of", "format_cost", "is_free"]

_MILLION = 1_000_000
_SPELLINGS = {
    "cache_read": ("cache_read", "cached_input", "cache_input"),
    "cache_write": ("cache_write", "cached_write"),
}
"""Some entries of the catalog spell these prices differently."""


def cost_of(usage: Usage | None, prices: Mapping[str, Any] | None) -> float | None:
    """Dollars for one answer; None if a count or a price is missing."""
    if usage is None or usage.input is None or usage.output is None or not prices:
        return None
    prices = _tier(prices, usage.input)
    if not _is_price(prices.get("input")) or not _is_price(prices.get("output")):
        return None
    written = _written_cost(usage, prices)
    return None if written is None else (_read_cost(usage, prices) + written) / _MILLION


def is_free(prices: Mapping[str, Any] | None) -> bool:
    """Whether the catalog says that tokens are free: a subscription, or the user's own machine."""
    return bool(prices) and cost_of(Usage(1, 1, reasoning=1), prices) == 0


def _tier(prices: Mapping[str, Any], size: int) -> Mapping[str, Any]:
    """The prices for an input of this size: long ones may cost more."""
    if "tiers" not in prices:
        return prices
    tiers = sorted(prices.get("tiers") or (), key=lambda tier: tier["tier"]["size"])
    for tier in tiers:
        if size > tier["tier"]["size"]:
            prices = {**prices, **tier}
    return prices


def _read_cost(usage: Usage, prices: Mapping[str, Any]) -> float:
    cached, stored = usage.cache_read or 0, usage.cache_write or 0
    price: float = prices["input"]
    if not cached and not stored:
        return (usage.input or 0) * price
    plain = max((usage.input or 0) - cached - stored, 0)
    return (
        plain * price
        + cached * (_own_price(prices, "cache_read") or price)
        + stored * (_own_price(prices, "cache_write") or price)
    )


def _own_price(prices: Mapping[str, Any], name: str) -> float | None:
    """The price of cached input. None and 0 both mean that it has none and costs what input does:
    the catalog has 0 beside a paid input if no such price is published.
    """
    found: Iterable[float] = (prices[key] for key in _SPELLINGS[name] if key in prices)
    return next(iter(found), None)


def _written_cost(usage: Usage, prices: Mapping[str, Any]) -> float | None:
    output, price = usage.output or 0, prices["output"]
    thought = prices.get("reasoning", price)
    if thought == price:
        return float(output * price)
    if usage.reasoning is None:
        return None
    return float((output - usage.reasoning) * price + usage.reasoning * thought)


def _is_price(value: Any) -> bool:
    return isinstance(value, int | float) and value >= 0


class CostSum(Value, frozen=True):
    """The known sum of several costs; `unknown` counts the unknown ones."""

    known: float = 0.0
    unknown: int = 0
    of: int = 0

    def __str__(self) -> str:
        if self.unknown == self.of:
            return format_cost(None if self.of else 0.0)
        return f"≥ {format_cost(self.known)}" if self.unknown else format_cost(self.known)


def add_costs(costs: Iterable[float | None]) -> CostSum:
    """The sum of the costs."""
    given = list(costs)
    known = [cost for cost in given if cost is not None]
    return CostSum(math.fsum(known), len(given) - len(known), len(given))


def format_cost(dollars: float | None) -> str:
    """`$0.0123`: three significant digits, at least two decimals. Zero is `$0`, as for a model
    without a price per token; unknown is `unknown`.
    """
    if dollars is None:
        return "unknown"
    if dollars == 0:
        return "$0"
    digits = max(2, 2 - math.floor(math.log10(dollars)))
    whole, _, rest = f"{dollars:,.{digits}f}".partition(".")
    return f"${whole}.{rest.rstrip('0'):0<2}"
