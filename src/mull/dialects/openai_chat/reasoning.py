"""How the thinking of one answer is sent back to its endpoint.

Policy has left in what the endpoint accepts, in the form that it accepts; `places` says where.
Details are sent back unchanged and replace the text they contain. Empty thinking is not sent
(EC-007), unless the row asks for a placeholder in messages that the model wrote without thinking
(pydantic/pydantic-ai#8525).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mull.dialects.openai_chat.places import (
    IN_CONTENT,
    LISTS,
    by_list,
    entries_of,
    place_of,
    replace_text,
)
from mull.neutral.blocks import ThinkingBlock
from mull.neutral.request import Request
from mull.neutral.target import Compat

__all__ = ["ReasoningFields", "ReasoningRule"]

_OPAQUE = "reasoning_opaque"


class ReasoningRule:
    """Where reasoning goes in every message of one request."""

    def __init__(self, request: Request, compat: Compat) -> None:
        self.only = request.reasoning_field
        self.compat = compat
        self._thinks = request.thinking.thinks
        self._first = next(iter(compat.reasoning_in), "reasoning_content")

    def place_of(self, block: ThinkingBlock) -> str | None:
        """The field or place for a block; None if it cannot be sent back."""
        return place_of(block, self.only, self.compat.reasoning_out, self._first)

    def filler(self, *, has_calls: bool) -> tuple[str, str] | None:
        """The field and text for a message without reasoning, if the endpoint needs one."""
        compat = self.compat
        needed = compat.requires_reasoning == "all" or (
            compat.requires_reasoning == "tool_calls" and has_calls
        )
        field = self.only or compat.reasoning_out
        if field == "same":
            field = self._first
        if field == "never" or field in LISTS or field in IN_CONTENT:
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

    def add(self, block: ThinkingBlock, place: str) -> None:
        """Add a block that is sent back outside the content."""
        details = entries_of(block)
        if place in LISTS:
            whole = [{"type": "reasoning.text", "text": block.thought}] if block.thought else []
            self._details += details or whole
            return
        self._details += details
        named = self._rule.compat.reasoning_out != "same"
        if details and not named and replace_text(details, block.thought):
            return
        self._opaque = block.signature or self._opaque
        if block.thought:
            before = self._texts.get(place, "")
            # parts of a summary are paragraphs, unless the server itself joined them
            parts = block.kind == "summary" and self._rule.compat.thinking_kind == "raw"
            between = "\n\n" if before and parts else ""
            self._texts[place] = before + between + block.thought

    def keys(self) -> Mapping[str, Any]:
        """The keys, in a fixed order; none is empty."""
        keys: dict[str, Any] = dict(self._texts)
        keys |= by_list(self._details)
        if self._opaque is not None:
            keys[_OPAQUE] = self._opaque
        return keys
