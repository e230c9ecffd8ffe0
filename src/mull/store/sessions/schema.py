"""The tables of the session store, version by version.

A store of an older version is brought up to date when it is opened; the records themselves are
never rewritten. A change to the JSON of a record needs a new version here, because an older mull
must not take such a record for damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mull.store.sessions.records import account_all
from mull.store.sessions.search import LIST_NOT_ASCII, TEXTS

if TYPE_CHECKING:
    from sqlite3 import Connection

__all__ = ["VERSION", "migrate", "readable", "version_of"]

_FIRST = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    name TEXT COLLATE NOCASE,
    title TEXT NOT NULL DEFAULT '',
    folder TEXT NOT NULL,
    created REAL NOT NULL,
    updated REAL NOT NULL,
    model TEXT,
    base_url TEXT,
    system TEXT NOT NULL DEFAULT '',
    settings TEXT NOT NULL DEFAULT '{}',
    parent TEXT,
    parent_at INTEGER
);
CREATE UNIQUE INDEX session_names ON sessions (folder, name) WHERE name IS NOT NULL;
CREATE INDEX session_times ON sessions (folder, updated);
CREATE TABLE records (
    id INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    position INTEGER NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (session, position)
);
CREATE TABLE journal (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL,
    at REAL NOT NULL,
    origin BLOB,
    events BLOB NOT NULL
);
CREATE INDEX journal_sessions ON journal (session, number);
"""


def _first(connection: Connection) -> None:
    _run(connection, _FIRST)


def _searchable(connection: Connection) -> None:
    """Version 2 counts turns and keeps the texts of records for searching."""
    _run(connection, "ALTER TABLE sessions ADD COLUMN turns INTEGER NOT NULL DEFAULT 0;" + TEXTS)
    for (session,) in connection.execute("SELECT id FROM sessions").fetchall():
        account_all(connection, session)


def _kinds(connection: Connection) -> None:
    """Version 3 tells single questions from conversations; what was there before is the latter."""
    kind = "kind TEXT NOT NULL DEFAULT 'conversation'"
    connection.execute(f"ALTER TABLE sessions ADD COLUMN {kind}")


def _listed(connection: Connection) -> None:
    """Version 4 lists the texts that are not ASCII."""
    connection.execute(LIST_NOT_ASCII)


_MIGRATIONS: Sequence[Callable[[Connection], None]] = (_first, _searchable, _kinds, _listed)
"""What makes version 1 from nothing, version 2 from version 1, and so on."""

VERSION = len(_MIGRATIONS)


def readable(data: bytes) -> str:
    """A text of the store; where bits have rotted, the rest of it is still read."""
    return data.decode("utf-8", "replace")


def version_of(connection: Connection) -> int:
    """The version of the store; 0 for a file that is new."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def migrate(connection: Connection) -> None:
    """Bring the store up to this version, inside the caller's transaction."""
    for step in _MIGRATIONS[version_of(connection) :]:
        step(connection)
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _run(connection: Connection, script: str) -> None:
    """Each statement of a script; `executescript` would end the transaction."""
    for statement in script.split(";"):
        if statement.strip():
            connection.execute(statement)
