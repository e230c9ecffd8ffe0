"""A ledger in the gateway's SQLite file, which all gateways and commands on this machine share.

A thread of its own does the work, so that the disk never blocks the event loop.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import astuple

from mull.gateway.damage import OPENED, Connection, Damaged, mark_of
from mull.gateway.ledger import (
    KEEP_SECONDS,
    WINDOW,
    Entry,
    Second,
    Spent,
    Tally,
    UsageRow,
    day_of,
    earliest_day,
)
from mull.gateway.sqlite import closed_after, reopened
from mull.gateway.tokens import ClientToken

__all__ = ["SqliteLedger", "set_up"]

_T = TypeVar("_T")

_COUNTS = Tally.__struct_fields__
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS token (name TEXT PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS usage (day TEXT NOT NULL, client TEXT NOT NULL, model TEXT NOT NULL"
    + "".join(f", {name} INTEGER NOT NULL" for name in _COUNTS)
    + ", PRIMARY KEY (client, day, model)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS second (client TEXT NOT NULL, at INTEGER NOT NULL,"
    " requests INTEGER NOT NULL, tokens INTEGER NOT NULL,"
    " PRIMARY KEY (client, at)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS batch (id TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS ledger (one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL)",
)
_NEW_ID = "lower(hex(randomblob(16)))"
_ADD_USAGE = (
    f"INSERT INTO usage (day, client, model, {', '.join(_COUNTS)})"
    f" VALUES (?, ?, ?{', ?' * len(_COUNTS)}) ON CONFLICT DO UPDATE SET "
    + ", ".join(f"{name} = {name} + excluded.{name}" for name in _COUNTS)
)
_ADD_SECOND = (
    "INSERT INTO second (client, at, requests, tokens) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE"
    " SET requests = requests + excluded.requests, tokens = tokens + excluded.tokens"
)
_SPENT = (
    f"SELECT day = ? AS today, {', '.join(f'sum({name})' for name in _COUNTS)} FROM usage"
    " WHERE client = ? AND day BETWEEN ? AND ? GROUP BY today"
)
_CLEAN_EVERY = 60.0
_KEEP_BATCHES = 86_400
_encode = msgspec.json.Encoder().encode
_token = msgspec.json.Decoder(ClientToken).decode


class SqliteLedger:
    """A ledger in this file. The file is created when it is first needed."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._cleaned = 0.0
        self._db: Connection | None = None
        self._mark = mark_of(path)
        self._thread = ThreadPoolExecutor(1, "mull-ledger")

    async def tokens(self) -> Sequence[ClientToken]:
        """All tokens, sorted by name.

        Raises:
            ConfigError: there were tokens, and they are lost.
            Damaged: they cannot be read.
        """
        return await self._read(self._tokens)

    async def put_token(self, token: ClientToken, *, new: bool) -> bool:
        """Store a token; False if a new token's name is taken, or another's does not exist."""
        is_put = await self._write(lambda db: _put_token(db, token, new))
        if is_put:
            await self.tokens()  # notes that there are some
        return is_put

    async def remove_token(self, name: str) -> bool:
        """Delete a token. Returns whether it existed."""
        is_gone = await self._write(lambda db: _remove_token(db, name))
        if is_gone:
            await self.tokens()  # notes whether there are others
        return is_gone

    async def add(self, batch: str, entries: Sequence[Entry]) -> None:
        """Add usage, once for each batch id."""
        await self._write(lambda db: self._add(db, batch, entries))

    async def spent(self, client: str, now: float) -> Spent:
        """The usage that counts against a client's limits."""
        return await self._read(lambda db: _spent(db, client, now))

    async def usage(self, since: str, until: str) -> Sequence[UsageRow]:
        """All rows from the first to the last of these days."""
        return await self._read(lambda db: _usage(db, since, until))

    async def close(self) -> None:
        """Close the file. Later use of the ledger opens it again."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)

    async def _read(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        return await self._do("BEGIN", work)

    async def _write(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        return await self._do("BEGIN IMMEDIATE", work)

    async def _do(self, begin: str, work: Callable[[sqlite3.Connection], _T]) -> _T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._transact, begin, work)

    def _transact(self, begin: str, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Do the work in one transaction. After an error the file is opened again for the next."""
        try:
            self._db = reopened(self._path, set_up, self._db)
            with self._db:
                self._db.execute(begin)
                return work(self._db)
        except sqlite3.Error as error:
            db, self._db = self._db, None
            raise closed_after(error, self._path, db) from None

    def _close(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            db.close()

    def _tokens(self, db: sqlite3.Connection) -> list[ClientToken]:
        rows = db.execute("SELECT name, data FROM token ORDER BY name").fetchall()
        (ledger,) = db.execute("SELECT id FROM ledger").fetchone()
        self._mark.check(ledger, has_tokens=bool(rows))
        return [_read_token(self._path, name, data) for name, data in rows]

    def _add(self, db: sqlite3.Connection, batch: str, entries: Sequence[Entry]) -> None:
        now = self._clock()
        made = db.execute("INSERT OR IGNORE INTO batch VALUES (?, ?)", (batch, int(now)))
        if not made.rowcount:
            return
        db.executemany(
            _ADD_USAGE, [(day_of(e.at), e.client, e.model, *astuple(e.tally)) for e in entries]
        )
        db.executemany(
            _ADD_SECOND,
            [(e.client, int(e.at), e.tally.requests, e.tally.tokens) for e in entries],
        )
        if now - self._cleaned >= _CLEAN_EVERY:
            self._cleaned = now
            db.execute("DELETE FROM second WHERE at < ?", (int(now) - KEEP_SECONDS,))
            db.execute("DELETE FROM batch WHERE at < ?", (int(now) - _KEEP_BATCHES,))
            db.execute("DELETE FROM usage WHERE day < ?", (earliest_day(now),))


def set_up(db: sqlite3.Connection) -> None:
    """Create the tables of the ledger.

    Raises:
        sqlite3.Error: the file cannot be used.
    """
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    for statement in _SCHEMA:
        db.execute(statement)
    if db.execute("SELECT id FROM ledger").fetchone() is None:
        db.execute(f"INSERT OR IGNORE INTO ledger VALUES (1, {_NEW_ID})")


def _read_token(path: Path, name: str, data: bytes) -> ClientToken:
    try:
        return _token(data)
    except msgspec.DecodeError:
        raise Damaged(
            f"the token of {name} in {path} cannot be read: `mull serve repair` removes what is"
            " damaged"
        ) from None


def _put_token(db: sqlite3.Connection, token: ClientToken, new: bool) -> bool:
    statement = (
        "INSERT OR IGNORE INTO token (data, name) VALUES (?, ?)"
        if new
        else "UPDATE token SET data = ? WHERE name = ?"
    )
    is_put = db.execute(statement, (_encode(token), token.name)).rowcount > 0
    if is_put:
        db.execute(f"UPDATE ledger SET id = {_NEW_ID} WHERE id LIKE '{OPENED}%'")
    return is_put


def _remove_token(db: sqlite3.Connection, name: str) -> bool:
    is_gone = db.execute("DELETE FROM token WHERE name = ?", (name,)).rowcount > 0
    if is_gone and db.execute("SELECT 1 FROM token").fetchone() is None:
        db.execute("UPDATE ledger SET id = ? || id", (OPENED,))
    return is_gone


def _spent(db: sqlite3.Connection, client: str, now: float) -> Spent:
    recent = db.execute(
        "SELECT at, requests, tokens FROM second WHERE client = ? AND at > ? ORDER BY at",
        (client, int(now) - WINDOW),
    )
    seconds = tuple(Second(*row) for row in recent)
    today, day, before = day_of(now), Tally(), Tally()
    for is_today, *counts in db.execute(_SPENT, (today, client, today[:8] + "01", today)):
        day, before = (Tally(*counts), before) if is_today else (day, Tally(*counts))
    return Spent(seconds, day, day + before)


def _usage(db: sqlite3.Connection, since: str, until: str) -> list[UsageRow]:
    rows = db.execute(
        f"SELECT day, client, model, {', '.join(_COUNTS)} FROM usage"
        " WHERE day BETWEEN ? AND ? ORDER BY day, client, model",
        (since, until),
    )
    return [UsageRow(day, client, model, Tally(*counts)) for day, client, model, *counts in rows]
