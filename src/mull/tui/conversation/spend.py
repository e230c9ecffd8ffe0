"""The cost of a change that makes the endpoint process everything again.

Providers cache a request as long as its beginning stays the same. Another model, another effort,
other thinking or other tools change that beginning. In a long session the user is told before
paying for it (E14).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from mull.neutral.usage import Usage
from mull.policy.cost import cost_of, format_cost, is_free
from mull.policy.prepare import Prepared

__all__ = ["LONG", "Change", "cache_loss", "change_of"]

LONG = 20_000
"""Effective tokens above which processing them again is worth a warning."""

Change: TypeAlias = Literal["model", "effort", "strip", "tools"]

_CHANGES: Mapping[str, Change] = {
    "reasoning.enabled": "effort",
    "reasoning.effort": "effort",
    "reasoning.maxTokens": "effort",
    "reasoning.includeInContext": "strip",
    "reasoning.stripFromContext": "strip",
    "reasoning.handoff": "strip",
    "reasoning.condenseOver": "strip",
    "reasoning.fieldName": "strip",
}


def change_of(key: str) -> Change | None:
    """What kind of change to the request a setting is; None if it does not affect the request."""
    return _CHANGES.get(key)


def cache_loss(
    prepared: Prepared, last_usage: Usage | None, prices: Mapping[str, Any] | None
) -> str | None:
    """The warning before a change that invalidates the prompt cache; None if there is nothing to
    warn of.

    `prepared` is the request after the change, `last_usage` what the provider reported for the last
    answer, `prices` those of the model that will process it.
    """
    tokens = prepared.tokens
    if tokens <= LONG or last_usage is None:
        return None
    cost = cost_of(Usage(input=tokens, output=0), prices)
    if cost is None and not last_usage.cache_read:
        return None  # neither a cache nor a price is known: there is no loss to name
    told = (
        f"This invalidates the prompt cache: about {round(tokens, -3):,} tokens are processed again"
    )
    if is_free(prices):
        return f"{told}, which takes time."
    if cost is None:
        return f"{told}, at an unknown price."
    return f"{told}: roughly {format_cost(_coarse(cost))}."


def _coarse(dollars: float) -> float:
    """Two significant digits, because it is an estimate."""
    return float(f"{dollars:.2g}")
