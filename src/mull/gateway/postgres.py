"""A store in PostgreSQL, which any number of gateways on any number of machines can share.

The first gateway to connect creates the tables or migrates them to the current version. One gateway
at a time removes records that are too old or exceed the size limit. A lost connection is reopened
when it is next needed. The driver is asyncpg, which only this module imports.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

from mull.gateway.memory import OK, OVERHEAD, anchor_of, record_id
from mull.neutral.errors import ConfigError
from mull.neutral.extras import missing

__all__ = ["Connection", "Database", "PostgresMemory", "Schema"]

Connection: TypeAlias = Any
"""An asyncpg connection; asyncpg has no type hints."""
_T = TypeVar("_T")
_PATIENCE = 5.0
_LAST_PATIENCE = 1.0
_MOST_CONNECTIONS = 10
_SCHEMA_LOCK, _CLEAN_LOCK = 0x6D756C6C_00000001, 0x6D756C6C_00000002


class Schema(NamedTuple):
    """The tables of one part of the gateway: for each version, the statements that migrate to it
    from the version before."""

    part: str
    versions: tuple[tuple[str, ...], ...]


class Database:
    """A pool of connections to one database, which has the tables of one schema."""

    def __init__(self, url: str, schema: Schema, *, connections: int = _MOST_CONNECTIONS) -> None:
        try:
            import asyncpg
        except ImportError as error:
            raise ConfigError(missing("postgres", error)) from None
        self._driver: Any = asyncpg
        self._url, self._schema, self._connections = url, schema, connections
        self._pool: Any = None
        self._opening = asyncio.Lock()
        self._is_ready = False
        self._running: set[asyncio.Task[Any]] = set()

    async def run(self, work: Callable[[Connection], Awaitable[_T]]) -> _T:
        """Run `work` with a connection and return its result. Cancelling the caller does not cancel
        the work.

        Raises:
            OSError: the database cannot be reached or does not respond.
            asyncpg.PostgresError: the database rejects a statement.
        """
        return await asyncio.shield(self.start(self._run(work)))

    def start(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """Run a coroutine in the background; `close` waits for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved in case nobody awaits the task any more

    async def _run(self, work: Callable[[Connection], Awaitable[_T]]) -> _T:
        if not self._is_ready:
            await self._make_ready()
        connection = await self._pool.acquire(timeout=_PATIENCE)
        try:
            async with asyncio.timeout(_PATIENCE):
                return await work(connection)
        except self._driver.UndefinedTableError:
            self._is_ready = False  # the tables were dropped
            raise
        except TimeoutError:
            connection.terminate()  # an unresponsive server would ignore a cancellation too
            raise
        finally:
            await self._pool.release(connection, timeout=_PATIENCE)

    async def _make_ready(self) -> None:
        async with self._opening:
            if self._is_ready:
                return
            if self._pool is None:
                self._pool = await self._driver.create_pool(
                    self._url,
                    min_size=0,
                    max_size=self._connections,
                    timeout=_PATIENCE,
                    reset=_reset,
                )
            async with self._pool.acquire(timeout=_PATIENCE) as connection:
                await self._migrate(connection)
            self._is_ready = True

    async def _migrate(self, connection: Connection) -> None:
        part, versions = self._schema
        with suppress(self._driver.UndefinedTableError):
            if await connection.fetchval(_READ_VERSION, part) == len(versions):
                return
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock($1)", _SCHEMA_LOCK)
            await connection.execute(
                "CREATE TABLE IF NOT EXISTS mull_schema"
                " (part text PRIMARY KEY, version integer NOT NULL)"
            )
            done = await connection.fetchval(_READ_VERSION, part) or 0
            if done > len(versions):
                raise ConfigError(
                    f"the tables of {part} were created by a newer version of mull: update this one"
                )
            for statements in versions[done:]:
                for statement in statements:
                    await connection.execute(statement)
            await connection.execute(
                "INSERT INTO mull_schema (part, version) VALUES ($1, $2)"
                " ON CONFLICT (part) DO UPDATE SET version = excluded.version",
                part,
                len(versions),
            )

    async def close(self) -> None:
        """Wait for running work, then close all connections."""
        if self._running:
            await asyncio.wait(self._running, timeout=_LAST_PATIENCE)
        for task in self._running:
            task.cancel()
        if self._pool is not None:
            pool, self._pool, self._is_ready = self._pool, None, False
            try:
                async with asyncio.timeout(_LAST_PATIENCE):
                    await pool.close()
            except (OSError, self._driver.PostgresError):
                pool.terminate()


