"""Sessions in one SQLite file: what was said and thought, whole and in order.

A record is on disk before `append` returns. Readers never wait for writers. One process writes a
session at a time (`hold`); that no record is ever lost or doubled is seen to by `append` itself,
which wants to be told where the session ends.
"""

from __future__ import annotations

import builtins
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import msgspec

from mull.history.log import Record
from mull.logs import log_warning
from mull.neutral.errors import ConfigError, SessionBusy, SessionError
from mull.neutral.events import Event
from mull.neutral.messages import Origin
from mull.store.paths import data_dir
from mull.store.sessions import search as searching
from mull.store.sessions.database import Database
from mull.store.sessions.journal import decode_events, decode_origin, encode_events, fold
from mull.store.sessions.lock import SessionLock, holder
from mull.store.sessions.names import is_id, new_id, next_id
from mull.store.sessions.records import (
    account,
    account_all,
    encode_record,
    ends_answer,
    read_records,
)
from mull.store.sessions.rows import (
    check_name_free,
    find_info,
    insert_info,
    is_stored,
    read_info,
    read_infos,
    tidied,
    update_info,
)
from mull.store.sessions.values import (
    Changes,
    Hit,
    Hold,
    JournalBatch,
    SearchKind,
    SessionInfo,
    SessionKind,
    SessionStore,
)

if TYPE_CHECKING:
    from sqlite3 import Connection

__all__ = ["SqliteSessions", "open_sessions", "sessions_path", "this_folder"]

_LOCKS = "session-locks"
"""The directory of lock files, beside the store."""
_WHERE = "(? IS NULL OR folder = ?) AND (? IS NULL OR kind = ?)"


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
        raise ConfigError(
            "the folder that mull was started in no longer exists: change to another one"
        ) from None


def open_sessions(tell: Callable[[str], None] | None = None) -> SessionStore:
    """The user's store of sessions; what there is to say about its file goes to `tell`, or to the
    log."""
    return SqliteSessions(sessions_path(), tell=tell)


