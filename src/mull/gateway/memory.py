"""The interface of every store for the gateway's records, and a store in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Protocol

__all__ = ["OK", "InProcess", "Memory", "StoreUnavailable", "anchor_of", "record_id"]

OK = "ok"
"""The state that `health` reports for a part that works."""
_DIGEST = 16


class StoreUnavailable(Exception):
    """The store does not respond. `found` has the records that are known without it."""

    def __init__(self, found: Mapping[str, bytes] | None = None) -> None:
        super().__init__("the gateway's store is not available")
        self.found: Mapping[str, bytes] = found or {}


class Memory(Protocol):
    """Stores records by key, separately for each scope.

    Records with the same content in the same scope are one record, found under all keys that were
    given for it. A key refers to the record that was stored under it last.
    """

    async def find(self, scope: str, keys: Iterable[str]) -> Mapping[str, bytes]:
        """The records found, by key."""

    async def keep(self, scope: str, keys: Iterable[str], data: bytes) -> None:
        """Store a record. Once this returns, other processes can find it."""

    async def forget(self, scope: str, keys: Iterable[str]) -> None:
        """Remove the records stored under these keys, together with all their keys."""

    async def agree(self, key: bytes) -> bytes:
        """The key with which all gateways on this store seal envelopes: this one, unless another
        gateway has stored one before."""

    def health(self) -> Mapping[str, str]:
        """The state of each part by name: `OK`, or a description of the problem. Does no I/O."""

    async def close(self) -> None:
        """Write pending changes, and close files and connections."""


def anchor_of(scope: str, key: str) -> bytes:
    """The form in which stores keep a key: a short hash, different for each scope."""
    text = f"{len(scope)}:{scope}{key}".encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=_DIGEST).digest()


def record_id(scope: str, data: bytes) -> bytes:
    """A hash that is the same for records with the same content and scope."""
    hashed = blake2b(f"{len(scope)}:{scope}".encode("utf-8", "surrogatepass"), digest_size=_DIGEST)
    hashed.update(data)
    return hashed.digest()


class InProcess:
    """Keeps the newest records in the memory of this process, for tests or without a disk."""

    def __init__(self, most: int = 10_000) -> None:
        self._records: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self._most = most

    async def find(self, scope: str, keys: Iterable[str]) -> Mapping[str, bytes]:
        """The records found, by key."""
        held = self._records
        return {key: held[scope, key] for key in keys if (scope, key) in held}

    async def keep(self, scope: str, keys: Iterable[str], data: bytes) -> None:
        """Store a record."""
        for key in keys:
            self._records[scope, key] = data
            self._records.move_to_end((scope, key))
        while len(self._records) > self._most:
            self._records.popitem(last=False)

    async def forget(self, scope: str, keys: Iterable[str]) -> None:
        """Remove the records stored under these keys, together with all their keys."""
        gone = {data for key in keys if (data := self._records.get((scope, key))) is not None}
        for name in [k for k, v in self._records.items() if k[0] == scope and v in gone]:
            del self._records[name]

    async def agree(self, key: bytes) -> bytes:
        """The given key, because no other gateway shares this store."""
        return key

    def health(self) -> Mapping[str, str]:
        """Always `OK`."""
        return {"store": OK}

    async def close(self) -> None:
        """Do nothing."""
