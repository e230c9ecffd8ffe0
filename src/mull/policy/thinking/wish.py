"""What the settings request of a model's thinking: off, on, a budget, a level, or nothing.

Independent of model and endpoint.
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
    """What is requested: at most one of a level (`none` is off), a budget, and plain on.

    `about` is the setting that requests it. `explicit` is whether the user does: what mull itself
    wants is sent only where it is known how.
    """

    about: str = _EFFORT
    level: Level | None = None
    budget: int | None = None
    on: bool = False
    explicit: bool = True

    @property
    def is_said(self) -> bool:
        """Whether anything is requested."""
        return self.level is not None or self.budget is not None or self.on

    @property
    def is_off(self) -> bool:
        """Whether thinking should be off."""
        return self.level == "none"

    @property
    def says_how_much(self) -> bool:
        """Whether it is a level or a number, not just on or off."""
        return self.budget is not None or self.level not in (None, "none")

    @property
    def words(self) -> str:
        """The request in the user's terms."""
        if self.budget is not None:
            return f"{self.budget:,} tokens"
        return self.level or ("on" if self.on else "unset")


def wish_of(snapshot: Snapshot) -> Wish:
    """The request in the settings: off overrides a budget, a budget a level, a level plain on.

    But an effort of `none` is overridden by an "on" in a stronger layer: a user who turns thinking
    on does not want an old config file to prevent it.
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
