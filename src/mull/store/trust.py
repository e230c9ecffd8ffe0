"""trust.json: which instructions of projects the user has let in, or not, by file and content.

A file whose content is another one has to be let in anew. The user's word can be given again, so a
damaged file counts as none.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from mull.logs import log_warning
from mull.neutral.errors import ConfigError
from mull.store.files import read_bytes, write_atomic

__all__ = ["TRUST_FILE", "Trust"]

TRUST_FILE = "trust.json"
_MOST_CONTENTS = 20
"""Contents of one file that are remembered: branches have different ones."""
_Known = dict[str, dict[str, bool]]


class Trust:
    """What is remembered; read when it is asked for, so that several mulls see the same."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / TRUST_FILE

    def standing(self, path: str, digest: str) -> bool | None:
        """Whether this content of a file is let in; None if nobody has said."""
        return self._read().get(path, {}).get(digest)

    def remember(self, path: str, digest: str, *, trusted: bool) -> None:
        """Keep the user's word.

        Raises:
            ConfigError: the file cannot be written.
        """
        known = self._read()
        others = {one: said for one, said in known.get(path, {}).items() if one != digest}
        latest = list(others.items())[-(_MOST_CONTENTS - 1) :]
        self._write({**known, path: {**dict(latest), digest: trusted}})

    def forget(self, path: str) -> bool:
        """Drop all that was said of a file; False if there was nothing.

        Raises:
            ConfigError: the file cannot be written.
        """
        known = self._read()
        if known.pop(path, None) is None:
            return False
        self._write(known)
        return True

    def _read(self) -> _Known:
        try:
            data = read_bytes(self._path)
            return {} if data is None else msgspec.json.decode(data, type=_Known)
        except (ConfigError, msgspec.DecodeError, UnicodeError, RecursionError) as error:
            log_warning(f"cannot read what you trusted: {self._path}: {error}")
            return {}

    def _write(self, known: _Known) -> None:
        write_atomic(self._path, msgspec.json.format(msgspec.json.encode(known)) + b"\n")
