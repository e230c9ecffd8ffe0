"""What DEBUG=1 reports about reasoning: what was requested, in which field it arrived, or that none
did.

The wording is that of document 003.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mull.dialects.registry import is_sealed
from mull.neutral.events import Event, ThinkingCarrier, ThinkingDelta, Warned
from mull.policy.prepare import Prepared
from mull.policy.thinking.wish import wish_of
from mull.settings.presets import includes_sealed

__all__ = ["CODE", "Spotter"]

CODE = "debug"
"""The code of the warnings that these lines come as."""
_THOUGHTS = (ThinkingDelta, ThinkingCarrier)


class Spotter:
    """Watches one answer."""

    def __init__(self, prepared: Prepared, say: Callable[[Event], None]) -> None:
        self._asked = prepared
        self._plan = prepared.request.thinking
        self._preserves = _preserves(prepared)
        self._fields: list[str] = []
        self._say = say

    def asked(self) -> None:
        """Called before the request is sent."""
        off = self._plan.state == "off" or not self._plan.thinks
        state = "off" if off else "on"
        preserve = "true" if self._preserves else "false"
        text = f"*** Thinking: {state}{_effort(self._asked)} (preserve: {preserve})"
        self._say(Warned(CODE, text))

    def take(self, events: Sequence[Event]) -> None:
        """Report each field that reasoning arrives in, once."""
        for event in events:
            field = event.source_field if isinstance(event, _THOUGHTS) else None
            if field is not None and field not in self._fields:
                self._fields.append(field)
                self._say(Warned(CODE, f"Reasoning detected via field: {field}"))

    def ended(self, answered: Prepared) -> None:
        """Called when the answer is complete; its request may not be the one first asked."""
        found = "ON" if self._fields else "OFF"
        self._say(Warned(CODE, f"Reasoning: {found}{_effort(answered)}"))


def _effort(prepared: Prepared) -> str:
    """The word that is sent, or the level that the budget sent stands for."""
    plan, wish = prepared.request.thinking, wish_of(prepared.made.snapshot)
    level = wish.level if plan.budget and wish.budget is None and not wish.is_off else None
    effort = plan.effort or level
    return f" (effort: {effort})" if effort else ""


def _preserves(prepared: Prepared) -> bool:
    """Whether any thinking of an earlier turn is sent back."""
    snapshot = prepared.made.snapshot
    if snapshot["reasoning.stripFromContext"] == "all" or wish_of(snapshot).is_off:
        return False
    thoughts = (thought for message in prepared.request.messages for thought in message.thinking)
    sealed = includes_sealed(snapshot) and any(map(is_sealed, thoughts))
    return snapshot["reasoning.includeInContext"] or sealed
