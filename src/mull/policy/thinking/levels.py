"""Which levels a model really has: those that result in different requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mull.neutral.target import Target
from mull.neutral.thinking import LADDER, as_level
from mull.policy.thinking.plan import NOTHING, LevelRow, level_table, plan_thinking, wish_of

if TYPE_CHECKING:
    from mull.settings.layers import Snapshot

__all__ = ["level_rows", "next_level"]

_UNSET, _ON = "unset", "high"


def level_rows(target: Target, snapshot: Snapshot) -> list[LevelRow]:
    """Every level that makes a difference on this model, lowest first; none if there is no choice.

    Levels that result in the same request are one, represented by the one that the model itself
    knows; if it only knows on and off, a high level means on.
    """
    groups: dict[str, list[LevelRow]] = {}
    for row in level_table(target, snapshot):
        groups.setdefault(row.sent_as, []).append(row)
    chosen = [min(rows, key=_unlikely) for rows in groups.values()]
    found = [row for row in chosen if row.level != _UNSET]
    return sorted(found, key=_rank) if len(found) > 1 else []


def _rank(row: LevelRow) -> int:
    return LADDER.index(as_level(row.level) or "none")


def _unlikely(row: LevelRow) -> tuple[bool, bool, bool]:
    return row.warning is not None, row.level == _UNSET, row.level != _ON


def next_level(target: Target, snapshot: Snapshot) -> str | None:
    """The level after the current one, cycling; None if there is no choice."""
    rows = level_rows(target, snapshot)
    if not rows:
        return None
    now = _sent_now(target, snapshot)
    at = next((at for at, row in enumerate(rows) if row.sent_as == now), None)
    if at is None:  # a budget, or nothing set: continue from the model's default
        usual = target.facts.default_effort or "medium"
        at = next((at for at, row in enumerate(rows) if row.level == usual), -1)
    return rows[(at + 1) % len(rows)].level


def _sent_now(target: Target, snapshot: Snapshot) -> str | None:
    if wish_of(snapshot).budget is not None:
        return None
    return plan_thinking(target, snapshot).sent_as or NOTHING
