"""Envelopes: reasoning that travels through a client which cannot read it.

A client that replays the carriers it was given keeps the conversation whole by itself: the envelope
holds the upstream's own blocks and their origin. It is signed and not encrypted, because it holds
nothing that this client was not sent anyway. The signature covers the client's scope, so one
client's envelope is worthless to another. An envelope never goes upstream.
"""

from __future__ import annotations

import binascii
import hmac
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable
from hashlib import sha256

import msgspec

from mull.neutral.blocks import Block, Value
from mull.neutral.former import Reader
from mull.neutral.messages import Origin

__all__ = ["MOST_SEALED", "Envelopes", "Sealed", "is_envelope"]

MOST_SEALED = 8_192
"""Bytes of an envelope; a longer thought is found in the store alone."""
_MARK = b"mull1."
_BEGINS = b64encode(_MARK).decode()  # six bytes are eight characters, whatever follows
_TAG = 16
_MOST_OPENED = 1 << 20


class Sealed(Value, frozen=True):
    """What an envelope holds: blocks of one answer by their place in it, and where they came
    from. Places matter because not every client keeps the order of what it is sent; `calls` says
    of each how many calls came before it, which holds also where a client joins texts."""

    origin: Origin
    blocks: dict[int, Block]
    calls: dict[int, int] = {}


_read: Reader[Sealed] = Reader(Sealed)
_encode = msgspec.json.Encoder().encode


def is_envelope(text: str) -> bool:
    """Whether a carrier looks like one of ours; only `Envelopes.open` knows whether it is."""
    return text.startswith(_BEGINS)


class Envelopes:
    """Seals and opens. The first key seals; all of them open, so that keys can be rotated.
    `keep` is told of a key that comes first from now on."""

    def __init__(self, *keys: bytes, keep: Callable[[bytes], None] | None = None) -> None:
        self._keys = keys
        self._keep = keep

    @property
    def key(self) -> bytes:
        """The key that seals."""
        return self._keys[0]

    def adopt(self, key: bytes) -> None:
        """Seal with this key from now on, as the other gateways do."""
        if key != self.key:
            self._keys = (key, *(one for one in self._keys if one != key))
            if self._keep is not None:
                self._keep(key)

    def seal(self, scope: str, sealed: Sealed, most: int = MOST_SEALED) -> str | None:
        """The envelope; None where the blocks are too long for one of `most` bytes."""
        packed = zlib.compress(_encode(sealed), 1)
        if len(packed) > most:
            return None
        return b64encode(_MARK + _tag(self._keys[0], scope, packed) + packed).decode()

    def open(self, scope: str, text: str) -> Sealed | None:
        """What it holds; None where it is not ours, was altered, or belongs to another scope."""
        try:
            data = b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            return None
        tag, packed = data[len(_MARK) : len(_MARK) + _TAG], data[len(_MARK) + _TAG :]
        if not data.startswith(_MARK):
            return None
        if not any(hmac.compare_digest(tag, _tag(key, scope, packed)) for key in self._keys):
            return None
        try:
            return _read(zlib.decompressobj().decompress(packed, _MOST_OPENED))
        except (zlib.error, msgspec.DecodeError):  # sealed by another version
            return None


def _tag(key: bytes, scope: str, packed: bytes) -> bytes:
    return hmac.digest(key, b"%b\0%b" % (scope.encode(), packed), sha256)[:_TAG]
