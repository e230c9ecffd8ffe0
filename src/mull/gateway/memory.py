"""Where the gateway remembers answers: what every store of them can do."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Protocol

__all__ = ["InProcess", "Memory"]


class Memory(Protocol):
    """Records by key, apart for each scope. A record is written once and read by any of its
    keys."""

    async def find(self, scope: str, keys: Iterable[str]) -> Mapping[str, bytes]:
        """The records that are there, by key."""

    async def keep(self, scope: str, keys: Iterable[str], data: bytes) -> None:
        """Store a record; when this returns, another process finds it."""

    async def forget(self, scope: str, keys: Iterable[str]) -> None:
        """Remove the records that these keys lead to."""

    async def close(self) -> None:
        """Write what is still to be written."""


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
        while len(self._records) > self._most:
            self._records.popitem(last=False)

    async def forget(self, scope: str, keys: Iterable[str]) -> None:
        """Remove the records that these keys lead to."""
        gone = {data for key in keys if (data := self._records.get((scope, key))) is not None}
        self._records = OrderedDict((k, v) for k, v in self._records.items() if v not in gone)

    async def close(self) -> None:
        """Nothing is written."""
