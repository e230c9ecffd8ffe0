"""Records as bytes and back, and what is kept beside them for speed.

Texts for searching, the number of turns and the title of a session all follow from its records.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from mull.history.log import Entry, Record
from mull.neutral.errors import ConfigError, SessionError
from mull.neutral.former import Reader
from mull.neutral.nesting import DEEPEST_STORED, shallow
from mull.store.sessions.names import title_of
from mull.store.sessions.search import add_texts

if TYPE_CHECKING:
    from sqlite3 import Connection

__all__ = [
    "account",
    "account_all",
    "decode_record",
    "encode_record",
    "ends_answer",
    "read_records",
]

_encoder = msgspec.json.Encoder()


def encode_record(record: Record) -> bytes:
    """The record as JSON.

    Raises:
        SessionError: it holds a character that is none (half of a pair); nothing can store that.
    """
    try:
        return _encoder.encode(record)
    except UnicodeEncodeError:
        raise SessionError(
            "a message holds half a character (a lone surrogate) and cannot be stored or sent"
        ) from None


def decode_record(data: bytes, session: str, position: int) -> Record:
    """The record that `encode_record` wrote; what is nested too deeply in it is text.

    Raises:
        ConfigError: it is something else; says which record and why.
    """
    try:
        return _reader()(shallow(data, DEEPEST_STORED))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError) as error:
        raise ConfigError(
            f"record {position} of session {session} cannot be read ({error}): `mull sessions"
            " repair` makes the rest of the session usable"
        ) from None


@cache  # a session that begins has none to decode
def _reader() -> Reader[Record]:
    return Reader(Record)


def ends_answer(record: Record) -> bool:
    """Whether what was being received or run before it is whole in it."""
    return isinstance(record, Entry) and record.message.role in ("assistant", "tool")


def account(
    connection: Connection,
    session: str,
    records: Iterable[tuple[int, Record]],
    turns: int = 0,
    title: str = "",
) -> None:
    """Keep what follows from records that come after `turns` turns; each has its position."""
    for position, record in records:
        if isinstance(record, Entry) and record.starts_turn:
            turns += 1
            title = title or title_of(record.message.text)
        add_texts(connection, session, position, turns, record)
    connection.execute(
        "UPDATE sessions SET turns = ?, title = ? WHERE id = ?", (turns, title, session)
    )


def account_all(connection: Connection, session: str) -> None:
    """Keep what follows from all records of a session."""
    account(connection, session, enumerate(read_records(connection, session)))


def read_records(connection: Connection, session: str, start: int = 0) -> list[Record]:
    """The records of a session from a position on."""
    rows = connection.execute(
        "SELECT position, data FROM records WHERE session = ? AND position >= ? ORDER BY position",
        (session, start),
    )
    return [decode_record(data, session, position) for position, data in rows]
