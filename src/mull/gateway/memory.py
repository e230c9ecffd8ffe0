"""Where the gateway remembers answers: what every store of them can do."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Protocol

__all__ = ["OK", "InProcess", "Memory", "StoreUnavailable", "anchor_of", "record_id"]

OK = "ok"
"""What `health` says of a part that works."""
_DIGEST = 16


class StoreUnavailable(Exception):
    """The store does not answer now. `found` are the records that are known without it."""

    def __init__(self, found: Mapping[str, bytes] | None = None) -> None:
        super().__init__("the store of the gateway is not available")
        self.found: Mapping[str, bytes] = found or {}


class Memory(Protocol):
    """Records by key, apart for each scope.

    A record is its content: stored twice in a scope it is one record, found by the keys of both.
    A key leads to the record that was stored under it last.
    """

    async def find(self, scope: str, keys: Iterable[str]) -> Mapping[str, bytes]:
        """The records that are there, by key."""

    async def keep(self, scope: str, keys: Iterable[str], data: bytes) -> None:
        """Store a record; when this returns, another process finds it."""

    async def forget(self, scope: str, keys: Iterable[str]) -> None:
        """Remove the records that these keys lead to, under all their keys."""

    async def agree(self, key: bytes) -> bytes:
        """The key that all gateways of this store seal envelopes with: this one, unless another
        gateway was first."""

    def health(self) -> Mapping[str, str]:
        """Each part by name: `OK`, or what is wrong with it. Asks nobody and never waits."""

    async def close(self) -> None:
        """Write what is still to be written."""


def anchor_of(scope: str, key: str) -> bytes:
    """A key as stores hold it: short, whatever a client has put into it, and apart by scope."""
    text = f"{len(scope)}:{scope}{key}".encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=_DIGEST).digest()


def record_id(scope: str, data: bytes) -> bytes:
    """What makes two records of a scope the same one."""
    hashed = blake2b(f"{len(scope)}:{scope}".encode("utf-8", "surrogatepass"), digest_size=_DIGEST)
    hashed.update(data)
    return hashed.digest()


class InProcess:
    """Keeps the newest records of this process alone: for tests, and where there is no disk."""

    def __init__(self, most: int = 10_000) -> None:
        self._records: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self._most = most

    async def find(self, scope: str, keys: Iterable[str]) -> Mapping[str, bytes]:
        """The records that are there, by key."""
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
        """Remove the records that these keys lead to, under all their keys."""
        gone = {data for key in keys if (data := self._records.get((scope, key))) is not None}
        for name in [k for k, v in self._records.items() if k[0] == scope and v in gone]:
            del self._records[name]

    async def agree(self, key: bytes) -> bytes:
        """There are no others."""
        return key

    def health(self) -> Mapping[str, str]:
        """A dictionary is always there."""
        return {"store": OK}

    async def close(self) -> None:
        """Nothing is written."""
