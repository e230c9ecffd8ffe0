"""Making a store usable again in which bits have rotted: what can be read stays as it is.

A record that cannot be read is replaced by one that says so, in its place, because the others are
named by their places. The file as it was is kept.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mull.history.log import Entry, Record, Undone
from mull.neutral.blocks import TextBlock
from mull.neutral.errors import ConfigError
from mull.neutral.messages import Message
from mull.store.sessions.journal import decode_events
from mull.store.sessions.records import account_all, decode_record, encode_record
from mull.store.sessions.rows import read_infos, rewrite_info, rotten
from mull.store.sessions.search import forget_texts, index_texts

if TYPE_CHECKING:
    from sqlite3 import Connection

__all__ = ["Faults", "find_faults", "keep_copy", "mend", "stand_in"]

DAMAGED = "[This message was damaged on disk and cannot be read.]"
_MESSAGE = b'"type":"message"'
_ROLE = re.compile(rb'"role":"(user|assistant|tool)"')


class Faults(NamedTuple):
    """What of a store cannot be read.

    `rows` are sessions, `records` the numbers of rows by session, `batches` those of the journal.
    """

    rows: list[str]
    records: dict[str, list[int]]
    batches: list[int]

    @property
    def sessions(self) -> list[str]:
        """The sessions that have any."""
        return [*dict.fromkeys((*self.rows, *self.records))]

    def __bool__(self) -> bool:
        return bool(self.rows or self.records or self.batches)


def find_faults(connection: Connection) -> Faults:
    """Read everything once."""
    records: dict[str, list[int]] = {}
    for row, session, position, data in connection.execute(
        "SELECT id, session, position, data FROM records ORDER BY id"
    ):
        if not _is_record(data, session, position):
            records.setdefault(session, []).append(row)
    batches = [
        number
        for number, events in connection.execute("SELECT number, events FROM journal")
        if events != b"[]" and not decode_events(events)
    ]
    return Faults(rotten(connection), records, batches)


def _is_record(data: bytes, session: str, position: int) -> bool:
    try:
        decode_record(data, session, position)
    except ConfigError:
        return False
    return True


def mend(connection: Connection, faults: Faults) -> None:
    """Put something readable in the place of what is not, inside the caller's transaction."""
    connection.execute("REINDEX")
    for session in faults.rows:
        rewrite_info(connection, session)
    for row in (row for rows in faults.records.values() for row in rows):
        found = connection.execute("SELECT data FROM records WHERE id = ?", (row,)).fetchone()
        if found is not None:
            mended = encode_record(stand_in(found[0]))
            connection.execute("UPDATE records SET data = ? WHERE id = ?", (mended, row))
    for number in faults.batches:
        connection.execute("DELETE FROM journal WHERE number = ?", (number,))
    for info in read_infos(connection, "true", ()):
        if info.id in faults.records:
            forget_texts(connection, info.id)
            account_all(connection, info.id)
    index_texts(connection)


def stand_in(data: object) -> Record:
    """What takes the place of a record that cannot be read: a message, or a note of nothing."""
    raw = data if isinstance(data, bytes) else str(data).encode("utf-8", "replace")
    role = _ROLE.search(raw)
    if role is None and _MESSAGE not in raw:
        return Undone(0, 0)
    is_answer = role is not None and role[1] == b"assistant"
    said = (TextBlock(DAMAGED),)
    return Entry(Message(role="assistant" if is_answer else "user", blocks=said), own=True)


def keep_copy(path: Path) -> Path:
    """Copy the store as it is beside itself.

    Raises:
        ConfigError: there is no room for it.
    """
    import sqlite3

    stamp = f"{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() % 10**9:09}"
    copy = path.with_name(f"{path.name}.before-repair-{stamp}")
    os.close(os.open(copy, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
    except (OSError, sqlite3.Error) as error:
        copy.unlink(missing_ok=True)
        raise ConfigError(f"cannot keep a copy as {copy}: {error}. Nothing was changed") from None
    return copy
