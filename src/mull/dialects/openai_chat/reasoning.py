"""How the thinking of one answer goes back to the endpoint that gave it.

The user's own field name decides, then the endpoint's row, then the field it came in: an endpoint
that nobody knows gets back only what it sent itself (BerriAI/litellm#30835). Details go back as
they are and stand for the text they hold; a thought of Claude's that lost its signature stays home,
because Claude refuses it. What is empty is not sent (EC-007), unless the row asks
for a filler in messages that the model wrote without thinking (pydantic/pydantic-ai#8525).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mull.dialects.openai_chat.details import text_of
from mull.neutral.blocks import ThinkingBlock
from mull.neutral.request import Request
from mull.neutral.target import Compat

__all__ = ["IN_CONTENT", "TAGS", "ReasoningFields", "ReasoningRule"]

TAGS = "think_tags"
"""The place of a thought in tags; the opening one follows after a colon if it is not the first."""
IN_CONTENT = frozenset({"content_list", TAGS})
"""Places inside the content; every other place is a key of the message."""
_DETAILS, _OPAQUE, _COPILOT = "reasoning_details", "reasoning_opaque", "reasoning_text"
_CLAUDE = "anthropic-claude-v1"
_NOWHERE = "extra_content"
"""Marked thoughts are Google's summaries; their endpoint does not take them back."""


class ReasoningRule:
    """Where reasoning goes in every message of one request."""

    def __init__(self, request: Request, compat: Compat) -> None:
        self.only = request.reasoning_field
        self.compat = compat
        self._thinks = request.thinking.thinks
        self._first = next(iter(compat.reasoning_in), "reasoning_content")

    def place_of(self, block: ThinkingBlock) -> str | None:
        """The field or place for a block; None where it cannot go back."""
        place = self.only or self.compat.reasoning_out
        if place == "never":
            return None
        if place == "same":
            place = block.source_field or self._first
            place = TAGS if place.startswith(f"{TAGS}:") else place
        if place == _NOWHERE or (place == _COPILOT and not self.only and not block.signature):
            # Copilot takes the text only together with what it signs (anomalyco/opencode#4468).
            return None
        return place

    def filler(self, *, has_calls: bool) -> tuple[str, str] | None:
        """The field and text for a message without reasoning, where the endpoint needs one."""
        compat = self.compat
        needed = compat.requires_reasoning == "all" or (
            compat.requires_reasoning == "tool_calls" and has_calls
        )
        field = self.only or compat.reasoning_out
        if field == "same":
            field = self._first
        if field in ("never", _DETAILS) or field in IN_CONTENT:
            return None
        if compat.missing_reasoning is None or not needed or not self._thinks:
            return None
        return field, compat.missing_reasoning


class ReasoningFields:
    """The keys of one message that hold its reasoning."""

    def __init__(self, rule: ReasoningRule) -> None:
        self._rule = rule
        self._texts: dict[str, str] = {}
        self._details: list[dict[str, Any]] = []
        self._opaque: str | None = None
        self.unsigned = 0

    def add(self, block: ThinkingBlock, place: str) -> None:
        """Take in a block that goes back outside the content."""
        details = block.details or []
        if place == _DETAILS:
            if not details and block.thought:
                details = [{"type": "reasoning.text", "text": block.thought}]
            self._add_details(details)
            return
        if details and self._rule.only is None and block.source_field != "content_list":
            named = self._rule.compat.reasoning_out != "same"
            if not named or any(map(_is_opaque, details)):
                self._add_details(details)
            if not named and "".join(map(text_of, details)) == block.thought:
                return
        if block.signature and block.source_field == _COPILOT and self._rule.only in (None, place):
            self._opaque = block.signature
        if block.thought:
            before = self._texts.get(place, "")
            between = "\n\n" if before and block.kind == "summary" else ""
            self._texts[place] = before + between + block.thought

    def _add_details(self, details: list[dict[str, Any]]) -> None:
        sound = [entry for entry in details if not _lost_signature(entry)]
        self._details += sound
        self.unsigned += len(sound) < len(details)

    def keys(self) -> Mapping[str, Any]:
        """The keys, in one order; none is empty."""
        keys: dict[str, Any] = dict(self._texts)
        if self._details:
            keys[_DETAILS] = self._details
        if self._opaque is not None:
            keys[_OPAQUE] = self._opaque
        return keys


def _lost_signature(entry: dict[str, Any]) -> bool:
    is_claudes = (entry.get("type"), entry.get("format")) == ("reasoning.text", _CLAUDE)
    return is_claudes and not entry.get("signature")


def _is_opaque(entry: dict[str, Any]) -> bool:
    return bool(entry.get("signature") or entry.get("data"))
