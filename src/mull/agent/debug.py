"""What DEBUG=1 tells of an answer's reasoning: what was asked for, where it came, whether it did.

The words are those of document 003.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mull.neutral.events import Event, ThinkingCarrier, ThinkingDelta, Warned
from mull.neutral.thinking import ThinkingPlan
from mull.policy.prepare import Prepared
from mull.policy.thinking.wish import wish_of
from mull.settings.layers import Snapshot

__all__ = ["CODE", "Spotter"]

CODE = "debug"
"""The code of the warnings that these lines come as."""
_THOUGHTS = (ThinkingDelta, ThinkingCarrier)


class Spotter:
    """Watches one answer."""

    def __init__(self, prepared: Prepared, say: Callable[[Event], None]) -> None:
        self._plan = prepared.request.thinking
        self._preserves = _preserves(prepared.made.snapshot)
        self._fields: list[str] = []
        self._say = say

    def asked(self) -> None:
        """Before the request goes out."""
        off = self._plan.state == "off" or not self._plan.thinks
        state = "off" if off else "on"
        preserve = "true" if self._preserves else "false"
        text = f"*** Thinking: {state}{_effort(self._plan)} (preserve: {preserve})"
        self._say(Warned(CODE, text))

    def take(self, events: Sequence[Event]) -> None:
        """Say in which field reasoning comes, each once."""
        for event in events:
            field = event.source_field if isinstance(event, _THOUGHTS) else None
            if field is not None and field not in self._fields:
                self._fields.append(field)
                self._say(Warned(CODE, f"Reasoning detected via field: {field}"))

    def ended(self, answered: Prepared) -> None:
        """When the answer is there: to this request, maybe not the one that was asked first."""
        found = "ON" if self._fields else "OFF"
        self._say(Warned(CODE, f"Reasoning: {found}{_effort(answered.request.thinking)}"))


def _effort(plan: ThinkingPlan) -> str:
    return f" (effort: {plan.effort})" if plan.effort else ""


def _preserves(snapshot: Snapshot) -> bool:
    """Whether any thought of an earlier turn is to go back."""
    stripped = snapshot["reasoning.stripFromContext"] == "all"
    return snapshot["reasoning.includeInContext"] and not stripped and not wish_of(snapshot).is_off
