"""What the settings request of a model's thinking: off, on, a budget, a level, or nothing.

Independent of model and endpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mull.neutral.blocks import Value
from mull.neutral.thinking import Level

if TYPE_CHECKING:
    from mull.settings.layers import Snapshot

__all__ = ["Wish", "wish_of"]

_ENABLED, _EFFORT, _BUDGET = "reasoning.enabled", "reasoning.effort", "reasoning.maxTokens"


class Wish(Value, frozen=True):
    """What is requested: a level (`none` is off), a budget, both, or plain on.

    Level and budget are two requests: the budget applies where one can be sent, the level where
    not. `about` is the setting that decides. `explicit` is whether the user requests it: what mull
    itself wants is sent only where it is known how.
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
        if self.budget is None:
            return self.level or ("on" if self.on else "unset")
        return f"{self.budget:,} tokens{f', else {self.level}' if self.level else ''}"


def wish_of(snapshot: Snapshot) -> Wish:
    """The request in the settings: off overrides a budget, a budget a level where one can be sent,
    and either plain on. Which of them the user said last is decided by the layers.
    """
    chosen = snapshot.explicit(_ENABLED)
    if not snapshot[_ENABLED]:
        return Wish(_ENABLED, level="none", explicit=chosen)
    level: Level | None = snapshot[_EFFORT]
    budget: int | None = snapshot[_BUDGET]
    if budget is not None:
        level = level if level != "none" else None
        return Wish(_BUDGET, level, budget, explicit=snapshot.explicit(_BUDGET))
    if level is not None:
        return Wish(_EFFORT, level, explicit=snapshot.explicit(_EFFORT))
    return Wish(_ENABLED, on=True) if chosen else Wish()
