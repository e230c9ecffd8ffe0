"""The rows of sessions: put in, read, and found by what a person calls them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from mull.neutral.errors import SessionError
from mull.settings.words import closest, join_or, quote
from mull.store.sessions.names import DAY_LETTERS, checked_name
from mull.store.sessions.values import Changes, SessionInfo

if TYPE_CHECKING:
    from sqlite3 import Connection

__all__ = [
    "check_name_free",
    "find_info",
    "insert_info",
    "is_stored",
    "read_info",
    "read_infos",
    "tidied",
    "update_info",
]

# in the order of SessionInfo's fields
_COLUMNS = """
    id, folder, created, updated, name, title, model, base_url, system, settings, parent, parent_at,
    (SELECT coalesce(max(position) + 1, 0) FROM records WHERE session = sessions.id), turns
"""
_CHANGED = ("name", "model", "base_url", "system", "settings")
_MOST_NAMED = 5


def is_stored(connection: Connection, ident: str) -> bool:
    """Whether there is a session of this id."""
    found = connection.execute("SELECT 1 FROM sessions WHERE id = ?", (ident,)).fetchone()
    return found is not None


def insert_info(connection: Connection, info: SessionInfo) -> None:
    """Put a new session's row in.

    Raises:
        SessionError: its name is taken.
    """
    check_name_free(connection, info)
    fields = ("id", "folder", "created", "updated", *_CHANGED, "parent", "parent_at")
    connection.execute(
        f"INSERT INTO sessions ({', '.join(fields)}) VALUES ({', '.join('?' * len(fields))})",
        [_column(getattr(info, name)) for name in fields],
    )


def update_info(connection: Connection, info: SessionInfo, changes: Mapping[str, Any]) -> None:
    """Change some fields of a session.

    Raises:
        SessionError: another session of the folder has the name.
    """
    if not changes:
        return
    check_name_free(connection, replace(info, **changes))
    values = [_column(value) for value in changes.values()]
    columns = ", ".join(f"{name} = ?" for name in changes)
    connection.execute(f"UPDATE sessions SET {columns} WHERE id = ?", (*values, info.id))


def check_name_free(connection: Connection, info: SessionInfo) -> None:
    """See to it that no other session of its folder has its name.

    Raises:
        SessionError: one has it.
    """
    if info.name is None:
        return
    taken = (info.name, info.folder, info.id)
    for other in read_infos(connection, "name = ? AND folder = ? AND id <> ?", taken):
        raise SessionError(
            f"session {other.id} of this folder is called {quote(info.name)} already"
        )


def _column(value: object) -> object:
    return msgspec.json.encode(value).decode() if isinstance(value, dict) else value


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


def tidied(changes: Changes) -> dict[str, Any]:
    """The changes as they are stored: names as people see them, addresses without a login.

    Raises:
        SessionError: nothing can be called so.
    """
    kept: dict[str, Any] = {**changes}
    if kept.get("name") is not None:
        kept["name"] = checked_name(kept["name"])
    if "base_url" in kept:
        kept["base_url"] = _without_login(kept["base_url"])
    if "settings" in kept:
        kept["settings"] = dict(kept["settings"])
    return kept


def _without_login(url: str | None) -> str | None:
    """An address without a name and password in it: secrets are not for the store."""
    if url is None or "://" not in url:
        return url
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
