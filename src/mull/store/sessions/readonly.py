"""Reading a store that cannot be written: on a read-only disk, or on one so full that SQLite has no
room for its own files. What is stored can be listed, shown, searched and exported all the same.
"""

from __future__ import annotations

import os
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mull.store.sessions.schema import VERSION, readable, version_of

if TYPE_CHECKING:
    from sqlite3 import Connection

__all__ = ["read_only"]


def read_only(path: Path) -> Connection | None:
    """A connection that writes nothing, not even beside the file; None where that cannot be."""
    from sqlite3 import Error

    with suppress(OSError, Error):
        connection = _in_memory(path) if _has_log(path) else _as_it_lies(path)
        with suppress(Error):
            if version_of(connection) == VERSION:
                return connection
        connection.close()
    return None


def _has_log(path: Path) -> bool:
    """Whether some of what is stored stands only in SQLite's own log beside the file."""
    log = Path(f"{path}-wal")
    return log.exists() and os.path.getsize(log) > 0


def _as_it_lies(path: Path) -> Connection:
    return _connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1")


def _in_memory(path: Path) -> Connection:
    """The file and its log put together, elsewhere: where they lie SQLite would have to write."""
    import shutil  # only where it is needed: they bring much with them
    import tempfile

    kept = _connect(":memory:")
    try:
        with tempfile.TemporaryDirectory(prefix="mull-") as directory:
            copy = Path(directory) / "copy.db"
            for ending in ("", "-wal"):
                shutil.copyfile(f"{path}{ending}", f"{copy}{ending}")
            with closing(_connect(copy.as_uri())) as whole:
                whole.backup(kept)
        kept.execute("PRAGMA query_only = ON")
    except BaseException:
        kept.close()
        raise
    return kept


def _connect(place: str) -> Connection:
    import sqlite3

    connection = sqlite3.connect(place, uri=True, isolation_level=None, check_same_thread=False)
    connection.text_factory = readable
    return connection
