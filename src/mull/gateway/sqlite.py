"""Answers on disk, in one SQLite file that any number of gateways on this machine share.

One thread does all the work. What waits while it commits goes into the next commit together, so the
cost of a commit is shared. Records that have not been asked for longest go first when the file has
grown too large or they too old.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from mull.logs import log_warning
from mull.store.files import make_parents

__all__ = ["SqliteMemory"]

_VERSION = 1
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS record ("
    " id INTEGER PRIMARY KEY, data BLOB NOT NULL, size INTEGER NOT NULL, used REAL NOT NULL)",
    "CREATE INDEX IF NOT EXISTS record_used ON record (used)",
    "CREATE TABLE IF NOT EXISTS anchor ("
    " scope TEXT NOT NULL, key TEXT NOT NULL,"
    " record INTEGER NOT NULL REFERENCES record (id) ON DELETE CASCADE,"
    " PRIMARY KEY (scope, key)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS anchor_record ON anchor (record)",
)
_MOST_VARIABLES = 500
_CLEAN_EVERY = 300.0
_TOUCH_AFTER = 3600.0
_PATIENCE = 5.0
_DAY = 86_400.0


class _Job(NamedTuple):
    work: Callable[[sqlite3.Connection], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class SqliteMemory:
    """Keeps records for `days` since their last use, and at most `megabytes` of them."""

    def __init__(self, path: Path, *, days: float = 30, megabytes: float = 2_000) -> None:
        self._path = path
        self._days = days
        self._most = int(megabytes * 1_000_000)
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._cleaned = 0.0

    async def find(self, scope: str, keys: Iterable[str]) -> Mapping[str, bytes]:
        """The records that are there, by key.

        Raises:
            sqlite3.Error: the file cannot be read.
        """
        wanted = tuple(keys)
        found: dict[str, bytes] = await self._do(lambda db: _find(db, scope, wanted, time.time()))
        return found

    async def keep(self, scope: str, keys: Iterable[str], data: bytes) -> None:
        """Store a record; when this returns, another process finds it.

        Raises:
            sqlite3.Error: the file cannot be written.
        """
        named = tuple(keys)
        await self._do(lambda db: _keep(db, scope, named, data, time.time()))

    async def forget(self, scope: str, keys: Iterable[str]) -> None:
        """Remove the records that these keys lead to."""
        named = tuple(keys)
        await self._do(lambda db: _forget(db, scope, named))

    async def close(self) -> None:
        """Write what is still to be written and close the file."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            await asyncio.to_thread(thread.join, _PATIENCE)

    async def _do(self, work: Callable[[sqlite3.Connection], Any]) -> Any:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="mull-memory", daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._jobs.put(_Job(work, loop, future))
        return await future

    def _run(self) -> None:
        """Do jobs until there is none to come; a file that cannot be opened fails each of them."""
        db: sqlite3.Connection | None = None
        while (jobs := self._waiting()) is not None:
            try:
                db = db or _open(self._path)
                self._work(db, jobs)
                self._clean(db)
            except sqlite3.Error as error:
                for job in jobs:
                    _settle(job, error=error)
                if db is not None:
                    db.close()
                db = None
        if db is not None:
            db.close()

    def _waiting(self) -> list[_Job] | None:
        """All jobs that wait, at least one; None when it is over."""
        first = self._jobs.get()
        if first is None:
            return None
        jobs = [first]
        for _ in range(self._jobs.qsize()):
            following = self._jobs.get()
            if following is None:
                self._jobs.put(None)
                break
            jobs.append(following)
        return jobs

    def _work(self, db: sqlite3.Connection, jobs: list[_Job]) -> None:
        """Do them in one transaction, and tell of each when that is committed."""
        with db:
            db.execute("BEGIN IMMEDIATE")
            results = [job.work(db) for job in jobs]
        for job, result in zip(jobs, results, strict=True):
            _settle(job, result)

    def _clean(self, db: sqlite3.Connection) -> None:
        now = time.time()
        if now - self._cleaned < _CLEAN_EVERY:
            return
        self._cleaned = now
        try:
            with db:
                db.execute("DELETE FROM record WHERE used < ?", (now - self._days * _DAY,))
                _shrink(db, self._most)
        except sqlite3.Error as error:  # the jobs are done; it is tried again later
            log_warning(f"the gateway's store cannot be cleaned: {error}")


def _open(path: Path) -> sqlite3.Connection:
    make_parents(path.parent)
    path.touch(mode=0o600, exist_ok=True)
    db = sqlite3.connect(path, isolation_level=None, timeout=_PATIENCE)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA foreign_keys = ON")
        for statement in _SCHEMA:
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {_VERSION}")
    except sqlite3.Error:
        db.close()
        raise
    return db


def _find(
    db: sqlite3.Connection, scope: str, keys: tuple[str, ...], now: float
) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    stale: set[int] = set()
    for start in range(0, len(keys), _MOST_VARIABLES):
        some = keys[start : start + _MOST_VARIABLES]
        marks = ",".join("?" * len(some))
        rows = db.execute(
            "SELECT anchor.key, record.id, record.data, record.used FROM anchor"
            " JOIN record ON record.id = anchor.record"
            f" WHERE anchor.scope = ? AND anchor.key IN ({marks})",
            (scope, *some),
        )
        for key, number, data, used in rows:
            found[key] = data
            if now - used > _TOUCH_AFTER:
                stale.add(number)
    db.executemany("UPDATE record SET used = ? WHERE id = ?", [(now, one) for one in stale])
    return found


def _keep(
    db: sqlite3.Connection, scope: str, keys: tuple[str, ...], data: bytes, now: float
) -> None:
    row = db.execute(
        "INSERT INTO record (data, size, used) VALUES (?, ?, ?)", (data, len(data), now)
    )
    db.executemany(
        "INSERT OR REPLACE INTO anchor (scope, key, record) VALUES (?, ?, ?)",
        [(scope, key, row.lastrowid) for key in keys],
    )


def _forget(db: sqlite3.Connection, scope: str, keys: tuple[str, ...]) -> None:
    db.executemany(
        "DELETE FROM record WHERE id IN (SELECT record FROM anchor WHERE scope = ? AND key = ?)",
        [(scope, key) for key in keys],
    )


def _shrink(db: sqlite3.Connection, most: int) -> None:
    """Remove what was not used for longest, until a tenth of the room is free again."""
    (held,) = db.execute("SELECT coalesce(sum(size), 0) FROM record").fetchone()
    if held <= most:
        return
    gone = []
    for number, size in db.execute("SELECT id, size FROM record ORDER BY used"):
        if held <= most * 0.9:
            break
        gone.append((number,))
        held -= size
    db.executemany("DELETE FROM record WHERE id = ?", gone)


def _settle(job: _Job, result: Any = None, error: Exception | None = None) -> None:
    def settle() -> None:
        if job.future.done():
            return
        if error is not None:
            job.future.set_exception(error)
        else:
            job.future.set_result(result)

    with suppress(RuntimeError):  # its event loop is gone, and whoever waited with it
        job.loop.call_soon_threadsafe(settle)
