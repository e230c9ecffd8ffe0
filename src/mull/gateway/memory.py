"""The interface of every store for the gateway's records, and a store in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Protocol

__all__ = [
    "OK",
    "OVERHEAD",
    "SEVERAL",
    "InProcess",
    "Memory",
    "StoreUnavailable",
    "anchor_of",
    "record_id",
]

OK = "ok"
"""The state that `health` reports for a part that works."""
SEVERAL = b""
"""What is found under a key that was given for several records."""
MOST_IN_PROCESS = 64_000_000
_DIGEST = 16
OVERHEAD = 200
"""Approximate bytes that a record, and each of its keys, occupies in addition to its content."""


class StoreUnavailable(Exception):
    """The store does not respond. `found` has the records that are known without it."""

    def __init__(self, found: Mapping[str, bytes] | None = None) -> None:
        super().__init__("the gateway's store is not available")
        self.found: Mapping[str, bytes] = found or {}


class Memory(Protocol):
    """Stores records by key, separately for each scope.

    Records with the same content in the same scope are one record, found under all keys that were
    given for it. A key that was given for several different records finds none of them but
    `SEVERAL`, because nothing says which one is meant: conversations that look alike must not get
    each other's. That holds in whatever order and by however many gateways they are stored.
    """

    async def find(self, scope: str, keys: Iterable[str]) -> Mapping[str, bytes]:
        """The records found, by key."""

    async def keep(self, scope: str, keys: Iterable[str], data: bytes) -> Collection[str]:
        """Store a record. Once this returns, other processes can find it. Returns those of its keys
        under which there are several."""

    async def forget(self, scope: str, keys: Iterable[str]) -> None:
        """Remove the records stored under these keys, together with all their keys."""

    async def forget_all(self, scope: str) -> Sequence[bytes]:
        """Remove all records of a scope; returns their ids. Keys of several records may stay."""

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
    """Keeps records in the memory of this process, for tests or without a disk: the newest of about
    `most` bytes, or all if that is None."""

    def __init__(self, most: int | None = MOST_IN_PROCESS) -> None:
        self._records: dict[tuple[str, str], bytes] = {}
        self._keys: OrderedDict[tuple[str, bytes], set[str]] = OrderedDict()
        """The keys of each record, by its scope and content, oldest record first."""
        self._several: OrderedDict[tuple[str, str], None] = OrderedDict()
        """The keys of several records, oldest first."""
        self._most = most
        self.size: int = 0
        """The approximate bytes of all records."""

    async def find(self, scope: str, keys: Iterable[str]) -> Mapping[str, bytes]:
        """The records found, by key."""
        held = self._records
        return {key: held[scope, key] for key in keys if (scope, key) in held}

    async def keep(self, scope: str, keys: Iterable[str], data: bytes) -> Collection[str]:
        """Store a record; return those of its keys under which there are several."""
        several = []
        for key in dict.fromkeys(keys):
            before = self._records.get((scope, key))
            if before is not None and before != data:
                several.append(key)
            self._put(scope, key, data if before in (None, data) else SEVERAL)
        self._shrink()
        return several

    def _put(self, scope: str, key: str, data: bytes) -> None:
        self._release(scope, key)
        self._records[scope, key] = data
        self.size += len(key) + OVERHEAD
        if data == SEVERAL:
            self._several[scope, key] = None
            return
        if (scope, data) not in self._keys:
            self._keys[scope, data] = set()
            self.size += len(data) + OVERHEAD
        self._keys[scope, data].add(key)
        self._keys.move_to_end((scope, data))

    def _shrink(self) -> None:
        """Remove the oldest, of keys without a record if they are more than those with one."""
        while self._most is not None and self.size > self._most:
            if len(self._several) > len(self._records) // 2:
                self._release(*next(iter(self._several)))
            elif len(self._keys) > 1:
                self._remove(*next(iter(self._keys)))
            else:
                return

    async def forget(self, scope: str, keys: Iterable[str]) -> None:
        """Remove the records stored under these keys, together with all their keys."""
        for key in keys:
            if data := self._records.get((scope, key)):
                self._remove(scope, data)

    async def forget_all(self, scope: str) -> Sequence[bytes]:
        """Remove all records of a scope; returns their ids."""
        gone = [data for own, data in self._keys if own == scope]
        for data in gone:
            self._remove(scope, data)
        return [record_id(scope, data) for data in gone]

    def _remove(self, scope: str, data: bytes) -> None:
        """Remove a record and all its keys."""
        for key in list(self._keys[scope, data]):
            self._release(scope, key)

    def _release(self, scope: str, key: str) -> None:
        """Remove a key, and its record if that was its last one."""
        data = self._records.pop((scope, key), None)
        if data is None:
            return
        self.size -= len(key) + OVERHEAD
        if data == SEVERAL:
            del self._several[scope, key]
            return
        left = self._keys[scope, data]
        left.discard(key)
        if not left:
            del self._keys[scope, data]
            self.size -= len(data) + OVERHEAD

    async def agree(self, key: bytes) -> bytes:
        """The given key, because no other gateway shares this store."""
        return key

    def health(self) -> Mapping[str, str]:
        """Always `OK`."""
        return {"store": OK}

    async def close(self) -> None:
        """Do nothing."""
