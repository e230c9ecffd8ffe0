"""Envelopes: the upstream's reasoning in a form that clients of other dialects store and return.

An envelope contains the upstream's blocks and their origin, so that a client which returns the
carriers it received keeps its conversation complete without the store. It is signed but not
encrypted: the client has received its content anyway. The signature covers the client's scope, so
other clients cannot use it. Envelopes are never sent upstream.
"""

from __future__ import annotations

import hmac
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable
from hashlib import sha256

import msgspec

from mull.gateway.packing import packed
from mull.neutral.blocks import Block, Value
from mull.neutral.former import Reader
from mull.neutral.messages import Origin

__all__ = ["MOST_SEALED", "Envelopes", "Sealed", "is_envelope"]

MOST_SEALED = 8_192
"""The maximum size of an envelope in bytes; longer thinking is only in the store, and its envelope
refers to it."""
_MARK = b"mull1."
_BEGINS = b64encode(_MARK).decode()  # six bytes encode to exactly eight characters
_TAG = 16
_MOST_OPENED = 1 << 20


class Sealed(Value, frozen=True):
    """The content of an envelope: blocks of one answer by their position in it, and their origin.
    Positions are needed because some clients reorder blocks. `calls` is the number of calls before
    each block, which stays correct if a client joins texts. `answer` is the gateway's id of the
    answer, by which it is found in the store; envelopes of earlier versions have none."""

    origin: Origin
    blocks: dict[int, Block]
    calls: dict[int, int] = {}
    answer: str = ""


_read: Reader[Sealed] = Reader(Sealed)
_encode = msgspec.json.Encoder().encode


def is_envelope(text: str) -> bool:
    """Whether a carrier looks like an envelope. Only `Envelopes.open` verifies that it is one."""
    return text.startswith(_BEGINS)


class Envelopes:
    """Seals and opens envelopes. The first key seals; all keys open, so that keys can be rotated.
    `keep` is called with a newly adopted key, to store it."""

    def __init__(self, *keys: bytes, keep: Callable[[bytes], None] | None = None) -> None:
        self._keys = keys
        self._keep = keep

    @property
    def key(self) -> bytes:
        """The key that seals."""
        return self._keys[0]

    def adopt(self, key: bytes) -> None:
        """Seal with this key, which the other gateways also use, from now on."""
        if key != self.key:
            self._keys = (key, *(one for one in self._keys if one != key))
            if self._keep is not None:
                self._keep(key)

    def seal(self, scope: str, sealed: Sealed, most: int = MOST_SEALED) -> str | None:
        """The envelope; None if it would exceed `most` bytes."""
        data = packed(_encode(sealed))
        if len(data) > most:
            return None
        return b64encode(_MARK + _tag(self._keys[0], scope, data) + data).decode()

    def open(self, scope: str, text: str) -> Sealed | None:
        """The content of an envelope; None if this is no envelope, was altered, or belongs to
        another scope."""
        try:
            data = b64decode(text, validate=True)
        except ValueError:
            return None
        tag, content = data[len(_MARK) : len(_MARK) + _TAG], data[len(_MARK) + _TAG :]
        if not data.startswith(_MARK):
            return None
        if not any(hmac.compare_digest(tag, _tag(key, scope, content)) for key in self._keys):
            return None
        try:
            return _read(zlib.decompressobj().decompress(content, _MOST_OPENED))
        except (zlib.error, msgspec.DecodeError):  # sealed by another version
            return None


def _tag(key: bytes, scope: str, content: bytes) -> bytes:
    return hmac.digest(key, b"%b\0%b" % (scope.encode(), content), sha256)[:_TAG]
