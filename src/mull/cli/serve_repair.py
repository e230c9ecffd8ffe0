"""`mull serve repair`: saves what can be read of a damaged `serve.db`.

The damaged file is kept under another name. It is read on a copy, because SQLite may write where it
reads. Tokens that cannot be read are lost with their clients' access; nobody is let in without one
unless the operator says so.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mull.cli.serve_setup import on_ledger, serve_config
from mull.gateway.damage import move_aside, require_file
from mull.gateway.stores import STORE_FILE, mark_in
from mull.gateway.tokens import ClientToken
from mull.neutral.errors import ConfigError
from mull.store.locks import FileLock
from mull.store.paths import data_dir

if TYPE_CHECKING:
    from mull.gateway.damage import TokenMark
    from mull.gateway.ledger import Ledger

__all__ = ["arguments", "run"]

_TEXT = """\
Checks serve.db, the gateway's file of answers, client tokens and usage. If it is
damaged, begins a new one with everything that can still be read, keeps the damaged
one beside it, and says what is lost. A running gateway goes on with the new file.
"""
_MAGIC = b"SQLite format 3\0"
_HEADER = 100
_LABELS = {"token": "client tokens", "record": "answers", "usage": "sums of usage"}
_READABLE = (sqlite3.Error, UnicodeDecodeError)


class _Saved(NamedTuple):
    """How many rows of a table were saved, and whether those are all."""

    rows: int
    is_whole: bool


def arguments(parser: ArgumentParser) -> None:
    """Add the options."""
    parser.description = _TEXT
    parser.add_argument(
        "--without-tokens",
        action="store_true",
        help="let clients in without a token, if the tokens that there were are lost",
    )


def run(options: Namespace) -> int:
    """Check the store, and repair it if it is a file.

    Raises:
        ConfigError: the store cannot be read or written, or tokens are left.
    """
    config = serve_config(options)
    mark = mark_in(config)
    if mark.place == STORE_FILE:
        try:
            _repair(data_dir() / STORE_FILE)
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(f"{STORE_FILE} is left as it is: {error}") from None
    else:
        print(f"{mark.place} is a PostgreSQL database: damage is for its own tools")
    if options.without_tokens:
        _open_to_all(options, mark)
    count = len(on_ledger(options, _tokens))
    print(f"client tokens: {count}" if count else "client tokens: none, and none is needed")
    return 0


async def _tokens(ledger: Ledger) -> Sequence[ClientToken]:
    return await ledger.tokens()


def _open_to_all(options: Namespace, mark: TokenMark) -> None:
    """Forget that there were tokens.

    Raises:
        ConfigError: there still are some.
    """
    known = mark.read()
    mark.write(None)
    if on_ledger(options, _tokens):
        raise ConfigError("there are client tokens: remove them with `mull serve token remove`")
    if known is not None:
        print("no token is needed from now on", file=sys.stderr)


def _repair(path: Path) -> None:
    """Check the file; if it is damaged, put one in its place that has what can be read."""
    if not os.path.lexists(path):
        print(f"there is no {path}")
        return
    with FileLock(path.with_suffix(".lock")):
        why = _damage(path)
        if why is None:
            print(f"{path} is sound")
            return
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".repair-") as folder:
            new, copy = Path(folder) / "new.db", Path(folder) / "copy.db"
            saved = _save(path, copy, new)
            aside = move_aside(path)
            os.rename(new, path)
    print(f"{path} was damaged ({why}) and is kept as {aside.name}")
    for table, label in _LABELS.items():
        rows, is_whole = saved.get(table, _Saved(0, is_whole=False))
        print(f"{label} saved: {rows:,}{'' if is_whole else '; what cannot be read is lost'}")


def _damage(path: Path) -> str | None:
    """What is wrong with the file; None if nothing is."""
    try:
        require_file(path)
        with closing(sqlite3.connect(path)) as db:
            (said,) = db.execute("PRAGMA quick_check(1)").fetchone()
            if said != "ok":
                return str(said)
            with suppress(sqlite3.OperationalError):  # there is no such table yet
                for name, data in db.execute("SELECT name, data FROM token"):
                    if not _is_token(name, data):
                        return f"the token of {name} cannot be read"
    except _READABLE as error:
        return str(error)
    return None


def _is_token(name: object, data: object) -> bool:
    if not isinstance(data, bytes):
        return False
    try:
        return msgspec.json.decode(data, type=ClientToken).name == name
    except msgspec.DecodeError:
        return False


def _save(path: Path, copy: Path, new: Path) -> dict[str, _Saved]:
    """Write a new file with what can be read of the damaged one."""
    from mull.gateway import ledger_sqlite, sqlite

    with closing(sqlite3.connect(new, isolation_level=None)) as db:
        sqlite.set_up(db)
        ledger_sqlite.set_up(db)
        db.execute("PRAGMA journal_mode = DELETE")  # all of it in this one file
        new.chmod(0o600)
        db.execute("PRAGMA foreign_keys = OFF")
        tables = _columns(db)
        saved = dict.fromkeys(tables, _Saved(0, is_whole=False))
        if not path.is_file():
            return saved
        for ending in ("", "-wal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{ending}", f"{copy}{ending}")
        _mend_header(copy, new)
        with closing(sqlite3.connect(copy)) as old, suppress(*_READABLE):
            old.text_factory = lambda text: text.decode("utf-8", "replace")
            old.execute("PRAGMA writable_schema = ON")  # reads what is there of a file cut short
            for table, columns in tables.items():
                saved[table] = _save_table(old, db, table, columns)
        db.execute("DELETE FROM anchor WHERE record NOT IN (SELECT id FROM record)")
        # an answer whose keys are lost cannot be found
        db.execute("DELETE FROM record WHERE id NOT IN (SELECT record FROM anchor)")
        (rows,) = db.execute("SELECT count(*) FROM record WHERE length(data) > 0").fetchone()
        saved["record"] = _Saved(rows, saved["record"].is_whole and saved["anchor"].is_whole)
    return saved


def _columns(db: sqlite3.Connection) -> dict[str, list[tuple[str, int]]]:
    """The tables; for each the names of its columns, and their place in its key or 0."""
    names = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    return {
        name: [(row[1], row[5]) for row in db.execute(f"PRAGMA table_info({name})")]
        for (name,) in names
    }


def _mend_header(copy: Path, new: Path) -> None:
    """Give a file whose first bytes are lost those of a new one, with its own number of pages."""
    with copy.open("r+b") as file, new.open("rb") as sound:
        if file.read(len(_MAGIC)) == _MAGIC:
            return
        header = bytearray(sound.read(_HEADER))
        size = int.from_bytes(header[16:18])
        header[28:32] = (copy.stat().st_size // size).to_bytes(4)
        header[32:40] = bytes(8)  # no list of unused pages
        header[92:96] = header[24:28]  # the number of pages holds for this version of the file
        file.seek(0)
        file.write(header)


def _save_table(
    old: sqlite3.Connection, new: sqlite3.Connection, table: str, columns: list[tuple[str, int]]
) -> _Saved:
    """Copy the rows of a table: from its beginning to the damage, then from its end."""
    names = ", ".join(name for name, _ in columns)
    put = f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})"
    key = [name for name, place in sorted(columns, key=lambda column: column[1]) if place]
    is_whole = False
    if not old.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (table,)).fetchone():
        return _Saved(0, is_whole=True)
    for way in ("ASC", "DESC"):
        order = ", ".join(f"{name} {way}" for name in key)
        new.execute("BEGIN")
        with suppress(*_READABLE):
            rows = old.execute(f"SELECT {names} FROM {table} ORDER BY {order}")
            is_whole = _put_all(new, put, table, rows)
        new.execute("COMMIT")
        if is_whole:
            break
    (count,) = new.execute(f"SELECT count(*) FROM {table}").fetchone()
    return _Saved(count, is_whole)


def _put_all(new: sqlite3.Connection, put: str, table: str, rows: Iterator[Any]) -> bool:
    """Copy rows until one cannot be read; returns whether all of them make sense."""
    is_whole = True
    for row in rows:
        if table == "token" and not _is_token(*row):
            is_whole = False
            continue
        try:
            new.execute(put, row)
        except sqlite3.IntegrityError:
            is_whole = False
        except sqlite3.Error as error:  # not what is read is at fault
            raise OSError(f"the new file cannot be written: {error}") from None
    return is_whole
