"""The rows of sessions: put in, read, and found by what a person calls them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from mull.neutral.errors import SessionError
from mull.settings.addresses import without_secrets
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
    "rewrite_info",
    "rotten",
    "tidied",
    "update_info",
]

# in the order of SessionInfo's fields
_COLUMNS = """
    id, folder, created, updated, name, title, model, base_url, system, settings, parent, parent_at,
    (SELECT coalesce(max(position) + 1, 0) FROM records WHERE session = sessions.id), turns, kind
"""
_CHANGED = ("name", "model", "base_url", "system", "settings", "kind")
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
            f"session {other.id} in this folder is already called {quote(info.name)}"
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


_NOTHING = {"id": "", "folder": "", "created": 0.0, "updated": 0.0}
_LAST_SECOND = 253_402_300_799.0
"""The end of the year 9999: no calendar goes further."""


def _info(row: Sequence[Any]) -> SessionInfo:
    values = dict(zip(SessionInfo.__struct_encode_fields__, row, strict=True))
    with suppress(msgspec.DecodeError, TypeError):
        values["settings"] = msgspec.json.decode(values["settings"], type=dict[str, Any])
        return _dated(msgspec.convert(values, SessionInfo))
    sound = {name: value for name, value in values.items() if _is_sound(name, value)}
    return _dated(msgspec.convert({**_NOTHING, **sound}, SessionInfo))


def _is_sound(name: str, value: object) -> bool:
    """Whether a value is of its field's kind: bits may rot, and the session is still there."""
    try:
        msgspec.convert({**_NOTHING, name: value}, SessionInfo)
    except msgspec.ValidationError:
        return False
    return True


def rotten(connection: Connection) -> list[str]:
    """The sessions whose rows hold text that is none, or values of the wrong kind."""
    fields = ("id", "folder", "name", "title", "model", "base_url", "system", "settings", "parent")
    texts = ", ".join(f"CAST({name} AS BLOB)" for name in fields)
    found = [row[0].decode("utf-8", "replace") for row in connection.execute(
        f"SELECT {texts} FROM sessions") if not all(map(_is_text, row))]  # fmt: skip
    for row in connection.execute(f"SELECT {_COLUMNS} FROM sessions"):
        values = dict(zip(SessionInfo.__struct_encode_fields__, row, strict=True))
        try:
            values["settings"] = msgspec.json.decode(values["settings"], type=dict[str, Any])
            info = msgspec.convert(values, SessionInfo)
        except (msgspec.DecodeError, TypeError):
            found.append(row[0])
        else:
            found += [row[0]] if _dated(info) != info else []
    return [*dict.fromkeys(found)]


def _is_text(data: bytes | None) -> bool:
    try:
        return data is None or bool(data.decode() or True)
    except UnicodeDecodeError:
        return False


def rewrite_info(connection: Connection, session: str) -> None:
    """Store a session's row as it can be read."""
    for info in read_infos(connection, "id = ?", (session,)):
        fields = ("folder", "created", "updated", "title", *_CHANGED, "parent", "parent_at")
        values = [_column(getattr(info, name)) for name in fields]
        columns = ", ".join(f"{name} = ?" for name in fields)
        connection.execute(f"UPDATE sessions SET {columns} WHERE id = ?", (*values, session))


def _dated(info: SessionInfo) -> SessionInfo:
    """The session with times that a calendar can show."""
    times = {name: getattr(info, name) for name in ("created", "updated")}
    odd = {name: 0.0 for name, at in times.items() if not 0 <= at <= _LAST_SECOND}
    return replace(info, **odd) if odd else info


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
    return f"{quote(word)} could be {join_or(named)}{more}: give the whole id"


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
    """The changes as they are stored: names as people see them, addresses without secrets.

    Raises:
        SessionError: nothing can be called so.
    """
    kept: dict[str, Any] = {**changes}
    if kept.get("name") is not None:
        kept["name"] = checked_name(kept["name"])
    if kept.get("base_url") is not None:
        kept["base_url"] = without_secrets(kept["base_url"])
    if "settings" in kept:
        kept["settings"] = dict(kept["settings"])
    return kept
