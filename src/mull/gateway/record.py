"""The stored record of one answer: the provider's own blocks and ids, and their origin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from mull.neutral.blocks import Block, Value
from mull.neutral.former import Reader
from mull.neutral.messages import Origin

__all__ = ["Kept", "Refused", "kept_from", "kept_to"]


class Kept(Value, frozen=True):
    """One answer. `ids` maps the key of each tool call id that the gateway minted to the provider's
    own id of that call."""

    origin: Origin
    blocks: tuple[Block, ...]
    ids: dict[str, str] = {}


Refused: TypeAlias = tuple[Sequence[str], Kept]
"""A record with a carrier that the upstream rejected, and the keys by which it was found."""
_read: Reader[Kept] = Reader(Kept)
_encode = msgspec.json.Encoder().encode


def kept_to(kept: Kept) -> bytes:
    """The serialized record."""
    return _encode(kept)


def kept_from(data: bytes) -> Kept | None:
    """The record in `data`; None if it can no longer be read."""
    try:
        return _read(data)
    except msgspec.DecodeError:
        return None
