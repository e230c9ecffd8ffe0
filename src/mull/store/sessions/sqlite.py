"""Sessions in one SQLite file: what was said and thought, whole and in order.

A record is on disk before `append` returns. Readers never wait for writers. One process writes a
session at a time (`hold`); that no record is ever lost or doubled is seen to by `append` itself,
which wants to be told where the session ends.
"""

from __future__ import annotations

import builtins
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, UnsetType

from mull.history.log import Record
from mull.logs import log_warning
from mull.neutral.errors import ConfigError, SessionBusy, SessionError
from mull.neutral.events import Event
from mull.neutral.messages import Origin
from mull.store.paths import data_dir
from mull.store.sessions import search as searching
from mull.store.sessions.database import Database
from mull.store.sessions.journal import decode_events, encode_events, fold
from mull.store.sessions.lock import SessionLock, holder
from mull.store.sessions.names import checked_name
from mull.store.sessions.records import (
    account,
    account_all,
    encode_record,
    ends_answer,
    read_records,
)
from mull.store.sessions.rows import find_info, insert_info, read_info, read_infos, update_info
from mull.store.sessions.values import (
    Hit,
    Hold,
    JournalBatch,
    SearchKind,
    SessionInfo,
    SessionStore,
)

if TYPE_CHECKING:
    from sqlite3 import Connection

__all__ = ["SqliteSessions", "open_sessions", "sessions_path", "this_folder"]

_LOCKS = "session-locks"
"""The directory of lock files, beside the store."""


def sessions_path() -> Path:
    """The user's store of sessions."""
    return data_dir() / "sessions.db"


def this_folder() -> str:
    """The folder that sessions begun here belong to; what of its name is no text is escaped.

    Raises:
        ConfigError: it is gone.
    """
    try:
        return os.fsencode(os.path.realpath(os.getcwd())).decode("utf-8", "backslashreplace")
    except OSError:
        raise ConfigError("the folder that mull was started in is gone: go to another") from None


def open_sessions(tell: Callable[[str], None] | None = None) -> SessionStore:
    """The user's store of sessions; what there is to say about its file goes to `tell`, or to the
    log."""
    return SqliteSessions(sessions_path(), tell=tell)