async def _reset(connection: Connection) -> None:
    """Do nothing: no state here outlives a transaction, and skipping asyncpg's reset saves a round
    trip."""


_READ_VERSION = "SELECT version FROM mull_schema WHERE part = $1"
_SCHEMA = Schema(
    "memory",
    (
        (
            "CREATE TABLE IF NOT EXISTS mull_record"
            " (id bytea PRIMARY KEY, used timestamptz NOT NULL, data bytea NOT NULL)",
            "CREATE INDEX IF NOT EXISTS mull_record_used ON mull_record (used)",
            "CREATE TABLE IF NOT EXISTS mull_anchor"
            " (key bytea PRIMARY KEY,"
            " record bytea NOT NULL REFERENCES mull_record ON DELETE CASCADE)",
            "CREATE INDEX IF NOT EXISTS mull_anchor_record ON mull_anchor (record)",
            "CREATE TABLE IF NOT EXISTS mull_key"
            " (id integer PRIMARY KEY DEFAULT 1 CHECK (id = 1), key bytea NOT NULL)",
        ),
    ),
)
_FIND = """
SELECT array_agg(anchor.key) AS keys, record.id, record.data,
       record.used < now() - interval '1 hour' AS stale
FROM mull_anchor anchor JOIN mull_record record ON record.id = anchor.record
WHERE anchor.key = ANY($1::bytea[]) GROUP BY record.id
"""
_KEEP = """
WITH several AS (
  INSERT INTO mull_record (id, used, data) VALUES ($4, now(), '') ON CONFLICT (id) DO NOTHING),
kept AS (
  INSERT INTO mull_record (id, used, data) VALUES ($1, now(), $2)
  ON CONFLICT (id) DO UPDATE SET used = excluded.used RETURNING id)
INSERT INTO mull_anchor (key, record) SELECT key, kept.id FROM unnest($3::bytea[]) key, kept
ON CONFLICT (key) DO UPDATE SET record =
  CASE WHEN mull_anchor.record = excluded.record THEN excluded.record ELSE $4 END
RETURNING key, record = $4 AS several
"""
_FORGET = """
DELETE FROM mull_record
WHERE length(data) > 0 AND id IN (SELECT record FROM mull_anchor WHERE key = ANY($1::bytea[]))
"""
_TOUCH = "UPDATE mull_record SET used = now() WHERE id = ANY($1::bytea[])"
_SIZES = "SELECT id, octet_length(data) FROM mull_record"
_READ_SOME = "SELECT id, data FROM mull_record WHERE id = ANY($1::bytea[])"
_MOST_READ = 8_000_000
_REMOVE_OLD = """
DELETE FROM mull_record WHERE id IN (
  SELECT id FROM mull_record WHERE used < now() - $1::interval ORDER BY used LIMIT $2)
"""
_REMOVE_SURPLUS = """
DELETE FROM mull_record WHERE id IN (
  SELECT id FROM (
    SELECT id, sum(size) OVER (ORDER BY used, id) - size AS before FROM (
      SELECT id, used, octet_length(data) AS size FROM mull_record ORDER BY used LIMIT $2
    ) AS oldest
  ) AS summed WHERE before < $1)
"""
_MOST_REMOVED = 2_000
_ROOM = 0.9
_CLEAN_EVERY = 300.0
_DAY = 86_400.0


