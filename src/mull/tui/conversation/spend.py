"""What a change costs that makes the endpoint read everything again.

Providers keep what they have read as long as the beginning of the request stays the same. Another
model, another effort, other thoughts or tools change that beginning. In a long session that is
worth a word before it is paid for (E14).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from mull.neutral.usage import Usage
from mull.policy.cost import cost_of, format_cost, is_free
from mull.policy.prepare import Prepared

__all__ = ["LONG", "Change", "cache_loss", "change_of"]

LONG = 20_000
"""Effective tokens from which reading again is worth a word."""

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
    """What kind of change a setting is to a request that was sent before; None for no change."""
    return _CHANGES.get(key)


def cache_loss(
    prepared: Prepared, last_usage: Usage | None, prices: Mapping[str, Any] | None
) -> str | None:
    """What to say before a change after which the whole request is read anew; None for nothing.

    `prepared` is the request after the change, `last_usage` what the provider said of the last
    answer, `prices` those of the model that will read.
    """
    tokens = prepared.tokens
    if tokens <= LONG or last_usage is None:
        return None
    cost = cost_of(Usage(input=tokens, output=0), prices)
    if cost is None and not last_usage.cache_read:
        return None  # neither a cache nor a price is known: nothing to lose that can be named
    told = f"The prompt cache is lost by this: about {round(tokens, -3):,} tokens are read again"
    if is_free(prices):
        return f"{told}, which takes its time."
    if cost is None:
        return f"{told}, at a price that is unknown."
    return f"{told}: roughly {format_cost(_coarse(cost))}."


def _coarse(dollars: float) -> float:
    """Two digits that count: it is an estimate."""
    return float(f"{dollars:.2g}")
