"""A page of search results, read from what ripgrep prints."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable

__all__ = ["LONGEST_LINE", "Matches"]

LONGEST_LINE = 500
_MOST_CHARACTERS = 60_000
_MOST_WORDS = 1000
_ROW = re.compile(rb"(\d+)([:-])(.*)", re.DOTALL)


class Matches:
    """Takes bytes as they come and says when it has enough.

    `accept` gives the name to show for a path, or None if nothing of that file is wanted.
    """

    def __init__(
        self, limit: int, offset: int, context: int, accept: Callable[[str], str | None]
    ) -> None:
        self.is_full = False
        self._last_wanted = offset + limit
        self._offset = offset
        self._accept = accept
        self._count = 0
        self._rows: list[str] = []
        self._size = 0
        self._waiting: deque[tuple[int, str]] = deque(maxlen=context)
        self._has_context = context > 0
        self._file: tuple[bytes, str | None] = (b"", None)
        self._shown_file: str | None = None
        self._shown_line = 0
        self._rest = b""
        self._words = b""
        self._note = ""

    def take(self, data: bytes) -> bool:
        """Read on; False when the page is full."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            name, zero, row = line.partition(b"\0")
            if zero:
                self._take_row(name, row)
            elif line == b"--":
                self._waiting.clear()
            else:
                self._words = (self._words + line + b"\n")[:_MOST_WORDS]
            if self.is_full:
                return False
        return True

    def stop(self, note: str) -> None:
        """Nothing more will come, and why."""
        self._note = note

    def complaint(self) -> str | None:
        """What was said instead of results; None if there are results."""
        if self._count:
            return None
        said = self._words.decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(said) if line.strip()), "it cannot be read")

    def text(self) -> str:
        """The page."""
        note = self._note
        if self.is_full:
            note = f"there are more matches: read on with offset={self._count - 1}"
        elif not self._rows and not note:
            note = f"no more than {self._count} matches" if self._count else "no matches"
        return "\n".join([*self._rows, *([f"[{note}]"] if note else [])])

    def _take_row(self, name: bytes, row: bytes) -> None:
        found = _ROW.match(row)
        shown_as = self._name(name)
        if found is None or shown_as is None:
            return
        number, line = int(found[1]), found[3].decode("utf-8", "replace").removesuffix("\r")
        text = line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} […]"
        if found[2] == b"-":
            self._take_neighbour(shown_as, number, text)
            return
        self._count += 1
        if self._count > self._last_wanted or self._size > _MOST_CHARACTERS:
            self.is_full = True
        elif self._count > self._offset:
            for earlier, neighbour in self._waiting:
                self._show(shown_as, earlier, "-", neighbour)
            self._show(shown_as, number, ":", text)
        self._waiting.clear()

    def _take_neighbour(self, name: str, number: int, text: str) -> None:
        if name == self._shown_file and number == self._shown_line + 1:
            self._show(name, number, "-", text)
        else:
            self._waiting.append((number, text))

    def _name(self, raw: bytes) -> str | None:
        if raw != self._file[0]:
            path = raw.decode("utf-8", "replace").removeprefix("./")
            self._file = (raw, self._accept(path))
            self._waiting.clear()
        return self._file[1]

    def _show(self, name: str, number: int, sign: str, text: str) -> None:
        if name != self._shown_file:
            self._rows += [*([""] if self._rows else []), name]
        elif self._has_context and number != self._shown_line + 1:
            self._rows.append("--")
        self._rows.append(f"{number}{sign} {text}")
        self._shown_file, self._shown_line = name, number
        self._size += len(self._rows[-1])