# records are numbered as they are written; clocks are set back
_LAST = (
    "SELECT session FROM (SELECT id AS session, (SELECT records.id FROM records"
    " WHERE records.session = sessions.id ORDER BY position DESC LIMIT 1) AS written"
    " FROM sessions WHERE folder = ? AND (? IS NULL OR kind = ?))"
    " WHERE written IS NOT NULL ORDER BY written DESC LIMIT 1"
)


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

    def create(self, *, folder: str, **given: Unpack[Changes]) -> SessionInfo:
        info, hold = self.draft(folder=folder, **given)
        with hold:
            return self.begin(info)

    def draft(self, *, folder: str, **given: Unpack[Changes]) -> tuple[SessionInfo, Hold]:
        now, wanted = self._clock(), tidied(given)
        with self._database.writing() as connection:  # nothing is, but it could be
            ident, hold = self._reserve(connection, now)
            info = SessionInfo(id=ident, folder=folder, created=now, updated=now, **wanted)
            try:
                check_name_free(connection, info)
            except BaseException:
                hold.release()
                raise
        return info, hold

    def _reserve(self, connection: Connection, now: float) -> tuple[str, Hold]:
        """An id that nobody else has or will get, because its lock is ours."""
        ident = new_id(now)
        while True:
            if self.holder(ident) is None and not is_stored(connection, ident):
                with suppress(SessionBusy):
                    hold = self._lock(ident)
                    if not is_stored(connection, ident):
                        return ident, hold
                    hold.release()
            ident = next_id(ident)

    def begin(self, info: SessionInfo, *records: Record) -> SessionInfo:
        encoded = [(record, encode_record(record)) for record in records]
        with self._database.writing() as connection:
            insert_info(connection, info)
            if encoded:
                self._add(connection, info, encoded)
            return read_info(connection, info.id)

    def find(self, reference: str, folder: str | None = None) -> SessionInfo:
        with self._database.reading() as connection:
            return find_info(connection, reference, folder)

    def info(self, session: str) -> SessionInfo:
        with self._database.reading() as connection:
            return read_info(connection, session)

    def last(self, folder: str, kind: SessionKind | None = None) -> SessionInfo | None:
        with self._database.reading() as connection:
            values = (folder, kind, kind)
            return next(iter(read_infos(connection, f"id = ({_LAST})", values, 1)), None)

    def list(
        self,
        folder: str | None = None,
        limit: int | None = None,
        kind: SessionKind | None = None,
    ) -> builtins.list[SessionInfo]:
        with self._database.reading() as connection:
            return read_infos(connection, _WHERE, (folder, folder, kind, kind), limit)

    def load(self, session: str) -> tuple[SessionInfo, builtins.list[Record]]:
        with self._database.reading() as connection:
            return read_info(connection, session), read_records(connection, session)

    def append(
        self, session: str, position: int, *records: Record, **changes: Unpack[Changes]
    ) -> SessionInfo:
        encoded = [(record, encode_record(record)) for record in records]
        with self._database.writing() as connection:
            info = read_info(connection, session)
            if info.records != position:
                raise SessionError(
                    f"session {session} has {info.records} records, not {position}: another process"
                    " wrote it. Nothing was stored; open it again, or continue with a copy"
                    f" (`mull sessions fork {session}`)"
                )
            if changes:
                update_info(connection, info, tidied(changes))
            self._add(connection, info, encoded)
            return read_info(connection, session)

    def update(self, session: str, **changes: Unpack[Changes]) -> SessionInfo:
        with self._database.writing() as connection:
            update_info(connection, read_info(connection, session), tidied(changes))
            return read_info(connection, session)

    def fork(self, session: str, at: int | None = None, name: str | None = None) -> SessionInfo:
        wanted = tidied({"name": name})
        with self._database.writing() as connection:
            parent, now = read_info(connection, session), self._clock()
            end = parent.records if at is None else at
            if not 0 <= end <= parent.records:
                raise SessionError(
                    f"session {session} has {parent.records} records: a copy cannot end at {end}"
                )
            ident, hold = self._reserve(connection, now)
            with hold:
                times = {"created": now, "updated": now}
                origin = {"parent": session, "parent_at": end}
                wanted["kind"] = "conversation"  # a copy is made to go on with
                copy = msgspec.structs.replace(parent, id=ident, **times, **wanted, **origin)
                self._copy(connection, copy)
            return read_info(connection, ident)

    def _copy(self, connection: Connection, copy: SessionInfo) -> None:
        """Store a copy of a session's beginning."""
        insert_info(connection, copy)
        connection.execute(
            "INSERT INTO records (session, position, data) SELECT ?, position, data"
            " FROM records WHERE session = ? AND position < ? ORDER BY position",
            (copy.id, copy.parent, copy.parent_at),
        )
        account_all(connection, copy.id)
        searching.index_texts(connection)

    def delete(self, session: str) -> None:
        def forget(connection: Connection, thriftily: bool) -> None:
            searching.forget_texts(connection, session, thriftily=thriftily)
            for table in ("journal", "records"):
                connection.execute(f"DELETE FROM {table} WHERE session = ?", (session,))
            connection.execute("DELETE FROM sessions WHERE id = ?", (session,))

        from mull.store.checkpoints import forget_checkpoints

        with self.hold(session):
            self._database.erase(forget)
            forget_checkpoints(session)

    def repair(self) -> str:
        """Make what can be read usable again, and say what was found and done.

        Raises:
            SessionBusy: a session that needs it is open elsewhere.
            ConfigError: the store cannot be written; nothing was changed.
        """
        from mull.store.sessions.repair import find_faults, keep_copy, mend

        replaced = self._database.replace_if_damaged()
        with self._database.reading() as connection:
            faults = find_faults(connection)
            (count,) = connection.execute("SELECT count(*) FROM sessions").fetchone()
        if not faults:
            sound = f"{count} sessions, and all of them can be read."
            return f"{replaced}. It holds {sound}" if replaced else f"Checked {sound}"
        with ExitStack() as held:
            for session in faults.sessions:
                if is_id(session):  # what rotted is nobody's
                    held.enter_context(self._lock(session))
            copy = keep_copy(self._database.path)
            with self._database.writing() as connection:
                mend(connection, faults)
        broken = sum(map(len, faults.records.values()))
        return (
            f"Repaired {len(faults.sessions)} of {count} sessions: {broken} messages could not be"
            f" read and say so now, {len(faults.rows)} sessions had unreadable names, times or"
            f" settings, {len(faults.batches)} pieces of unfinished answers are gone. The file as"
            f" it was is kept as {copy}"
        )

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
        with self._database.reading() as connection:
            batches = _batches(connection, session)
        if not batches:  # whoever could add one would have to hold it
            return []
        records: list[Record] = [*fold(batches)]
        with self._database.writing() as connection:
            connection.execute("DELETE FROM journal WHERE session = ?", (session,))
            info = read_info(connection, session)
            self._add(connection, info, [(each, encode_record(each)) for each in records])
        return records

    def hold(self, session: str) -> Hold:
        return self._lock(self.info(session).id)

    def _lock(self, ident: str) -> Hold:
        return SessionLock(self._locks, ident)

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
    batches = []
    for number, at, said, events in rows:
        origin = decode_origin(said)
        batches.append(JournalBatch(number, at, origin, decode_events(events, origin)))
    return batches
