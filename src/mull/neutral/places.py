"""In which place of a message a thought goes back, if there is one.

In Chat the user's own field name decides, then the endpoint's row, then the field it came in: an
endpoint that nobody knows gets back only what it sent itself (BerriAI/litellm#30835). Policy asks
before it counts, the encoder when it writes, so both speak of the same place.
"""

from __future__ import annotations

from typing import Any

from mull.neutral.blocks import ThinkingBlock

__all__ = [
    "CONTENT_LIST",
    "DETAILS",
    "IN_CONTENT",
    "TAGS",
    "chat_place",
    "has_lost_signature",
    "is_opaque",
    "is_same_item",
    "text_of",
]

TAGS = "think_tags"
"""The place of a thought in tags; the opening one follows after a colon if it is not the first."""
CONTENT_LIST = "content_list"
IN_CONTENT = frozenset({CONTENT_LIST, TAGS})
"""Places inside the content; every other place is a key of the message."""
DETAILS = "reasoning_details"
_MARKED = "extra_content"
"""Marked thoughts are Google's summaries; their endpoint does not take them back."""
_CLAUDE = "anthropic-claude-v1"
_READABLE = ("text", "summary")


def chat_place(block: ThinkingBlock, only: str | None, out: str, first: str) -> str | None:
    """The field or place for a block; None where it cannot go back.

    `only` is the user's own field, `out` the row's `reasoningOut`, `first` the field that stands
    first among those the endpoint's answers are read from.
    """
    place = only or out
    if place == "never":
        return None
    if place == "same":
        place = block.source_field or first
        place = TAGS if place.startswith(f"{TAGS}:") else place
    return None if place == _MARKED else place


def is_same_item(before: ThinkingBlock, block: ThinkingBlock) -> bool:
    """Whether two thoughts that follow each other are one reasoning item of the Responses API:
    its summary and its raw text. One item has one seal."""
    if before.encrypted and block.encrypted:
        return False
    return (before.kind, block.kind) == ("summary", "raw") and before.id == block.id


def text_of(entry: dict[str, Any]) -> str:
    """The readable text of an entry of `reasoning_details`; some call its type just `text`."""
    for name in _READABLE:
        text = entry.get(name)
        if isinstance(text, str) and text:
            return text
    return ""


def has_lost_signature(entry: dict[str, Any]) -> bool:
    """Whether an entry is a thought of Claude's without its signature, which Claude refuses."""
    is_claudes = (entry.get("type"), entry.get("format")) == ("reasoning.text", _CLAUDE)
    return is_claudes and not entry.get("signature")


def is_opaque(entry: dict[str, Any]) -> bool:
    """Whether an entry of `reasoning_details` holds what only its endpoint can read."""
    return bool(entry.get("signature") or entry.get("data"))