class PostgresMemory:
    """Keeps records for `days` since their last use, and at most `megabytes` of them."""

    def __init__(self, url: str, *, days: float = 30, megabytes: float = 2_000) -> None:
        self._database = Database(url, _SCHEMA)
        self._days = timedelta(days=days)
        self._most = int(megabytes * 1_000_000)
        self._cleaning: asyncio.Task[None] | None = None

    async def find(self, scope: str, keys: Iterable[str]) -> Mapping[str, bytes]:
        """The stored records by key, in one round trip.

        Raises:
            OSError: the database cannot be reached or does not respond.
            asyncpg.PostgresError: the database rejects a statement.
        """
        wanted = {anchor_of(scope, key): key for key in keys}
        rows = await self._database.run(lambda one: one.fetch(_FIND, list(wanted)))
        if stale := [row["id"] for row in rows if row["stale"]]:  # in the background
            self._database.start(self._execute(_TOUCH, stale))
        return {wanted[key]: row["data"] for row in rows for key in row["keys"]}

    async def keep(self, scope: str, keys: Iterable[str], data: bytes) -> Collection[str]:
        """Store a record. Once this returns, other processes can find it. Returns those of its keys
        under which there are several.

        Raises:
            OSError: the database cannot be reached or does not respond.
            asyncpg.PostgresError: the database rejects a statement.
        """
        named = {anchor_of(scope, key): key for key in keys}
        several = b"several %d" % (time.time() // _DAY)
        values = record_id(scope, data), data, sorted(named), several  # sorted: no deadlocks
        rows = await self._database.run(lambda one: one.fetch(_KEEP, *values))
        self._begin_cleaning()
        return [named[row["key"]] for row in rows if row["several"]]

    async def forget(self, scope: str, keys: Iterable[str]) -> None:
        """Remove the records that these keys refer to, along with all their other keys.

        Raises:
            OSError: the database cannot be reached or does not respond.
            asyncpg.PostgresError: the database rejects a statement.
        """
        await self._execute(_FORGET, [anchor_of(scope, key) for key in keys])

    async def forget_all(self, scope: str) -> Sequence[bytes]:
        """Remove all records of a scope; returns their ids. It reads every record: only their
        hashes say whose they are, and this is done once in the life of a client.

        Raises:
            OSError: the database cannot be reached or does not respond.
            asyncpg.PostgresError: the database rejects a statement.
        """
        sizes = await self._database.run(lambda one: one.fetch(_SIZES))
        gone: list[bytes] = []
        some: list[bytes] = []
        size = 0
        for number, (record, length) in enumerate(sizes, 1):
            some.append(record)
            size += length + OVERHEAD
            if size > _MOST_READ or number == len(sizes):
                gone += await self._database.run(partial(_remove_owned, scope=scope, records=some))
                some, size = [], 0
        return gone

    async def _execute(self, statement: str, *values: object) -> None:
        await self._database.run(lambda one: one.execute(statement, *values))
        self._begin_cleaning()

    def _begin_cleaning(self) -> None:
        if self._cleaning is None:
            self._cleaning = asyncio.get_running_loop().create_task(self._clean_regularly())

    async def agree(self, key: bytes) -> bytes:
        """The key with which all gateways of this store encrypt envelopes: `key`, unless another
        gateway has already stored its own.

        Raises:
            OSError: the database cannot be reached or does not respond.
            asyncpg.PostgresError: the database rejects a statement.
        """
        await self._execute("INSERT INTO mull_key (key) VALUES ($1) ON CONFLICT DO NOTHING", key)
        agreed = await self._database.run(lambda one: one.fetchval("SELECT key FROM mull_key"))
        return bytes(agreed)

    def health(self) -> Mapping[str, str]:
        """Always OK: a failing database is noticed when it is used."""
        return {"store": OK}

    async def close(self) -> None:
        """Finish pending writes, then close all connections."""
        if self._cleaning is not None:
            self._cleaning.cancel()
        await self._database.close()

    async def _clean_regularly(self) -> None:
        while True:  # at random intervals, so that gateways do not all clean at once
            await asyncio.sleep(_CLEAN_EVERY * random.uniform(0.5, 1.5))
            with suppress(Exception):  # requests that use the store report its failures
                await self.clean()

    async def clean(self) -> None:
        """Remove records that are too old or exceed the size limit, unless another gateway is
        already doing so.

        Raises:
            OSError: the database cannot be reached or does not respond.
            asyncpg.PostgresError: the database rejects a statement.
        """
        while await self._database.run(self._clean_some):
            pass

    async def _clean_some(self, connection: Connection) -> bool:
        """Remove a batch, small because other gateways are waiting; return whether more remain."""
        async with connection.transaction():
            if not await connection.fetchval("SELECT pg_try_advisory_xact_lock($1)", _CLEAN_LOCK):
                return False
            done = await connection.execute(_REMOVE_OLD, self._days, _MOST_REMOVED)
            if _count(done) == _MOST_REMOVED:
                return True
            held = await connection.fetchval("SELECT sum(octet_length(data)) FROM mull_record")
            if (held or 0) <= self._most:
                return False
            surplus = int(held - self._most * _ROOM)
            done = await connection.execute(_REMOVE_SURPLUS, surplus, _MOST_REMOVED)
            return _count(done) == _MOST_REMOVED


async def _remove_owned(
    connection: Connection, *, scope: str, records: Sequence[bytes]
) -> list[bytes]:
    """Remove those of the records that belong to the scope; returns their ids."""
    rows = await connection.fetch(_READ_SOME, records)
    gone = [row["id"] for row in rows if record_id(scope, row["data"]) == row["id"]]
    await connection.execute("DELETE FROM mull_record WHERE id = ANY($1::bytea[])", gone)
    return gone


def _count(done: str) -> int:
    """The number of rows in a command tag such as `DELETE 12`."""
    return int(done.rpartition(" ")[2])
