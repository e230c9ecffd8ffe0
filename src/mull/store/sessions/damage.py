"""What happens to a database that is damaged: it is kept, and what it still says is carried over.

The file is moved aside with all that belongs to it and never written again. Reading is done on a
copy, because SQLite may write where it reads.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mull.neutral.errors import ConfigError
from mull.store.sessions.records import account_all, decode_record
from mull.store.sessions.search import INDEX_DAMAGED

if TYPE_CHECKING:
    from sqlite3 import Connection, Row

__all__ = ["is_damage", "replace_damaged"]

_CORRUPT, _NOT_A_DATABASE = 11, 26
_BESIDE = ("", "-wal", "-shm", "-journal")


def is_damage(error: Exception) -> bool:
    """Whether SQLite says that the file itself is broken, in whatever words are left of it."""
    if isinstance(error, UnicodeDecodeError):
        return True
    code = getattr(error, "sqlite_errorcode", 0)
    return code != INDEX_DAMAGED and code & 0xFF in (_CORRUPT, _NOT_A_DATABASE)


def replace_damaged(path: Path, why: str, create: Callable[[Path], Connection]) -> str:
    """Move a damaged file aside, begin a new one with what can be read, and say so.

    The caller sees to it that no other process does the same.

    Raises:
        ConfigError: it cannot be moved; then it is where it was.
    """
    if _is_sound(path):
        return f"{path} was damaged ({why}) and has been replaced: try again"
    aside = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
    try:
        for ending in _BESIDE:
            with suppress(FileNotFoundError):
                os.rename(f"{path}{ending}", f"{aside}{ending}")
    except OSError as failure:
        raise ConfigError(f"{path} is damaged and cannot be moved: {failure.strerror}") from None
    with closing(create(path)) as connection:
        whole, broken = _rescue(aside, connection)
    parts = f", {broken} of them up to the damage" if broken else ""
    saved = f"{whole + broken} sessions were carried over{parts}" if whole + broken else ""
    return f"{path} is damaged ({why}). It is kept as {aside}; {saved or 'a new one is begun'}"


def _is_sound(path: Path) -> bool:
    import sqlite3

    read_only = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(read_only, uri=True)) as connection:
            (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except (sqlite3.Error, UnicodeDecodeError):
        return False
    return bool(said == "ok")


def _rescue(aside: Path, new: Connection) -> tuple[int, int]:
    """Carry over what can be read; how many sessions are whole, and how many are cut short."""
    import shutil
    import sqlite3
    import tempfile

    whole = broken = 0
    with tempfile.TemporaryDirectory(dir=aside.parent, prefix=".rescue-") as directory:
        copy = Path(directory) / "copy.db"
        for ending in ("", "-wal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{aside}{ending}", f"{copy}{ending}")
        with suppress(sqlite3.Error, UnicodeDecodeError), closing(sqlite3.connect(copy)) as old:
            old.row_factory = sqlite3.Row
            for row in sorted(_sessions(old), key=_last_written):
                if _carry_over(old, new, row):
                    whole += 1
                else:
                    broken += 1
    return whole, broken


def _sessions(old: Connection) -> list[Row]:
    """The sessions that can be read."""
    import sqlite3

    found: list[Row] = []
    with suppress(sqlite3.Error, UnicodeDecodeError):
        for row in old.execute("SELECT * FROM sessions"):
            found.append(row)  # one by one: what was read before the damage is kept
    return found


def _last_written(session: Row) -> float:
    at = session["updated"]
    return at if isinstance(at, float) else 0.0


def _carry_over(old: Connection, new: Connection, session: Row) -> bool:
    """Copy a session up to the first record that is damaged or missing; whether it is whole."""
    known = {row[1] for row in new.execute("PRAGMA table_info(sessions)")}
    columns = [name for name in session.keys() if name in known]  # noqa: SIM118 - a Row is no dict
    new.execute("BEGIN IMMEDIATE")
    new.execute(
        f"INSERT INTO sessions ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
        [session[name] for name in columns],
    )
    whole = True
    for position, data in enumerate(_records(old, session["id"])):
        if data is None:
            whole = False
            break
        new.execute(
            "INSERT INTO records (session, position, data) VALUES (?, ?, ?)",
            (session["id"], position, data),
        )
    account_all(new, session["id"])
    new.execute("COMMIT")
    return whole


def _records(old: Connection, session: str) -> Iterator[bytes | None]:
    """The records in their order; None, once, in the place of what cannot be read."""
    import sqlite3

    query = "SELECT position, data FROM records WHERE session = ? ORDER BY position"
    try:
        for expected, (position, data) in enumerate(old.execute(query, (session,))):
            if position != expected:
                yield None
                return
            decode_record(data, session, position)
            yield data
    except (sqlite3.DatabaseError, UnicodeDecodeError, ConfigError):
        yield None
