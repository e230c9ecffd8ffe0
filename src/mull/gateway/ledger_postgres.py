"""A ledger in PostgreSQL, so that all gateways of a team share tokens, limits and budgets."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec.structs import astuple

from mull.gateway.damage import OPENED, TokenMark
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
from mull.gateway.postgres import Connection, Database, Schema
from mull.gateway.tokens import ClientToken

__all__ = ["PostgresLedger"]

_COUNTS = Tally.__struct_fields__
_SUMS = ", ".join(f"coalesce(sum({name}), 0)::bigint" for name in _COUNTS)
_COLUMNS = ", ".join(_COUNTS)
_NEW_ID = "md5(random()::text || clock_timestamp()::text)"
_SCHEMA = Schema(
    "ledger",
    (
        (
            "CREATE TABLE mull_token (name text PRIMARY KEY, data bytea NOT NULL)",
            'CREATE TABLE mull_usage (day text COLLATE "C" NOT NULL,'
            ' client text COLLATE "C" NOT NULL, model text COLLATE "C" NOT NULL, '
            + "".join(f"{name} bigint NOT NULL, " for name in _COUNTS)
            + "PRIMARY KEY (client, day, model))",
            "CREATE INDEX mull_usage_day ON mull_usage (day)",
            "CREATE TABLE mull_second (client text NOT NULL, at bigint NOT NULL,"
            " requests bigint NOT NULL, tokens bigint NOT NULL, PRIMARY KEY (client, at))",
            "CREATE TABLE mull_batch (id text PRIMARY KEY, at bigint NOT NULL)",
        ),
        (
            "CREATE TABLE mull_ledger"
            " (one integer PRIMARY KEY DEFAULT 1 CHECK (one = 1), id text NOT NULL)",
            f"INSERT INTO mull_ledger (id) VALUES ({_NEW_ID})",
        ),
    ),
)
_ADD_BATCH = "INSERT INTO mull_batch (id, at) VALUES ($1, $2) ON CONFLICT DO NOTHING"
_ADD_USAGE = (
    f"INSERT INTO mull_usage AS held (day, client, model, {_COLUMNS})"
    f" VALUES ({', '.join(f'${n}' for n in range(1, len(_COUNTS) + 4))})"
    " ON CONFLICT (client, day, model) DO UPDATE SET "
    + ", ".join(f"{name} = held.{name} + excluded.{name}" for name in _COUNTS)
)
_ADD_SECOND = (
    "INSERT INTO mull_second AS held (client, at, requests, tokens) VALUES ($1, $2, $3, $4)"
    " ON CONFLICT (client, at) DO UPDATE SET requests = held.requests + excluded.requests,"
    " tokens = held.tokens + excluded.tokens"
)
_TOKENS = "SELECT ledger.id, token.data FROM mull_ledger ledger LEFT JOIN mull_token token ON true"
_PUT_NEW = "INSERT INTO mull_token (name, data) VALUES ($1, $2) ON CONFLICT DO NOTHING"
_PUT = "UPDATE mull_token SET data = $2 WHERE name = $1"
_REMOVE = "DELETE FROM mull_token WHERE name = $1"
_CLOSE = f"UPDATE mull_ledger SET id = {_NEW_ID} WHERE id LIKE '{OPENED}%'"
_OPEN = f"UPDATE mull_ledger SET id = '{OPENED}' || id WHERE NOT EXISTS (SELECT FROM mull_token)"
_RECENT = "SELECT at, requests, tokens FROM mull_second WHERE client = $1 AND at > $2 ORDER BY at"
_SUM = f"SELECT {_SUMS} FROM mull_usage WHERE client = $1 AND day BETWEEN $2 AND $3"
_USAGE = (
    f"SELECT day, client, model, {_COLUMNS} FROM mull_usage"
    " WHERE day BETWEEN $1 AND $2 ORDER BY day, client, model"
)
_CLEAN_EVERY = 60.0
_KEEP_BATCHES = 86_400
_MOST_CONNECTIONS = 4
_NOTHING = ("INSERT 0 0", "UPDATE 0", "DELETE 0")
_encode = msgspec.json.Encoder().encode
_token = msgspec.json.Decoder(ClientToken).decode


class PostgresLedger:
    """A ledger in this database. Its tables are created when they are first needed."""

    def __init__(
        self, url: str, clock: Callable[[], float] = time.time, mark: TokenMark | None = None
    ) -> None:
        self._database = Database(url, _SCHEMA, connections=_MOST_CONNECTIONS)
        self._clock = clock
        self._cleaned = 0.0
        self._mark = mark

    async def tokens(self) -> Sequence[ClientToken]:
        """All tokens, sorted by name.

        Raises:
            ConfigError: there were tokens, and this is not the database that had them.
        """
        rows = await self._database.run(lambda one: one.fetch(_TOKENS))
        found = [row["data"] for row in rows if row["data"] is not None]
        if self._mark is not None:
            self._mark.check(rows[0]["id"], has_tokens=bool(found))
        return sorted(map(_token, found), key=lambda token: token.name)

    async def put_token(self, token: ClientToken, *, new: bool) -> bool:
        """Store a token; False if a new token's name is taken, or another's does not exist."""
        statement = _PUT_NEW if new else _PUT
        is_put = await self._changed(_CLOSE, statement, token.name, _encode(token))
        if is_put:
            await self.tokens()  # notes that there are some
        return is_put

    async def remove_token(self, name: str) -> bool:
        """Delete a token. Returns whether it existed."""
        is_gone = await self._changed(_OPEN, _REMOVE, name)
        if is_gone:
            await self.tokens()  # notes whether there are others
        return is_gone

    async def _changed(self, then: str, statement: str, *values: object) -> bool:
        """Execute a statement, and another one if the first changed anything; returns whether."""
        return await self._database.run(lambda one: _change(one, then, statement, *values))

    async def add(self, batch: str, entries: Sequence[Entry]) -> None:
        """Add usage, once for each batch id."""
        await self._database.run(lambda one: self._add(one, batch, entries))

    async def spent(self, client: str, now: float) -> Spent:
        """The usage that counts against a client's limits."""
        return await self._database.run(lambda one: _spent(one, _plain(client), now))

    async def usage(self, since: str, until: str) -> Sequence[UsageRow]:
        """All rows from the first to the last of these days."""
        rows = await self._database.run(lambda one: one.fetch(_USAGE, since, until))
        return [
            UsageRow(day, client, model, Tally(*counts)) for day, client, model, *counts in rows
        ]

    async def close(self) -> None:
        """Close the connections. Later use of the ledger opens new ones."""
        await self._database.close()

    async def _add(self, connection: Connection, batch: str, entries: Sequence[Entry]) -> None:
        now = self._clock()
        async with connection.transaction():
            if await connection.execute(_ADD_BATCH, batch, int(now)) in _NOTHING:
                return
            await connection.executemany(_ADD_USAGE, _usage_of(entries))
            await connection.executemany(_ADD_SECOND, _seconds_of(entries))
        if now - self._cleaned >= _CLEAN_EVERY:
            self._cleaned = now
            before = int(now) - KEEP_SECONDS
            await connection.execute("DELETE FROM mull_second WHERE at < $1", before)
            before = int(now) - _KEEP_BATCHES
            await connection.execute("DELETE FROM mull_batch WHERE at < $1", before)
            await connection.execute("DELETE FROM mull_usage WHERE day < $1", earliest_day(now))


