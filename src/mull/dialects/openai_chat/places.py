"""In which place of a message thinking is sent back, if there is one.

The user's own field name decides, then the endpoint's row, then the field it came in: an unknown
endpoint gets back only what it sent itself (BerriAI/litellm#30835). It is determined before
counting and when writing, so both use the same place.

Beside its text, a thinking block keeps in its wire the entries of `reasoning_details`, or the
members of its part if the content is a list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mull.dialects.openai_chat import DIALECT
from mull.neutral.blocks import ThinkingBlock, own_keys

__all__ = [
    "CONTENT_LIST",
    "DETAILS",
    "IN_CONTENT",
    "MEMBERS",
    "TAGS",
    "entries_in",
    "entries_of",
    "has_lost_signature",
    "is_opaque",
    "members_of",
    "place_of",
    "text_of",
]

TAGS = "think_tags"
"""The place of thinking in tags; the opening tag follows after a colon if it is not the first."""
CONTENT_LIST = "content_list"
IN_CONTENT = frozenset({CONTENT_LIST, TAGS})
"""Places inside the content; every other place is a key of the message."""
DETAILS = "reasoning_details"
MEMBERS = "thinking"
_MARKED = "extra_content"
"""Marked thinking is Google's summaries; their endpoint does not accept them back."""
_CLAUDE = "anthropic-claude-v1"
_READABLE = ("text", "summary")


def place_of(block: ThinkingBlock, only: str | None, out: str, first: str) -> str | None:
    """The field or place for a block; None if it cannot be sent back.

    `only` is the user's own field, `out` the row's `reasoningOut`, `first` the first of the fields
    that the endpoint's answers are read from.
    """
    place = only or out
    if place == "never":
        return None
    if place == "same":
        place = block.source_field or first
        place = TAGS if place.startswith(f"{TAGS}:") else place
    return None if place == _MARKED else place


def entries_of(block: ThinkingBlock) -> list[dict[str, Any]]:
    """The entries of `reasoning_details` that belong to a thinking block."""
    return entries_in(own_keys(block.wire, DIALECT))


def entries_in(kept: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The entries of `reasoning_details` in a block's data."""
    return _objects(kept.get(DETAILS))


def members_of(block: ThinkingBlock) -> list[dict[str, Any]]:
    """The members of thinking that came as a part of the content, if they are not all text."""
    return _objects(own_keys(block.wire, DIALECT).get(MEMBERS))


def _objects(held: Any) -> list[dict[str, Any]]:
    return [one for one in held if isinstance(one, dict)] if isinstance(held, list) else []


def text_of(entry: dict[str, Any]) -> str:
    """The readable text of an entry of `reasoning_details`; some call its type just `text`."""
    for name in _READABLE:
        text = entry.get(name)
        if isinstance(text, str) and text:
            return text
    return ""


def has_lost_signature(entry: dict[str, Any]) -> bool:
    """Whether an entry is thinking of Claude without its signature, which Claude rejects."""
    is_claudes = (entry.get("type"), entry.get("format")) == ("reasoning.text", _CLAUDE)
    return is_claudes and not entry.get("signature")


def is_opaque(entry: dict[str, Any]) -> bool:
    """Whether an entry of `reasoning_details` contains what only its endpoint can read."""
    return bool(entry.get("signature") or entry.get("data"))
