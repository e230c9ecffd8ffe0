"""How a file is mentioned while it is being typed: an @ and the beginning of a name."""

from __future__ import annotations

import re

__all__ = ["TYPED_MENTION", "is_mention"]

TYPED_MENTION = re.compile(r'(?<!\S)@(?:"([^"\n]*)|([^\s"]*))$')


def is_mention(typed: str) -> bool:
    """Whether the text before the cursor ends in the name of a file that is being typed."""
    return TYPED_MENTION.search(typed) is not None
