"""The database file: opened, brought up to date, and spoken of when it fails.

Everything is done in a transaction of its own. A commit returns when the disk has it. What SQLite
refuses becomes a ConfigError, and then nothing was changed.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING
from weakref import WeakSet

from mull.neutral.errors import ConfigError, SessionError
from mull.store.files import make_parents
from mull.store.locks import FileLock
from mull.store.sessions.schema import VERSION, migrate, version_of

if TYPE_CHECKING:
    from sqlite3 import Connection, Error

__all__ = ["Database", "bring_up_to_date"]

_BUSY_SECONDS = 20
"""How long to wait for other processes that write; each of them takes milliseconds."""

_LOG_BYTES = 16 << 20
"""What SQLite's own log may keep of the disk after something big was written."""

_REASONS = {  # by SQLite's primary result codes
    3: "mull may not open it",
    5: "another process keeps it busy; try again",
    6: "another process keeps it busy; try again",
    8: "it, or the directory it is in, is read-only",
    10: "the disk cannot be read or written, or is full",
    13: "the disk is full",
    14: "it cannot be opened; check that its directory exists and that you may write there",
    23: "mull may not open it",
}


class _Unwritable(ConfigError):
    """The file cannot be made, or opened for writing."""


_used: WeakSet[Database] = WeakSet()


class Database:
    """One open file of sessions, for all threads of this process."""

    def __init__(self, path: Path, tell: Callable[[str], None]) -> None:
        self._path = path
        self._tell = tell
        self._turns = RLock()
        self._connection: Connection | None = None
        self._unwritable: ConfigError | None = None
        self._opener = 0

    def __del__(self) -> None:
        self._leave()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state of the store from beginning to end."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that changes all or nothing, and is on disk when it ends.

        Raises:
            ConfigError: it could not be written; nothing was changed.
        """
        if self._unwritable is not None:
            self.close()  # it may be writable by now
        with self._transaction("BEGIN IMMEDIATE") as connection:
            if version_of(connection) != VERSION:
                raise _newer(self._path)
            yield connection

    @contextmanager
    def erasing(self) -> Iterator[Connection]:
        """`writing`, and what is deleted leaves no bytes behind, and the file gets smaller."""
        from sqlite3 import Error

        with self._turns:
            with self.writing() as connection:
                connection.execute("PRAGMA secure_delete = ON")
                try:
                    yield connection
                finally:
                    connection.execute("PRAGMA secure_delete = OFF")
            with suppress(Error):  # it is deleted; the rest can wait for another time
                # as a script: `execute` would take one step of many and stop
                connection.executescript(
                    "PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)"
                )

    def close(self) -> None:
        """Close the file; it is opened again when needed."""
        with self._turns:
            connection, self._connection = self._connection, None
            self._unwritable = None
            if connection is not None:
                connection.close()

    def _leave(self) -> None:
        """Close the file unless it was a parent's, before a fork: whoever closes it last puts
        SQLite's log away."""
        if self._connection is not None and self._opener == os.getpid():
            self.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        from sqlite3 import Error

        with self._turns:
            try:
                self._still_there()
                if self._connection is None:
                    self._connection = self._open()
                connection = self._connection
                if self._unwritable is not None and begin != "BEGIN":
                    raise self._unwritable
                connection.execute(begin)
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:  # a full disk has rolled it back already
                        connection.execute("ROLLBACK")
                    raise
            except UnicodeEncodeError:
                raise SessionError(
                    "half a character (a lone surrogate) can be neither stored nor found: where it"
                    " was typed or read, bytes were not UTF-8. Nothing was changed"
                ) from None
            except Error as error:
                from mull.store.sessions.damage import is_damage

                if is_damage(error) and self._unwritable is None:
                    self.close()
                    said = self._replace_damaged(error)
                    raise ConfigError(f"{said}. Nothing else was done: try again") from None
                raise _spoken(error, self._path) from None

    def _open(self) -> Connection:
        """The connection; a damaged file is replaced first, once, and the user is told. One that
        cannot be written is opened for reading."""
        from sqlite3 import Error

        try:
            connection = _connected(self._path)
        except _Unwritable as error:
            connection = self._open_read_only(error)
        except Error as error:
            from mull.store.sessions.damage import is_damage

            if not is_damage(error):
                connection = self._open_read_only(_spoken(error, self._path))
            else:
                self._tell(self._replace_damaged(error))
                connection = _connected(self._path)
        self._opened, self._opener = os.stat(self._path), os.getpid()
        _used.add(self)
        return connection

    def _open_read_only(self, why: ConfigError) -> Connection:
        from mull.store.sessions.readonly import read_only

        connection = read_only(self._path)
        if connection is None:
            raise why
        self._unwritable = why
        return connection

    def _replace_damaged(self, error: Error) -> str:
        from mull.store.sessions.damage import replace_damaged

        with _opening(self._path):
            return replace_damaged(self._path, error, _prepared)

    def _still_there(self) -> None:
        """Who writes to a file that was moved away writes to nobody: then another is opened.

        Raises:
            ConfigError: there is none.
        """
        if self._connection is None:
            return
        try:
            moved = not os.path.samestat(self._opened, os.stat(self._path))
        except OSError:
            raise ConfigError(
                f"{self._path} was moved or deleted while mull was using it: put it back, or start"
                " mull again. Nothing was stored just now"
            ) from None
        if moved:
            self.close()


@atexit.register
def _leave_all() -> None:
    for database in _used:
        database._leave()


@contextmanager
def _opening(path: Path) -> Iterator[None]:
    """One process at a time creates, changes or replaces the file."""
    lock = FileLock(path.with_name(f"{path.name}.lock"))
    try:
        lock.acquire()
    except OSError as error:
        raise ConfigError(f"cannot write in {path.parent}: {error.strerror}") from None
    try:
        yield
    finally:
        lock.release()


def _connected(path: Path) -> Connection:
    """A connection to a store of this version that can be read."""
    try:
        make_parents(path.parent)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # SQLite would let all read it
    except OSError as error:
        raise _Unwritable(f"cannot open {path}: {error.strerror}; nothing was changed") from None
    connection = _connect(path)
    try:
        version = version_of(connection)
        if version > VERSION:
            raise _newer(path)
        if version < VERSION:
            with _opening(path):
                bring_up_to_date(connection)
        connection.execute("SELECT * FROM sessions LIMIT 1").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(path: Path) -> Connection:
    import sqlite3

    connection = sqlite3.connect(
        path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
    return connection


def _prepared(path: Path) -> Connection:
    """A new store at this path."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    connection = _connect(path)
    bring_up_to_date(connection)
    return connection


def bring_up_to_date(connection: Connection) -> None:
    """Give an older store, or an empty one, the tables of today; all of it or nothing."""
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # heeded while the file is empty
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        migrate(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk has rolled it back already
            connection.execute("ROLLBACK")
        raise


def _newer(path: Path) -> ConfigError:
    return ConfigError(
        f"{path} was written by a newer mull: upgrade this one. The file is as it was"
    )


def _spoken(error: Error, path: Path) -> ConfigError:
    reason = _REASONS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, str(error))
    return ConfigError(f"cannot use {path}: {reason}. Nothing was changed")
