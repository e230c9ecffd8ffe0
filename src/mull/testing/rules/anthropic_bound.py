"""What newer Claude models also reject: thinking before which anything has changed.

They bind each thinking block to the system prompt, the tools and the messages before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from mull.testing.ledger import Ledger

__all__ = ["check_bound_replay", "prefix_of"]

Body = Mapping[str, Any]

_encode = msgspec.json.Encoder(order="deterministic").encode


def check_bound_replay(body: Body, ledger: Ledger) -> str | None:
    """Whether all returned thinking is preceded by what it was issued after."""
    binding = (body.get("thinking") or {}).get("block_binding") or {}
    if binding.get("prefix_mismatch_behavior") == "drop_block":
        return None
    for index, message in enumerate(body["messages"]):
        for at, block in enumerate(_blocks(message)):
            place = ledger.find(block.get("signature", block.get("data")))
            if place and place.issued.prefix != prefix_of(body, index):
                return (
                    f"messages.{index}.content.{at}: Invalid `signature` in `thinking` block. The"
                    " block is bound to a different conversation. Remove the block, or set"
                    ' `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
                )
    return None


def prefix_of(body: Body, length: int) -> str:
    """A hash of everything before the message at `length`; cache marks do not count."""
    messages = [
        {**message, "content": [_unmarked(block) for block in _blocks(message)]}
        for message in body["messages"][:length]
    ]
    system = body.get("system") or []
    spoken = [{"type": "text", "text": system}] if isinstance(system, str) else system
    fixed = [[_unmarked(part) for part in parts] for parts in (spoken, body.get("tools") or [])]
    return sha256(_encode([*fixed, messages])).hexdigest()


def _blocks(message: Body) -> Sequence[Body]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _unmarked(part: Body) -> Body:
    return {key: value for key, value in part.items() if key != "cache_control"}
