"""The formats of a content's parts, for requests and for answers."""

from __future__ import annotations

from typing import Any

from mull.neutral.blocks import as_keys

__all__ = ["PART_KEYS", "RESULT_KEYS", "call_part", "text_part", "thought_part"]

PART_KEYS = "part"
"""The key in the wire of a call for the keys that were beside it in its part."""

RESULT_KEYS = "result"
"""The key in the wire of a result for what its client wrote in it; the rest was beside it in its
part."""

Part = dict[str, Any]


def text_part(text: str, kept: Part, signature: str | None) -> Part:
    """A text, with whatever else was beside it."""
    return signed({**kept, "text": text}, signature)


def thought_part(text: str, kept: Part, signature: str | None) -> Part:
    """Thinking, with whatever else was beside it."""
    return signed({**kept, "text": text, "thought": True}, signature)


def call_part(name: str, arguments: Part, kept: Part, signature: str | None) -> Part:
    """A function call, with whatever else was in it or beside it."""
    more = dict(kept)
    beside = as_keys(more.pop(PART_KEYS, None))
    call = {**more, "name": name, "args": arguments}
    return signed({**beside, "functionCall": call}, signature)


def signed(part: Part, signature: str | None) -> Part:
    """The signature is on the part, beside the call (thClaws/thClaws#65)."""
    return {**part, "thoughtSignature": signature} if signature else part
