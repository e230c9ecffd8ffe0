"""Recognises a file mention while it is being typed: an @ and the start of a name."""

from __future__ import annotations

from mull.neutral.patterns import pattern

__all__ = ["TYPED_MENTION", "is_mention"]

TYPED_MENTION = pattern(r'(?<!\S)@(?:"([^"\n]*)|([^\s"]*))$')


def is_mention(typed: str) -> bool:
    """Whether the text before the cursor ends in an unfinished file mention."""
    return TYPED_MENTION.search(typed) is not None
