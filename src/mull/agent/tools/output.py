"""Output that may be too long for the model: its beginning and end are shown, all of it is in a
file, and the gap is marked.

The end gets most of the room, because that is where commands report their result. However much
arrives, a fixed amount is kept in memory, a larger fixed amount is written to disk, and the rest is
counted.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from mull.agent.tools.printed import Printed
from mull.agent.tools.shown import plural, shown_name

__all__ = ["MOST", "Kept", "Output", "PutAside", "fitted"]

MOST = 64 << 10
"""Maximum bytes of one result, however large the window is."""
_ASIDE = 32 << 20
_LIVE = 256 << 10
_HEAD = 4
"""The part of the room for the beginning."""

PutAside: TypeAlias = Callable[[], tuple[int, Path]]
"""Opens a new file for output that is too long."""


class Kept:
    """Collects text and keeps as much as there is room for; `room` is in bytes."""

    def __init__(self, put_aside: PutAside | None, room: int) -> None:
        self._put_aside = put_aside
        self._room = room
        self._head_room = room // _HEAD
        self._tail_room = room - self._head_room
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self._breaks = 0
        self._ends_open = False
        self._file: int | None = None
        self._path: Path | None = None

    def add(self, text: str) -> None:
        """Add a chunk."""
        if not text:
            return
        data = text.encode("utf-8", "replace")
        self._total += len(data)
        self._breaks += data.count(b"\n")
        self._ends_open = not data.endswith(b"\n")
        self._write(data)
        room = self._head_room - len(self._head)
        self._head += data[:room]
        self._tail += data[room:][-self._tail_room :]
        if len(self._tail) > 2 * self._tail_room:
            del self._tail[: -self._tail_room]

    def close(self) -> None:
        """The output is complete."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def text(self) -> str:
        """All of it, or its beginning and end with a note about the gap."""
        if self._total <= self._room:
            return bytes(self._head + self._tail).decode("utf-8", "replace")
        head = _to_last_break(bytes(self._head))
        tail = _from_first_break(bytes(self._tail[-self._tail_room :]))
        note = f"[{self._missing(head, tail)} left out here{self._where(head)}]"
        return "\n".join((_decoded(head).removesuffix("\n"), note, _decoded(tail)))

    def _missing(self, head: bytes, tail: bytes) -> str:
        size = f"{self._total - len(head) - len(tail):,} of {plural(self._total, 'byte')}"
        lines = self._breaks + self._ends_open
        gone = lines - head.count(b"\n") - tail.count(b"\n") - self._ends_open
        return f"{gone:,} of {plural(lines, 'line')}, {size}," if gone > 0 else size

    def _where(self, head: bytes) -> str:
        if self._path is None:
            return ""
        kept = min(self._total, _ASIDE)
        amount = "all of it" if kept == self._total else f"its first {plural(kept, 'byte')}"
        line = head.count(b"\n") + 1
        return f"; {amount}: read path={shown_name(self._path)} offset={line}"

    def _write(self, data: bytes) -> None:
        """Write what does not fit in memory to a file, from the beginning on."""
        if self._total <= self._room or self._put_aside is None:
            return
        try:
            if self._file is None:
                self._file, self._path = self._put_aside()
                _write_whole(self._file, self._head + self._tail)
            room = _ASIDE - (self._total - len(data))
            if room > 0:
                _write_whole(self._file, data[:room])
        except OSError:  # the disk is full: what is shown must suffice
            self._put_aside = self._path = None


class Output:
    """The output of a command: shown live up to a limit, stored as a terminal would leave it."""

    def __init__(self, put_aside: PutAside, emit: Callable[[str], None], room: int = MOST) -> None:
        self._printed = Printed()
        self._kept = Kept(put_aside, room)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._emit = emit
        self._live = _LIVE

    def add(self, data: bytes) -> None:
        """Add a chunk."""
        self._show(data)
        self._kept.add(self._printed.feed(data))

    def close(self) -> None:
        """The output is complete."""
        self._kept.add(self._printed.close())
        self._kept.close()

    def text(self) -> str:
        """What the model gets of it."""
        return self._kept.text()

    def _show(self, data: bytes) -> None:
        """Show an unfinished line as well: the user may be waiting for it."""
        if self._live <= 0:
            return
        text = self._decoder.decode(data[: self._live])
        self._live -= len(data)
        if self._live <= 0:
            text += "\n[further output is not shown]\n"
        if text:
            self._emit(text)


def fitted(text: str, room: int, put_aside: PutAside | None = None) -> str:
    """The text, or as much of it as there is room for, and where the rest is."""
    if len(text) <= room and (text.isascii() or len(text.encode("utf-8", "replace")) <= room):
        return text
    kept = Kept(put_aside, room)
    for at in range(0, len(text), MOST):
        kept.add(text[at : at + MOST])
    kept.close()
    return kept.text()


def _write_whole(file: int, data: bytes | bytearray) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _to_last_break(data: bytes) -> bytes:
    at = data.rfind(b"\n")
    return data[: at + 1] if at > len(data) // 2 else data


def _from_first_break(data: bytes) -> bytes:
    at = data.find(b"\n")
    return data[at + 1 :] if 0 <= at < len(data) // 2 else data
