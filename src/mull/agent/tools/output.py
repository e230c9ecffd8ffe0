"""The output of a command: its beginning and its end, and the rest put aside in a file.

However much comes, a fixed amount is kept in memory, a larger fixed amount on disk, and the rest
is counted.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable
from pathlib import Path

from mull.agent.tools.shown import plural, shown_name

__all__ = ["Output"]

_HEAD = 32 << 10
_TAIL = 32 << 10
_ASIDE = 32 << 20
_LIVE = 256 << 10


class Output:
    """Takes bytes as they come; shows them live up to a limit, and gives a text at the end."""

    def __init__(
        self, put_aside: Callable[[], tuple[int, Path]], emit: Callable[[str], None]
    ) -> None:
        self._put_aside = put_aside
        self._emit = emit
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._live = _LIVE
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self._file: int | None = None
        self._path: Path | None = None
        self._is_disk_full = False

    def add(self, data: bytes) -> None:
        """Take the next piece."""
        self._show(data)
        self._total += len(data)
        self._write(data)
        room = _HEAD - len(self._head)
        self._head += data[:room]
        self._tail += data[room:][-_TAIL:]
        if len(self._tail) > 2 * _TAIL:
            del self._tail[:-_TAIL]

    def close(self) -> None:
        """No more will come."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def text(self) -> str:
        """All of it, or its beginning and end with a note on what is missing between them."""
        if self._total <= _HEAD + _TAIL:
            return bytes(self._head + self._tail).decode("utf-8", "replace")
        head, tail = (
            _to_last_break(bytes(self._head)),
            _from_first_break(bytes(self._tail[-_TAIL:])),
        )
        missing = self._total - len(head) - len(tail)
        return "\n".join(
            (
                head.decode("utf-8", "replace"),
                f"[{plural(missing, 'byte')} left out here{self._where(head)}]",
                tail.decode("utf-8", "replace"),
            )
        )

    def _where(self, head: bytes) -> str:
        if self._path is None:
            return ""
        kept = min(self._total, _ASIDE)
        amount = "all of it" if kept == self._total else f"its first {plural(kept, 'byte')}"
        line = head.count(b"\n") + 2
        return f"; {amount}: read path={shown_name(self._path)} offset={line}"

    def _show(self, data: bytes) -> None:
        if self._live <= 0:
            return
        text = self._decoder.decode(data[: self._live])
        self._live -= len(data)
        if self._live <= 0:
            text += "\n[more output comes and is not shown]\n"
        if text:
            self._emit(text)

    def _write(self, data: bytes) -> None:
        """Put aside what does not fit in memory, from the beginning on."""
        if self._total <= _HEAD + _TAIL or self._is_disk_full:
            return
        try:
            if self._file is None:
                self._file, self._path = self._put_aside()
                os.write(self._file, self._head + self._tail)
            room = _ASIDE - (self._total - len(data))
            if room > 0:
                os.write(self._file, data[:room])
        except OSError:
            self._is_disk_full, self._path = True, None


def _to_last_break(data: bytes) -> bytes:
    at = data.rfind(b"\n")
    return data[:at] if at > len(data) // 2 else data


def _from_first_break(data: bytes) -> bytes:
    at = data.find(b"\n")
    return data[at + 1 :] if 0 <= at < len(data) // 2 else data
