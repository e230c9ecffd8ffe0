"""Sessions that are kept nowhere: the same store without a file, gone with its process.

Not even a process that is killed leaves anything behind.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Self

from mull.store.sessions.database import Database, bring_up_to_date
from mull.store.sessions.sqlite import SqliteSessions

if TYPE_CHECKING:
    from sqlite3 import Connection

__all__ = ["MemorySessions"]

_NOWHERE = Path(":memory:")


class MemorySessions(SqliteSessions):
    """A store of sessions in memory. Only this process knows of it, so nothing is locked."""

    def __init__(self) -> None:
        super().__init__(_NOWHERE)
        self._database = _MemoryDatabase(_NOWHERE, print)

    def _lock(self, ident: str) -> _Hold:
        return _Hold()

    def holder(self, session: str) -> int | None:
        return None


class _MemoryDatabase(Database):
    def _open(self) -> Connection:
        import sqlite3

        connection = sqlite3.connect(_NOWHERE, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA temp_store = MEMORY")
        bring_up_to_date(connection)
        return connection

    def _still_there(self) -> None:
        """There is no file that could be moved away."""

    def _keep_reserve(self) -> None:
        """There is no disk that could be full."""


class _Hold:
    """The right to write a session that nobody else can."""

    def __init__(self) -> None:
        self.is_held = True

    def release(self) -> None:
        self.is_held = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
