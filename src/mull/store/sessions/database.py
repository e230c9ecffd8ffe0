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

from mull.neutral.errors import ConfigError, SessionError, UnwritableError
from mull.store.files import make_parents
from mull.store.locks import FileLock
from mull.store.sessions.reserve import give_up_reserve, keep_reserve
from mull.store.sessions.schema import VERSION, migrate, readable, version_of

if TYPE_CHECKING:
    from sqlite3 import Connection

__all__ = ["Database", "bring_up_to_date"]

_BUSY_SECONDS = 20
"""How long to wait for other processes that write; each of them takes milliseconds."""

_PAGES, _FEW_PAGES = 4_000, 50
"""By how many pages a file gets smaller at once; few, where there is little room to move them."""

_LOG_BYTES = 16 << 20
"""What SQLite's own log may keep of the disk after something big was written."""

_REASONS = {  # by SQLite's primary result codes
    3: "mull has no permission to open it",
    5: "another process is using it; try again",
    6: "another process is using it; try again",
    8: "it, or the directory it is in, is read-only",
    10: "the disk cannot be read or written, or is full",
    13: "the disk is full",
    14: "it cannot be opened; check that its directory exists and that you may write there",
    23: "mull has no permission to open it",
}
_UNWRITABLE = frozenset((3, 8, 10, 13, 14, 23))


class DamagedError(ConfigError):
    """The file was damaged and another is in its place; `told` says what became of it."""

    def __init__(self, told: str) -> None:
        self.told = told
        super().__init__(f"{told}. Nothing else was done: try again")


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

    def erase(self, work: Callable[[Connection, bool], None]) -> None:
        """`writing`, and what is deleted leaves no bytes behind, and the file gets smaller.

        On a full disk the room kept for it is used: `work` is told to be thrifty, and bytes stay
        until they are written over.
        """
        with self._turns:
            try:
                self._erase(work, thriftily=False)
            except UnwritableError:
                if not give_up_reserve(self._path):
                    raise
                self._erase(work, thriftily=True)

    def _erase(self, work: Callable[[Connection, bool], None], *, thriftily: bool) -> None:
        from sqlite3 import Error

        with self.writing() as connection:
            connection.execute(f"PRAGMA secure_delete = {'OFF' if thriftily else 'ON'}")
            try:
                work(connection, thriftily)
            finally:
                connection.execute("PRAGMA secure_delete = OFF")
        with suppress(Error):  # it is deleted; the rest can wait for another time
            _shrink(connection, _FEW_PAGES if thriftily else _PAGES)
        self._keep_reserve()

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._path

    def replace_if_damaged(self) -> str | None:
        """Begin another file if SQLite finds this one damaged, and say so."""
        with self._turns:
            try:
                with self.reading() as connection:
                    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            except DamagedError as error:
                return error.told
            if found == "ok":
                return None
            self.close()
            return self._replace_damaged(found)

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
                    self._connection, self._opener = self._open(), os.getpid()
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
            except (Error, UnicodeDecodeError) as error:
                from mull.store.sessions.damage import is_damage

                if is_damage(error) and self._unwritable is None:
                    self.close()
                    raise DamagedError(self._replace_damaged(str(error))) from None
                raise _spoken(error, self._path) from None

    def _open(self) -> Connection:
        """The connection; a damaged file is replaced first, once, and the user is told. One that
        cannot be written is opened for reading."""
        from sqlite3 import Error

        try:
            connection = _connected(self._path)
        except UnwritableError as error:
            connection = self._open_read_only(error)
        except (Error, UnicodeDecodeError) as error:
            from mull.store.sessions.damage import is_damage

            if not is_damage(error):
                connection = self._open_read_only(_spoken(error, self._path))
            else:
                self._tell(self._replace_damaged(str(error)))
                connection = _connected(self._path)
        if self._unwritable is None:
            self._keep_reserve()
        self._opened = os.stat(self._path)
        _used.add(self)
        return connection

    def _keep_reserve(self) -> None:
        keep_reserve(self._path)

    def _open_read_only(self, why: ConfigError) -> Connection:
        from mull.store.sessions.readonly import read_only

        connection = read_only(self._path)
        if connection is None:
            raise why
        self._unwritable = why
        return connection

    def _replace_damaged(self, why: str) -> str:
        from mull.store.sessions.damage import replace_damaged

        with _opening(self._path):
            return replace_damaged(self._path, why, _prepared)

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
        if path.exists() and not (path.is_file() or path.is_dir()):  # SQLite would wait for ever
            raise ConfigError(f"cannot open {path}: it is not a file; nothing was changed")
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # SQLite would let all read it
    except OSError as error:
        raise UnwritableError(
            f"cannot open {path}: {error.strerror}; nothing was changed"
        ) from None
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
    connection.text_factory = readable
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
    except BaseException:
        connection.close()
        raise
    return connection


def _shrink(connection: Connection, pages: int) -> None:
    """Give free pages back to the disk, some at a time: each step needs room for what it moves."""
    before = None
    while True:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        (left,) = connection.execute("PRAGMA freelist_count").fetchone()
        if left in (0, before):
            return
        before = left
        # as a script: `execute` would take one step of many and stop
        connection.executescript(f"PRAGMA incremental_vacuum({pages})")


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


def _spoken(error: Exception, path: Path) -> ConfigError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    kind = UnwritableError if code in _UNWRITABLE else ConfigError
    return kind(f"cannot use {path}: {_REASONS.get(code, str(error))}. Nothing was changed")