class SqliteSessions:
    """Sessions in the file `path`, which need not exist yet. See `SessionStore` for the methods."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], float] = time.time,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self._database = Database(path, tell or log_warning)
        self._locks = path.parent / _LOCKS
        self._clock = clock

    def close(self) -> None:
        """Close the file; it is opened again when needed."""
        self._database.close()

    def create(
        self,
        *,
        folder: str,
        name: str | None = None,
        model: str | None = None,
        base_url: str | None = None,
        system: str = "",
        settings: Mapping[str, Any] | None = None,
    ) -> SessionInfo:
        now = self._clock()
        info = SessionInfo(
            id="",
            folder=folder,
            created=now,
            updated=now,
            name=None if name is None else checked_name(name),
            model=model,
            base_url=_without_login(base_url),
            system=system,
            settings=dict(settings or {}),
        )
        with self._database.writing() as connection:
            return read_info(connection, insert_info(connection, info))

    def find(self, reference: str, folder: str | None = None) -> SessionInfo:
        with self._database.reading() as connection:
            return find_info(connection, reference, folder)

    def info(self, session: str) -> SessionInfo:
        with self._database.reading() as connection:
            return read_info(connection, session)

    def last(self, folder: str) -> SessionInfo | None:
        spoken = "folder = ? AND EXISTS (SELECT 1 FROM records WHERE session = sessions.id)"
        with self._database.reading() as connection:
            return next(iter(read_infos(connection, spoken, (folder,), 1)), None)

    def list(
        self, folder: str | None = None, limit: int | None = None
    ) -> builtins.list[SessionInfo]:
        with self._database.reading() as connection:
            return read_infos(connection, "? IS NULL OR folder = ?", (folder, folder), limit)

    def load(self, session: str) -> tuple[SessionInfo, builtins.list[Record]]:
        with self._database.reading() as connection:
            return read_info(connection, session), read_records(connection, session)

    def append(self, session: str, position: int, *records: Record) -> None:
        encoded = [(record, encode_record(record)) for record in records]
        with self._database.writing() as connection:
            info = read_info(connection, session)
            if info.records != position:
                raise SessionError(
                    f"session {session} has {info.records} records, not {position}: another process"
                    " wrote it. Nothing was stored; open it again, or go on with a copy"
                    f" (`mull sessions fork {session}`)"
                )
            self._add(connection, info, encoded)

    def update(
        self,
        session: str,
        *,
        name: str | UnsetType | None = UNSET,
        model: str | UnsetType | None = UNSET,
        base_url: str | UnsetType | None = UNSET,
        system: str | UnsetType = UNSET,
        settings: Mapping[str, Any] | UnsetType = UNSET,
    ) -> SessionInfo:
        changes: dict[str, Any] = {
            "name": checked_name(name) if isinstance(name, str) else name,
            "model": model,
            "base_url": _without_login(base_url) if isinstance(base_url, str) else base_url,
            "system": system,
            "settings": settings if isinstance(settings, UnsetType) else dict(settings),
        }
        given = {column: value for column, value in changes.items() if value is not UNSET}
        with self._database.writing() as connection:
            update_info(connection, session, given)
            return read_info(connection, session)

    def fork(self, session: str, at: int | None = None, name: str | None = None) -> SessionInfo:
        with self._database.writing() as connection:
            parent, now = read_info(connection, session), self._clock()
            end = parent.records if at is None else at
            if not 0 <= end <= parent.records:
                raise SessionError(
                    f"session {session} has {parent.records} records: a copy cannot end at {end}"
                )
            copy = msgspec.structs.replace(
                parent,
                created=now,
                updated=now,
                name=None if name is None else checked_name(name),
                parent=session,
                parent_at=end,
            )
            fork = insert_info(connection, copy)
            connection.execute(
                "INSERT INTO records (session, position, data) SELECT ?, position, data"
                " FROM records WHERE session = ? AND position < ? ORDER BY position",
                (fork, session, end),
            )
            account_all(connection, fork)
            searching.index_texts(connection)
            return read_info(connection, fork)

    def delete(self, session: str) -> None:
        with self.hold(session), self._database.erasing() as connection:
            searching.forget_texts(connection, session)
            for table in ("journal", "records"):
                connection.execute(f"DELETE FROM {table} WHERE session = ?", (session,))
            connection.execute("DELETE FROM sessions WHERE id = ?", (session,))

    def search(
        self,
        words: Sequence[str],
        kind: SearchKind | None = None,
        folder: str | None = None,
        limit: int = 50,
    ) -> builtins.list[Hit]:
        wanted = [word.strip() for word in words if word.strip()]
        if not wanted:
            raise SessionError("there is nothing to search for: give a word")
        with self._database.reading() as connection:
            behind = searching.is_behind(connection)
        if behind:
            with self._database.writing() as connection:
                searching.index_texts(connection)
        with self._database.reading() as connection:
            found = searching.search(connection, searching.Query(wanted, kind, folder, limit))
            infos = {hit.session: read_info(connection, hit.session) for hit in found}
        return [Hit(infos[h.session], h.position, h.turn, h.kind, h.parts) for h in found]

    def journal(self, session: str, events: Iterable[Event], origin: Origin | None = None) -> None:
        data = encode_events(events)
        whose = None if origin is None else msgspec.json.encode(origin)
        with self._database.writing() as connection:
            read_info(connection, session)
            connection.execute(
                "INSERT INTO journal (session, at, origin, events) VALUES (?, ?, ?, ?)",
                (session, self._clock(), whose, data),
            )

    def news(
        self, session: str, position: int, after: int = 0
    ) -> tuple[builtins.list[Record], builtins.list[JournalBatch]]:
        with self._database.reading() as connection:
            return read_records(connection, session, position), _batches(connection, session, after)

    def recover(self, session: str, hold: Hold | None = None) -> builtins.list[Record]:
        if hold is None:
            try:
                with self.hold(session) as own:
                    return self.recover(session, own)
            except SessionBusy:
                return []
        with self._database.writing() as connection:
            batches = _batches(connection, session)
            records: list[Record] = [*fold(batches)]
            if batches:
                connection.execute("DELETE FROM journal WHERE session = ?", (session,))
                info = read_info(connection, session)
                self._add(connection, info, [(each, encode_record(each)) for each in records])
            return records

    def hold(self, session: str) -> Hold:
        return SessionLock(self._locks, self.info(session).id)

    def holder(self, session: str) -> int | None:
        return holder(self._locks, session)

    def _add(
        self, connection: Connection, info: SessionInfo, encoded: Sequence[tuple[Record, bytes]]
    ) -> None:
        """Put records at the end of a session."""
        placed = [(position, *pair) for position, pair in enumerate(encoded, info.records)]
        connection.executemany(
            "INSERT INTO records (session, position, data) VALUES (?, ?, ?)",
            [(info.id, position, data) for position, _, data in placed],
        )
        places = [(position, record) for position, record, _ in placed]
        account(connection, info.id, places, info.turns, info.title)
        searching.index_texts(connection)
        if any(ends_answer(record) for _, record in places):
            connection.execute("DELETE FROM journal WHERE session = ?", (info.id,))
        connection.execute("UPDATE sessions SET updated = ? WHERE id = ?", (self._clock(), info.id))


def _batches(connection: Connection, session: str, after: int = 0) -> list[JournalBatch]:
    rows = connection.execute(
        "SELECT number, at, origin, events FROM journal WHERE session = ? AND number > ?"
        " ORDER BY number",
        (session, after),
    )
    return [
        JournalBatch(
            number,
            at,
            None if origin is None else msgspec.json.decode(origin, type=Origin),
            decode_events(events),
        )
        for number, at, origin, events in rows
    ]


def _without_login(url: str | None) -> str | None:
    """An address without a name and password in it: secrets are not for the store."""
    if url is None or "://" not in url:
        return url
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
