"""What the settings wish of a model's thinking: off, on, a budget, a level, or nothing.

Nothing here knows a model or an endpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mull.neutral.blocks import Value
from mull.neutral.thinking import Level
from mull.settings.layers import LAYERS

if TYPE_CHECKING:
    from mull.settings.layers import Snapshot

__all__ = ["Wish", "wish_of"]

_ENABLED, _EFFORT, _BUDGET = "reasoning.enabled", "reasoning.effort", "reasoning.maxTokens"


class Wish(Value, frozen=True):
    """What is wanted: at most one of a level (`none` is off), a budget, and plain on.

    `about` is the setting that says so. `explicit` is whether it is the user who does: what mull
    wants for reasons of its own is said only where it is known how.
    """

    about: str = _EFFORT
    level: Level | None = None
    budget: int | None = None
    on: bool = False
    explicit: bool = True

    @property
    def is_said(self) -> bool:
        """Whether anything is wished at all."""
        return self.level is not None or self.budget is not None or self.on

    @property
    def is_off(self) -> bool:
        """Whether no thinking is wanted."""
        return self.level == "none"

    @property
    def says_how_much(self) -> bool:
        """Whether it is a level or a number, not just on or off."""
        return self.budget is not None or self.level not in (None, "none")

    @property
    def words(self) -> str:
        """The wish as the user put it."""
        if self.budget is not None:
            return f"{self.budget:,} tokens"
        return self.level or ("on" if self.on else "unset")


def wish_of(snapshot: Snapshot) -> Wish:
    """Read the wish out of the settings: off beats a budget, a budget a level, a level plain on.

    But an effort of `none` gives way to an "on" of a stronger layer: whoever says on now does not
    want last month's config to keep the model from thinking.
    """
    chosen = snapshot.explicit(_ENABLED)
    if not snapshot[_ENABLED]:
        return Wish(_ENABLED, level="none", explicit=chosen)
    budget: int | None = snapshot[_BUDGET]
    if budget is not None:
        return Wish(_BUDGET, budget=budget, explicit=snapshot.explicit(_BUDGET))
    level: Level | None = snapshot[_EFFORT]
    if level is not None and not (level == "none" and chosen and _is_stronger(snapshot)):
        return Wish(_EFFORT, level=level, explicit=snapshot.explicit(_EFFORT))
    return Wish(_ENABLED, on=True) if chosen else Wish()


def _is_stronger(snapshot: Snapshot) -> bool:
    return LAYERS.index(snapshot.origin(_ENABLED)) > LAYERS.index(snapshot.origin(_EFFORT))
