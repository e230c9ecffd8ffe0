"""Reads lines beside an event loop, from a terminal, a pipe or a file alike.

The file is read in a thread that is never joined: a program that ends must not hang until another
line is typed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any

__all__ = ["LineReader", "unechoed"]

_PIECE = 65536


class LineReader:
    """The lines of an open file, one at a time."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._read = b""
        self._aside = b""
        self._ended = False
        self._closed = asyncio.Event()
        self._coming: asyncio.Future[bytes] | None = None

    async def read(self) -> str | None:
        """The next line without its end; None at the end of input, or when it is no longer
        wanted.
        """
        while b"\n" not in self._read and not self._ended:
            piece = await self._piece()
            if piece is None:
                return None
            self._read += piece
            self._ended = not piece
        if not self._read:
            return None
        line, _, self._read = self._read.partition(b"\n")
        return line.decode(errors="replace").removesuffix("\r")

    def set_aside(self) -> None:
        """Keep the lines typed so far for later, and drop the one that is being typed: none of
        them answers what is asked next.
        """
        import select
        import termios

        if self._coming is not None and self._coming.done():
            self._read, self._coming = self._read + self._coming.result(), None
        while self._coming is None and select.select([self._file], [], [], 0)[0]:
            if not (piece := os.read(self._file, _PIECE)):
                self._ended = True
                break
            self._read += piece
        with suppress(termios.error):
            termios.tcflush(self._file, termios.TCIFLUSH)
        self._aside, self._read = self._aside + self._read, b""

    def bring_back(self) -> None:
        """Read the kept lines next."""
        self._read, self._aside = self._aside + self._read, b""

    def close(self) -> None:
        """Release a waiting reader without a line."""
        self._closed.set()

    async def _piece(self) -> bytes | None:
        if self._coming is None:  # one that was requested and abandoned is still to come
            self._coming = asyncio.get_running_loop().create_future()
            Thread(target=self._fetch, args=(self._coming,), daemon=True).start()
        closed = asyncio.ensure_future(self._closed.wait())
        try:
            either: set[asyncio.Future[Any]] = {self._coming, closed}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            closed.cancel()
        if self._closed.is_set():
            return None
        piece, self._coming = self._coming.result(), None
        return piece

    def _fetch(self, coming: asyncio.Future[bytes]) -> None:
        try:
            piece = os.read(self._file, _PIECE)
        except OSError:  # the terminal is gone
            piece = b""
        with suppress(RuntimeError):  # the loop has ended meanwhile
            coming.get_loop().call_soon_threadsafe(coming.set_result, piece)


@contextmanager
def unechoed(terminal: int) -> Iterator[None]:
    """A terminal that does not echo input."""
    import termios

    before = termios.tcgetattr(terminal)
    hidden = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
    termios.tcsetattr(terminal, termios.TCSADRAIN, hidden)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
