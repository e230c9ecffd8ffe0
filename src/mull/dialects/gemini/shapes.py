"""The shapes of a content's parts, for requests and for answers."""

from __future__ import annotations

from typing import Any

__all__ = ["PART_KEYS", "call_part", "signed", "thought_part"]

PART_KEYS = "part"
"""Where `extra` of a call holds the keys that stood beside it in its part."""

Part = dict[str, Any]


def thought_part(text: str, signature: str | None, details: list[Part] | None) -> Part:
    """A thought; the details of one that came in this dialect are keys of its part."""
    part: Part = {"text": text, "thought": True}
    for extra in details or ():
        part = {**extra, **part}
    return signed(part, signature)


def call_part(name: str, arguments: Part, extra: Part | None, signature: str | None) -> Part:
    """A function call, with whatever else stood in it or beside it."""
    more = dict(extra or {})
    beside = more.pop(PART_KEYS, None) or {}
    call = {**more, "name": name, "args": arguments}
    return signed({**beside, "functionCall": call}, signature)


def signed(part: Part, signature: str | None) -> Part:
    """The signature stands on the part, beside the call (thClaws/thClaws#65)."""
    return {**part, "thoughtSignature": signature} if signature else part
