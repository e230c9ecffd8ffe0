"""What the gateway remembers of one answer: the provider's own blocks, ids and origin."""

from __future__ import annotations

import msgspec

from mull.neutral.blocks import Block, Value
from mull.neutral.former import Reader
from mull.neutral.messages import Origin

__all__ = ["Kept", "kept_from", "kept_to"]


class Kept(Value, frozen=True):
    """One answer. `ids` are the provider's ids of its calls, by the key of the minted one."""

    origin: Origin
    blocks: tuple[Block, ...]
    ids: dict[str, str] = {}


_read: Reader[Kept] = Reader(Kept)
_encode = msgspec.json.Encoder().encode


def kept_to(kept: Kept) -> bytes:
    """The record as it is stored."""
    return _encode(kept)


def kept_from(data: bytes) -> Kept | None:
    """The record that was stored; None where it cannot be read any more."""
    try:
        return _read(data)
    except msgspec.DecodeError:
        return None
