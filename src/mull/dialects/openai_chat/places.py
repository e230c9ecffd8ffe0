"""In which place of a message thinking is sent back, if there is one.

The user's own field name decides, then the endpoint's row, then the field it came in: an unknown
endpoint gets back only what it sent itself (BerriAI/litellm#30835). It is determined before
counting and when writing, so both use the same place.

Beside its text, a thinking block keeps in its wire the entries of `reasoning_details` or of
`thinking_blocks` (Claude behind LiteLLM), which their types tell apart, or the members of its part
if the content is a list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mull.dialects.openai_chat import DIALECT
from mull.neutral.blocks import ThinkingBlock, own_keys

__all__ = [
    "CONTENT_LIST",
    "DETAILS",
    "IN_CONTENT",
    "LISTS",
    "MEMBERS",
    "TAGS",
    "by_list",
    "entries_in",
    "entries_of",
    "has_lost_signature",
    "is_opaque",
    "members_of",
    "place_of",
    "replace_text",
    "text_of",
]

TAGS = "think_tags"
"""The place of thinking in tags; the opening tag follows after a colon if it is not the first."""
CONTENT_LIST = "content_list"
IN_CONTENT = frozenset({CONTENT_LIST, TAGS})
"""Places inside the content; every other place is a key of the message."""
DETAILS, BLOCKS = "reasoning_details", "thinking_blocks"
LISTS = frozenset({DETAILS, BLOCKS})
"""Places that are lists of entries beside the content."""
MEMBERS = "thinking"
_MARKED = "extra_content"
"""Marked thinking is Google's summaries; their endpoint does not accept them back."""
_CLAUDE = "anthropic-claude-v1"
_BLOCK_TYPES = ("thinking", "redacted_thinking")
_READABLE = ("text", "summary", "thinking")


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
    """The entries of the lists that belong to a thinking block."""
    return entries_in(own_keys(block.wire, DIALECT))


def entries_in(kept: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The entries of the lists in a block's data."""
    return _objects(kept.get(DETAILS))


def by_list(entries: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The entries by the list that they are sent in."""
    lists: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        lists.setdefault(BLOCKS if _is_block(entry) else DETAILS, []).append(entry)
    return lists


def replace_text(entries: Sequence[dict[str, Any]], thought: str) -> bool:
    """Whether the entries are sent instead of the text that they contain. `thinking_blocks` go
    beside it: the proxy that writes them also does so for models that read only the text.
    """
    return "".join(map(text_of, entries)) == thought and not any(map(_is_block, entries))


def _is_block(entry: dict[str, Any]) -> bool:
    return entry.get("type") in _BLOCK_TYPES


def members_of(block: ThinkingBlock) -> list[dict[str, Any]]:
    """The members of thinking that came as a part of the content, if they are not all text."""
    return _objects(own_keys(block.wire, DIALECT).get(MEMBERS))


def _objects(held: Any) -> list[dict[str, Any]]:
    return [one for one in held if isinstance(one, dict)] if isinstance(held, list) else []


def text_of(entry: dict[str, Any]) -> str:
    """The readable text of an entry; some call its type just `text`."""
    for name in _READABLE:
        text = entry.get(name)
        if isinstance(text, str) and text:
            return text
    return ""


def has_lost_signature(entry: dict[str, Any]) -> bool:
    """Whether an entry is thinking of Claude without its signature, which Claude rejects."""
    kind = entry.get("type"), entry.get("format")
    is_claudes = kind == ("reasoning.text", _CLAUDE) or kind[0] == _BLOCK_TYPES[0]
    return is_claudes and not entry.get("signature")


def is_opaque(entry: dict[str, Any]) -> bool:
    """Whether an entry contains what only its endpoint can read."""
    return bool(entry.get("signature") or entry.get("data"))
