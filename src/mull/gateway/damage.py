"""What becomes of a gateway's file that is damaged, replaced or gone.

Stored answers may be lost: a new file is begun, and the damaged one is kept aside. Client tokens
may not: a gateway that forgot that it had any would let everybody in. So a small file beside the
database says in which ledgers there were tokens. While one of them is damaged or gone, nobody is
let in, and `mull serve repair` saves what can be read.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import msgspec

from mull.logs import log_warning
from mull.neutral.errors import ConfigError, MullError
from mull.store.files import read_bytes, write_atomic
from mull.store.locks import FileLock

__all__ = [
    "MARK_FILE",
    "OPENED",
    "Connection",
    "Damaged",
    "FileId",
    "TokenMark",
    "begin_anew",
    "file_id",
    "is_damage",
    "mark_of",
    "move_aside",
    "require_file",
]

MARK_FILE = "serve.tokens"
"""The file in the data folder that says in which ledgers there were tokens."""
OPENED = "open:"
"""Begins the id of a ledger whose last token was removed. With the next token it gets another id,
so that neither an older copy of a ledger nor one that lost its latest changes is believed."""
FileId: TypeAlias = tuple[int, int] | None
"""The device and the number of a file; None if there is none."""
_CORRUPT, _NOT_A_DATABASE = 11, 26
_BESIDE = ("", "-wal", "-shm", "-journal")
_UNKNOWN = "?"
"""Stands for the id of a ledger that had tokens and cannot be read. It equals no id."""
_TOKEN = re.compile(rb'"hash":"[0-9a-f]{64}"')
_LONGEST_TOKEN = 128
_CHUNK = 1 << 20
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, str]).decode


class Damaged(sqlite3.DatabaseError):
    """The file is damaged, and is not replaced because it holds client tokens."""


class Connection(sqlite3.Connection):
    """A connection that knows which file it is to, so that a replaced file is noticed."""

    file: FileId = None


class TokenMark:
    """Says whether there were tokens in the ledger at one place, and which ledger that was. Other
    places may have entries in the same file."""

    def __init__(self, path: Path, place: str) -> None:
        self._path = path
        self.place = place
        self._has_failed = False

    def read(self) -> str | None:
        """The id of the ledger with the tokens; None if there were none."""
        return self._entries().get(self.place)

    def check(self, ledger: str, *, has_tokens: bool) -> None:
        """Compare what a ledger holds with what is known of it, and remember it. A ledger without
        tokens is believed only if it says that the last one was removed.

        Raises:
            ConfigError: there were tokens here, and this is not the ledger that had them.
        """
        known = self.read()
        if has_tokens and known != ledger:
            self.write(ledger)
        elif not has_tokens and known is not None and ledger == f"{OPENED}{known}":
            self.write(None)
        elif not has_tokens and known is not None:
            raise ConfigError(
                f"there were client tokens, and {self.place} has none: it is new, older, or not the"
                " same as before. Restore it, or add tokens with `mull serve token add NAME`; `mull"
                " serve repair --without-tokens` lets clients in without"
            )

    def write(self, ledger: str | None) -> None:
        """Remember this ledger; None if no tokens are needed any more."""
        try:
            with FileLock(self._path.with_suffix(".lock")):
                entries = {**self._entries(), self.place: ledger}
                kept = {place: one for place, one in entries.items() if one is not None}
                write_atomic(self._path, _encode(kept))
        except (OSError, MullError) as error:  # the tokens themselves still hold
            if not self._has_failed:
                log_warning(f"the gateway cannot note whether it has client tokens: {error}")
            self._has_failed = True

    def _entries(self) -> Mapping[str, str]:
        with suppress(msgspec.DecodeError, ConfigError):
            if self._path.is_file() or not os.path.lexists(self._path):
                return _decode(read_bytes(self._path) or b"{}")
        return {self.place: _UNKNOWN}  # whatever it said: nobody is let in


def mark_of(path: Path) -> TokenMark:
    """The mark of the ledger in a SQLite file."""
    return TokenMark(path.with_name(MARK_FILE), path.name)


def file_id(path: Path) -> FileId:
    """Which file has this name now."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def is_damage(error: BaseException) -> bool:
    """Whether SQLite says that the file itself is broken."""
    code = getattr(error, "sqlite_errorcode", 0)
    return isinstance(error, Damaged) or code & 0xFF in (_CORRUPT, _NOT_A_DATABASE)


def require_file(path: Path) -> None:
    """Check that SQLite can open what is there; it would wait for ever at a named pipe.

    Raises:
        Damaged: it is no file.
    """
    try:
        kind = path.stat().st_mode
    except OSError:
        return
    if not stat.S_ISREG(kind):
        raise Damaged("a folder has its name" if stat.S_ISDIR(kind) else "it is not a file")


def begin_anew(path: Path, error: BaseException, broken: FileId) -> None:
    """Move a damaged file aside, so that a new one can be begun; `broken` says which one was meant,
    because another process may have replaced it already.

    Raises:
        Damaged: it holds tokens, and stays where it is.
        OSError: it cannot be moved.
    """
    with FileLock(path.with_suffix(".lock")):
        if file_id(path) != broken:
            return
        mark = mark_of(path)
        has_tokens = mark.read() is not None
        if not has_tokens and any(map(_names_a_token, (path, Path(f"{path}-wal")))):
            has_tokens = True  # of a version that did not note it
            write_atomic(path.with_name(MARK_FILE), _encode({mark.place: _UNKNOWN}))
        if has_tokens:
            raise Damaged(
                f"{path} is damaged ({error}) and holds client tokens: `mull serve repair` saves"
                " what can be read"
            ) from None
        aside = move_aside(path)
    log_warning(
        f"{path} is damaged ({error}) and is kept as {aside.name}; a new one is begun, without the"
        " answers and the usage that were stored"
    )


def move_aside(path: Path) -> Path:
    """Give a file, and what belongs to it, another name in the same folder; returns the name."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    aside = path.with_name(f"{path.name}.damaged-{stamp}-{os.getpid()}")
    for ending in _BESIDE:
        with suppress(FileNotFoundError):
            os.rename(f"{path}{ending}", f"{aside}{ending}")
    return aside


def _names_a_token(path: Path) -> bool:
    """Whether the bytes of a file contain a token, however damaged it is otherwise."""
    return any(_TOKEN.search(piece) for piece in _pieces(path))


def _pieces(path: Path) -> Iterator[bytes]:
    """The content of a file in pieces that overlap by the length of what is searched for."""
    before = b""
    with suppress(OSError):
        if not path.is_file():
            return
        with path.open("rb") as file:
            while piece := file.read(_CHUNK):
                yield before + piece
                before = piece[-_LONGEST_TOKEN:]
