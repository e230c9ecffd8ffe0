"""A server's error output, in a file of bounded size and without secrets.

The terminal belongs to the conversation, so nothing a server prints may reach it. The file is for
diagnosing failures; that it cannot be written is ignored.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from mull.agent.mcp.lines import Lines, LongLine
from mull.client.secrets import scrub
from mull.store.files import make_parents

__all__ = ["ServerLog"]

MOST_BYTES = 512 * 1024
"""After this many bytes the file becomes `NAME.log.old` and a new one starts."""
_LONGEST_LINE = 8192
_SHOWN = 200


class ServerLog:
    """The log of one server."""

    def __init__(self, path: Path, secrets: Sequence[str] = (), most: int = MOST_BYTES) -> None:
        self.path = path
        self.last_line = ""
        self._secrets = tuple(secrets)
        self._most = most
        self._lines = Lines(_LONGEST_LINE)
        self._file: BinaryIO | None = None
        self._size = 0
        self._failed = False

    def feed(self, data: bytes) -> None:
        """Process output as it arrives."""
        for line in self._lines.feed(data):
            if isinstance(line, LongLine):
                self.note(f"[a line of {line.size:,} bytes, left out]")
                continue
            text = scrub(line.decode("utf-8", "replace"), self._secrets)
            shown = "".join(char if char.isprintable() else " " for char in text[:_SHOWN])
            self.last_line = shown.strip() or self.last_line
            self.note(text)

    def note(self, line: str) -> None:
        """Add a line from mull."""
        self._append(scrub(line.rstrip(), self._secrets).encode("utf-8", "replace") + b"\n")

    def close(self) -> None:
        """Finish the last line and close the file."""
        self.feed(b"\n")
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None

    def _append(self, data: bytes) -> None:
        if self._failed or data == b"\n":
            return
        try:
            if self._file is None:
                self._open()
            elif self._size + len(data) > self._most:
                self._file.close()
                os.replace(self.path, self.path.with_name(f"{self.path.name}.old"))
                self._open()
            assert self._file is not None
            self._file.write(data)
            self._size += len(data)
        except OSError:
            self._failed = True

    def _open(self) -> None:
        make_parents(self.path.parent)
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._file = os.fdopen(handle, "wb", buffering=0)
        self._size = os.fstat(handle).st_size
