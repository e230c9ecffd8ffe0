"""The rows of sessions: put in, read, and found by what a person calls them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from mull.neutral.errors import SessionError
from mull.settings.words import closest, join_or, quote
from mull.store.sessions.names import DAY_LETTERS, new_id, next_id
from mull.store.sessions.values import SessionInfo

if TYPE_CHECKING:
    from sqlite3 import Connection

__all__ = ["find_info", "insert_info", "read_info", "read_infos", "update_info"]

# in the order of SessionInfo's fields
_COLUMNS = """
    id, folder, created, updated, name, title, model, base_url, system, settings, parent, parent_at,
    (SELECT coalesce(max(position) + 1, 0) FROM records WHERE session = sessions.id), turns
"""
_MOST_NAMED = 5


def insert_info(connection: Connection, info: SessionInfo) -> str:
    """Put a new session's row in, and return the id that it gets.

    Raises:
        SessionError: its name is taken.
    """
    ident = new_id(info.created)
    while connection.execute("SELECT 1 FROM sessions WHERE id = ?", (ident,)).fetchone():
        ident = next_id(ident)
    connection.execute(
        "INSERT INTO sessions (id, folder, created, updated) VALUES (?, ?, ?, ?)",
        (ident, info.folder, info.created, info.updated),
    )
    fields = ("name", "model", "base_url", "system", "settings", "parent", "parent_at")
    update_info(connection, ident, {name: getattr(info, name) for name in fields})
    return ident


def update_info(connection: Connection, session: str, changes: Mapping[str, Any]) -> None:
    """Change some fields of a session.

    Raises:
        SessionError: another session of the folder has the name.
    """
    if name := changes.get("name"):
        folder = "(SELECT folder FROM sessions WHERE id = ?)"
        taken = f"name = ? AND folder = {folder} AND id <> ?"
        for other in read_infos(connection, taken, (name, session, session)):
            raise SessionError(f"session {other.id} of this folder is called {quote(name)} already")
    for column, value in changes.items():
        kept = msgspec.json.encode(value).decode() if isinstance(value, dict) else value
        connection.execute(f"UPDATE sessions SET {column} = ? WHERE id = ?", (kept, session))


def read_infos(
    connection: Connection, where: str, values: Sequence[object], limit: int | None = None
) -> list[SessionInfo]:
    """The sessions that a condition holds for, the last written first."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM sessions WHERE {where} ORDER BY updated DESC, id DESC LIMIT ?",
        (*values, -1 if limit is None else limit),
    )
    return [_info(row) for row in rows]


def _info(row: Sequence[Any]) -> SessionInfo:
    settings = SessionInfo.__struct_fields__.index("settings")
    values = list(row)
    with suppress(msgspec.DecodeError, TypeError):  # bits may rot, and the session is still there
        values[settings] = msgspec.json.decode(row[settings], type=dict[str, Any])
        return SessionInfo(*values)
    values[settings] = {}
    return SessionInfo(*values)


def read_info(connection: Connection, session: str) -> SessionInfo:
    """The session of this id.

    Raises:
        SessionError: there is none.
    """
    for info in read_infos(connection, "id = ?", (session,)):
        return info
    raise SessionError(
        f"there is no session {quote(session)}; `mull sessions list --all` lists all"
    )


def find_info(connection: Connection, reference: str, folder: str | None) -> SessionInfo:
    """The session of this id, of this name here, of this name anywhere, or whose id begins so.

    The day at the beginning of an id may be left out.

    Raises:
        SessionError: none is meant, or more than one; says which are near.
    """
    word = reference.strip()
    low = word.lower()
    for where, values in (
        ("id = ?", (low,)),
        ("name = ? AND folder = ?", (word, folder)),
        ("name = ?", (word,)),
        (
            f"? <> '' AND (instr(id, ?) = 1 OR instr(id, ?) = {DAY_LETTERS + 1})",
            (low, low, low),
        ),
    ):
        found = read_infos(connection, where, values, _MOST_NAMED + 1)
        if len(found) == 1:
            return found[0]
        if found:
            raise SessionError(_ambiguous(word, found))
    raise SessionError(_missing(connection, word, folder))


def _ambiguous(word: str, found: Sequence[SessionInfo]) -> str:
    named = [f"{info.id} ({info.label or info.folder})" for info in found[:_MOST_NAMED]]
    more = "" if len(found) <= _MOST_NAMED else " or others"
    return f"{quote(word)} may be {join_or(named)}{more}: write the whole id"


def _missing(connection: Connection, word: str, folder: str | None) -> str:
    rows = connection.execute("SELECT id, name FROM sessions")
    near = closest(word, [name for row in rows for name in row if name])
    if near:
        return f"there is no session {quote(word)}: did you mean {near}?"
    here = read_infos(connection, "? IS NULL OR folder = ?", (folder, folder), _MOST_NAMED)
    if not here:
        return f"there is no session {quote(word)}: none is stored yet for this folder"
    named = [f"{info.id} ({info.label})" if info.label else info.id for info in here]
    return f"there is no session {quote(word)}: the last ones here are {', '.join(named)}"