def _usage_of(entries: Iterable[Entry]) -> list[tuple[str | int, ...]]:
    """The rows to add, without duplicates and sorted: transactions that update rows in the same
    order cannot deadlock."""
    rows: dict[tuple[str, str, str], Tally] = {}
    for entry in entries:
        key = (day_of(entry.at), _plain(entry.client), _plain(entry.model))
        rows[key] = rows.get(key, Tally()) + entry.tally
    return [(*key, *astuple(tally)) for key, tally in sorted(rows.items(), key=lambda row: row[0])]


def _seconds_of(entries: Iterable[Entry]) -> list[tuple[str, int, int, int]]:
    rows: dict[tuple[str, int], Tally] = {}
    for entry in entries:
        key = (_plain(entry.client), int(entry.at))
        rows[key] = rows.get(key, Tally()) + entry.tally
    return [
        (*key, tally.requests, tally.tokens)
        for key, tally in sorted(rows.items(), key=lambda row: row[0])
    ]


async def _change(connection: Connection, then: str, statement: str, *values: object) -> bool:
    async with connection.transaction():
        await connection.execute("LOCK TABLE mull_token IN SHARE ROW EXCLUSIVE MODE")
        is_changed = await connection.execute(statement, *values) not in _NOTHING
        if is_changed:
            await connection.execute(then)
    return is_changed


def _plain(text: str) -> str:
    """The text without characters that PostgreSQL rejects."""
    return text.encode("utf-8", "replace").decode().replace("\0", "?")


async def _spent(connection: Connection, client: str, now: float) -> Spent:
    day = day_of(now)
    rows = await connection.fetch(_RECENT, client, int(now) - WINDOW)
    today = await connection.fetchrow(_SUM, client, day, day)
    month = await connection.fetchrow(_SUM, client, day[:8] + "01", day)
    return Spent(tuple(Second(*row) for row in rows), Tally(*today), Tally(*month))
