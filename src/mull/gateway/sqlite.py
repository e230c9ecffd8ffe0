"""A store in one SQLite file, which any number of gateways on this machine can share.

One thread reads and one writes, each with its own connection: in WAL mode, readers never wait.
Writes that arrive during a commit are grouped into the next one, so they share its cost. A commit
survives a crash of the process; a power failure may lose the last few commits but does not corrupt
the file. When records grow too old or the file too large, the least recently used records are
removed first.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeAlias

from mull.gateway.damage import Connection, Damaged, begin_anew, file_id, is_damage, require_file
from mull.gateway.memory import OK, SEVERAL, anchor_of, record_id
from mull.store.files import make_parents

__all__ = ["SqliteMemory", "closed_after", "open_file", "reopened", "set_up"]

_VERSION = 2
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS record ("
    " id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, used REAL NOT NULL, data BLOB NOT NULL)",
    "CREATE INDEX IF NOT EXISTS record_used ON record (used)",
    "CREATE TABLE IF NOT EXISTS anchor ("
    " key BLOB PRIMARY KEY,"
    " record INTEGER NOT NULL REFERENCES record (id) ON DELETE CASCADE) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS anchor_record ON anchor (record)",
)
_FROM_1 = (
    "ALTER TABLE record RENAME TO record_1",
    "ALTER TABLE anchor RENAME TO anchor_1",
    "DROP INDEX record_used",
    "DROP INDEX anchor_record",
    *_SCHEMA,
    "INSERT OR IGNORE INTO record (digest, used, data)"
    " SELECT record_id(scope, data), used, data FROM anchor_1 JOIN record_1 ON record = id",
    "INSERT INTO anchor (key, record)"
    " SELECT anchor_of(scope, key), record.id FROM anchor_1"
    " JOIN record_1 ON anchor_1.record = record_1.id"
    " JOIN record ON digest = record_id(scope, record_1.data)",
    "DROP TABLE anchor_1",
    "DROP TABLE record_1",
)
"""In version 1, records were identified by number, and keys were stored as text."""
_MOST_VARIABLES = 500
_MOST_REMOVED = 200
_ROOM = 0.9
_CLEAN_EVERY = 300.0
_TOUCH_AFTER = 3600.0
_LAST_PATIENCE = 2.0
_LOCK_PATIENCE = 5.0
_DAY = 86_400.0

_Work: TypeAlias = Callable[[sqlite3.Connection], Any]


class _Job(NamedTuple):
    work: _Work
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class _Worker:
    """A thread with its own connection, and its queue of jobs."""

    def __init__(
        self, name: str, path: Path, do: Callable[[sqlite3.Connection, list[_Job]], None]
    ) -> None:
        self._name, self._path, self._do = name, path, do
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, work: _Work) -> asyncio.Future[Any]:
        """Queue work; return a future for its result."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._jobs.put(_Job(work, loop, future))
        return future

    async def close(self) -> None:
        """Finish the queued jobs and end the thread."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            await asyncio.to_thread(thread.join, _LAST_PATIENCE)

    def _run(self) -> None:
        """Run jobs until the queue is closed; if the file cannot be opened, every job fails."""
        db: Connection | None = None
        while (jobs := self._waiting()) is not None:
            try:
                db = reopened(self._path, set_up, db)
                self._do(db, jobs)
            except Exception as error:
                _settle(jobs, [closed_after(error, self._path, db)] * len(jobs))
                db = None
        if db is not None:
            db.close()

    def _waiting(self) -> list[_Job] | None:
        """All queued jobs, at least one; None once the queue is closed."""
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


class SqliteMemory:
    """Keeps records for `days` since their last use, in a file of at most `megabytes`."""

    def __init__(self, path: Path, *, days: float = 30, megabytes: float = 2_000) -> None:
        self._days = days
        self._most = int(megabytes * 1_000_000)
        self._reader = _Worker("mull-memory-reader", path, _read_all)
        self._writer = _Worker("mull-memory-writer", path, self._write_all)
        self._cleaned = 0.0

    async def find(self, scope: str, keys: Iterable[str]) -> Mapping[str, bytes]:
        """The stored records by key.

        Raises:
            sqlite3.Error: the file cannot be read.
        """
        wanted = {anchor_of(scope, key): key for key in keys}
        now = time.time()
        found, stale = await self._reader.submit(lambda db: _find(db, wanted, now))
        if stale:  # in the background; if it fails, a later read does it
            touched = self._writer.submit(lambda db: _touch(db, stale, now))
            touched.add_done_callback(lambda done: done.cancelled() or done.exception())
        return dict(found)

    async def keep(self, scope: str, keys: Iterable[str], data: bytes) -> Collection[str]:
        """Store a record. Once this returns, other processes can find it. Returns those of its keys
        under which there are several.

        Raises:
            sqlite3.Error: the file cannot be written.
        """
        named, digest = {anchor_of(scope, key): key for key in keys}, record_id(scope, data)
        several = await self._writer.submit(lambda db: _keep(db, list(named), digest, data))
        return [named[anchor] for anchor in several]

    async def forget(self, scope: str, keys: Iterable[str]) -> None:
        """Remove the records that these keys refer to, along with all their other keys.

        Raises:
            sqlite3.Error: the file cannot be written.
        """
        anchors = [(anchor_of(scope, key),) for key in keys]
        await self._writer.submit(lambda db: _forget(db, anchors))

    async def forget_all(self, scope: str) -> Sequence[bytes]:
        """Remove all records of a scope; returns their ids. It reads every record: only their
        hashes say whose they are, and this is done once in the life of a client.

        Raises:
            sqlite3.Error: the file cannot be read or written.
        """
        gone: list[tuple[int, bytes]] = await self._reader.submit(lambda db: _owned(db, scope))
        for start in range(0, len(gone), _MOST_REMOVED):  # others write meanwhile
            some = [(number,) for number, _ in gone[start : start + _MOST_REMOVED]]
            delete = partial(_delete, records=some)
            await self._writer.submit(delete)
        return [digest for _, digest in gone]

    async def agree(self, key: bytes) -> bytes:
        """Return `key`: gateways that share this file also share the key file. This opens the
        database, so that the first request need not wait for it."""
        await self._reader.submit(lambda db: None)
        return key

    def health(self) -> Mapping[str, str]:
        """Always OK: a failing file is noticed when it is used."""
        return {"store": OK}

    async def close(self) -> None:
        """Finish pending writes and close the file."""
        await self._writer.close()
        await self._reader.close()

    def _write_all(self, db: sqlite3.Connection, jobs: list[_Job]) -> None:
        """Run the jobs in one transaction, and set their results once it is committed."""
        with db:
            db.execute("BEGIN IMMEDIATE")
            results = [job.work(db) for job in jobs]
        _settle(jobs, results)
        self._clean(db)

    def _clean(self, db: sqlite3.Connection) -> None:
        """Remove records that are too old or exceed the size limit: a batch now, because other jobs
        are waiting, and the rest after the next write."""
        now, held = time.time(), _held(db, self._most)
        if held <= self._most and now - self._cleaned < _CLEAN_EVERY:
            return
        oldest = now - self._days * _DAY
        surplus = int(held - self._most * _ROOM) if held > self._most else 0
        with suppress(sqlite3.Error), db:  # the jobs are already committed
            db.execute("BEGIN IMMEDIATE")
            gone = _superfluous(db, oldest, surplus)
            _delete(db, gone)
            if len(gone) < _MOST_REMOVED:
                self._cleaned = now


def _held(db: sqlite3.Connection, most: int) -> int:
    """The bytes of the file in use; exact if they may exceed `most`."""
    pages, size = _pragma(db, "page_count"), _pragma(db, "page_size")
    if pages * size <= most:
        return pages * size
    return (pages - _pragma(db, "freelist_count")) * size


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])


def _superfluous(db: sqlite3.Connection, oldest: float, surplus: int) -> list[tuple[int]]:
    """Records to remove: those last used before `oldest`, then further ones until `surplus` bytes
    are freed."""
    gone: list[tuple[int]] = []
    with closing(db.execute("SELECT id, used, length(data) FROM record ORDER BY used")) as rows:
        for number, used, size in rows:
            if len(gone) == _MOST_REMOVED or (used >= oldest and surplus <= 0):
                break
            gone.append((number,))
            surplus -= size
    return gone


_opening = threading.Lock()
_SetUp: TypeAlias = Callable[[sqlite3.Connection], None]


def reopened(path: Path, set_up: _SetUp, db: Connection | None) -> Connection:
    """The connection, if it is to the file that has this name now; otherwise a new one."""
    if db is not None and db.file == file_id(path):
        return db
    if db is not None:
        db.close()
    return open_file(path, set_up)


def closed_after(error: Exception, path: Path, db: Connection | None) -> Exception:
    """Close a connection after an error; returns the error to report. If the file is damaged, it is
    moved aside, unless it holds tokens."""
    if db is not None:
        db.close()
        if is_damage(error):
            try:
                begin_anew(path, error, db.file)
            except (Damaged, OSError) as worse:
                return worse
    return error


def open_file(path: Path, set_up: _SetUp) -> Connection:
    """A connection to the file, which is created and set up if necessary. A damaged one is replaced
    by a new one.

    Raises:
        Damaged: the file is damaged and holds client tokens.
        sqlite3.Error: it cannot be opened.
    """
    until = time.monotonic() + _LOCK_PATIENCE
    while True:
        if not path.exists():
            make_parents(path.parent)
            path.touch(mode=0o600, exist_ok=True)
        file = file_id(path)
        db: Connection | None = None
        try:
            require_file(path)
            db = sqlite3.connect(
                path,
                isolation_level=None,
                timeout=_LOCK_PATIENCE,
                check_same_thread=False,
                factory=Connection,
            )
            db.file = file
            with _opening:
                set_up(db)
        except sqlite3.Error as error:
            if db is not None:
                db.close()
            if is_damage(error):
                begin_anew(path, error, file)
                continue
            # SQLite's own timeout does not apply while another process changes the journal mode
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return db


def set_up(db: sqlite3.Connection) -> None:
    """Create or migrate the tables of the store.

    Raises:
        sqlite3.Error: the file cannot be used.
    """
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA foreign_keys = ON")
    if _pragma(db, "user_version") == _VERSION:
        return
    db.create_function("anchor_of", 2, anchor_of, deterministic=True)
    db.create_function("record_id", 2, record_id, deterministic=True)
    with db:
        db.execute("BEGIN IMMEDIATE")
        version = _pragma(db, "user_version")  # another process may have been first
        if version > _VERSION:
            raise sqlite3.DatabaseError("the file was created by a newer version of mull")
        for statement in _FROM_1 if version == 1 else _SCHEMA:
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {_VERSION}")


def _read_all(db: sqlite3.Connection, jobs: list[_Job]) -> None:
    _settle(jobs, [job.work(db) for job in jobs])


def _find(
    db: sqlite3.Connection, wanted: Mapping[bytes, str], now: float
) -> tuple[dict[str, bytes], set[int]]:
    """The records by key, and the ids of those whose time of last use is due for an update."""
    found: dict[str, bytes] = {}
    stale: set[int] = set()
    for some, marks in _chunks(list(wanted)):
        rows = db.execute(
            "SELECT anchor.key, record.id, record.data, record.used FROM anchor"
            f" JOIN record ON record.id = anchor.record WHERE anchor.key IN ({marks})",
            some,
        )
        for key, number, data, used in rows:
            found[wanted[key]] = data
            if now - used > _TOUCH_AFTER:
                stale.add(number)
    return found, stale


def _touch(db: sqlite3.Connection, records: Iterable[int], now: float) -> None:
    db.executemany("UPDATE record SET used = ? WHERE id = ?", [(now, one) for one in records])


def _keep(db: sqlite3.Connection, anchors: list[bytes], digest: bytes, data: bytes) -> list[bytes]:
    """Store a record; return the anchors under which there are several."""
    number = _record(db, digest, data)
    db.executemany(
        "INSERT INTO anchor (key, record) VALUES (?, ?) ON CONFLICT (key) DO NOTHING",
        [(anchor, number) for anchor in anchors],
    )
    several: list[bytes] = []
    for some, marks in _chunks(anchors):
        found = f"SELECT key FROM anchor WHERE key IN ({marks}) AND record != ?"
        several += [key for (key,) in db.execute(found, (*some, number))]
    if several:
        none = _record(db, b"several %d" % (time.time() // _DAY), SEVERAL)
        db.executemany(
            "UPDATE anchor SET record = ? WHERE key = ?", [(none, key) for key in several]
        )
    return several


def _record(db: sqlite3.Connection, digest: bytes, data: bytes) -> int:
    """The number of the record with this digest, which is stored unless it is there."""
    now = time.time()
    row = db.execute(
        "INSERT INTO record (digest, used, data) VALUES (?, ?, ?)"
        " ON CONFLICT (digest) DO UPDATE SET used = excluded.used RETURNING id",
        (digest, now, data),
    )
    number: int = row.fetchone()[0]
    return number


def _chunks(anchors: list[bytes]) -> Iterator[tuple[list[bytes], str]]:
    """The anchors, as many at a time as one statement takes, with a mark for each."""
    for start in range(0, len(anchors), _MOST_VARIABLES):
        some = anchors[start : start + _MOST_VARIABLES]
        yield some, ",".join("?" * len(some))


def _forget(db: sqlite3.Connection, anchors: list[tuple[bytes]]) -> None:
    db.executemany(
        "DELETE FROM record WHERE length(data) > 0"
        " AND id IN (SELECT record FROM anchor WHERE key = ?)",
        anchors,
    )


def _owned(db: sqlite3.Connection, scope: str) -> list[tuple[int, bytes]]:
    """The number and the digest of each record of a scope."""
    rows = db.execute("SELECT id, digest, data FROM record")
    return [(number, digest) for number, digest, data in rows if record_id(scope, data) == digest]


def _delete(db: sqlite3.Connection, records: Iterable[tuple[int]]) -> None:
    db.executemany("DELETE FROM record WHERE id = ?", records)


def _settle(jobs: list[_Job], results: Iterable[Any]) -> None:
    """Set the results of jobs, with one call for each event loop. A result that is an exception is
    raised in the caller."""
    waiting: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
    for job, result in zip(jobs, results, strict=True):
        waiting.setdefault(job.loop, []).append((job.future, result))
    for loop, pairs in waiting.items():
        with suppress(RuntimeError):  # the loop is closed, and nobody waits
            loop.call_soon_threadsafe(_set_results, pairs)


def _set_results(pairs: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, result in pairs:
        if future.done():
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
