"""What DEBUG=1 tells of an answer's reasoning: what was asked for, where it came, whether it did.

The words are those of document 003.
"""

from __future__ import annotations

from mull.neutral.events import Event, ThinkingCarrier, ThinkingDelta, Warned
from mull.neutral.thinking import ThinkingPlan
from mull.policy.prepare import Prepared
from mull.policy.thinking.wish import wish_of
from mull.settings.layers import Snapshot

__all__ = ["CODE", "Spotter"]

CODE = "debug"
"""The code of the warnings that these lines come as."""


class Spotter:
    """Watches one answer."""

    def __init__(self, prepared: Prepared) -> None:
        self._plan = prepared.request.thinking
        self._preserves = _preserves(prepared.made.snapshot)
        self._fields: list[str] = []

    def asked(self) -> Warned:
        """Before the request goes out."""
        off = self._plan.state == "off" or not self._plan.thinks
        state = "off" if off else "on"
        preserve = "true" if self._preserves else "false"
        return Warned(CODE, f"*** Thinking: {state}{_effort(self._plan)} (preserve: {preserve})")

    def seen(self, event: Event) -> Warned | None:
        """Reasoning that comes in a field for the first time."""
        if not isinstance(event, ThinkingDelta | ThinkingCarrier):
            return None
        field = event.source_field
        if field is None or field in self._fields:
            return None
        self._fields.append(field)
        return Warned(CODE, f"Reasoning detected via field: {field}")

    def ended(self, answered: Prepared) -> Warned:
        """When the answer is there: to this request, maybe not the one that was asked first."""
        found = "ON" if self._fields else "OFF"
        return Warned(CODE, f"Reasoning: {found}{_effort(answered.request.thinking)}")


def _effort(plan: ThinkingPlan) -> str:
    return f" (effort: {plan.effort})" if plan.effort else ""


def _preserves(snapshot: Snapshot) -> bool:
    """Whether any thought of an earlier turn is to go back."""
    stripped = snapshot["reasoning.stripFromContext"] == "all"
    return snapshot["reasoning.includeInContext"] and not stripped and not wish_of(snapshot).is_off
