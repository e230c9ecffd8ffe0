"""The keyboard of a terminal that mull uses exclusively, and restores afterwards.

When mull takes the terminal it requests unambiguous keys, and when it lends it (to an editor, or to
the shell after Ctrl-Z) or ends for any reason, it undoes that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TextIO

from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.output import Output

from mull.tui.instant.prompt import Piece
from mull.tui.screen.key_bytes import KeyDecoder

__all__ = ["ESC_WAITS", "Keyboard"]

ESC_WAITS = 0.025
"""Seconds within which the rest of a sequence must follow an ESC byte; otherwise it is the key
Esc.
"""
_ASK = "\x1b[?u"
"""Asks whether the kitty keyboard protocol is supported; other terminals ignore the question."""
_PUSH, _POP = "\x1b[>5u", "\x1b[<u"
"""Disambiguated keys (1), with their position on the keyboard (4), so that Ctrl-C is found in any
script.
"""
_OTHER_KEYS, _USUAL_KEYS = "\x1b[>4;1m", "\x1b[>4m"
"""xterm's protocol, which tmux supports too; some terminals would take it for a colour."""


class _Keys(Vt100Input):
    """Keys of a terminal that is in the right mode already; `speaks` is told of its protocol."""

    def __init__(self, stdin: TextIO, speaks: Callable[[], None] = lambda: None) -> None:
        super().__init__(stdin)
        decoder = KeyDecoder(self._buffer_key, speaks)
        self._decoder = decoder
        self.vt100_parser: Vt100Parser | KeyDecoder = decoder  # type: ignore[assignment]

    def _buffer_key(self, key: object) -> None:
        self._buffer.append(key)  # type: ignore[arg-type]


class Keyboard(_Keys):
    """Keys of a terminal. `lent` is called before somebody else gets it, and at the end."""

    def __init__(
        self,
        stdin: TextIO,
        screen: Output,
        *,
        environ: Mapping[str, str] = os.environ,
        lent: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(stdin, self._spoken)
        self._screen = screen
        self._lent = lent
        self._is_ours = False
        self._is_shared = False
        # the Linux console takes the query for a cursor movement
        self._asked, self._speaks = environ.get("TERM") == "linux", False
        self._in_xterm = any(environ.get(name) for name in ("TMUX", "XTERM_VERSION"))

    @property
    def is_waiting(self) -> bool:
        """Whether the last input may be the beginning of something longer."""
        return self._decoder.is_waiting

    def replay(self, pieces: Sequence[Piece]) -> None:
        """Process input that was read before, as if it came now with the same pauses."""
        last = 0.0
        for at, piece in pieces:
            if at - last > ESC_WAITS:
                self._decoder.flush()
            last = at
            self._decoder.feed(self.stdin_reader._stdin_decoder.decode(piece))
        keys, self._buffer = self._buffer, []
        store_typeahead(self, keys)

    def raw_mode(self) -> AbstractContextManager[None]:
        """Take the terminal."""
        return self._taking(super().raw_mode())

    def cooked_mode(self) -> AbstractContextManager[None]:
        """Lend the terminal to another program."""
        return nullcontext() if self._is_shared else self._lending(super().cooked_mode())

    @contextmanager
    def shared(self) -> Iterator[Vt100Input]:
        """The same keys for another part of mull. The terminal stays as it is meanwhile: a key
        pressed just before would be echoed. They are decoded apart: half a sequence must not end
        up here.
        """
        self._is_shared = True
        try:
            yield _Keys(self.stdin)
        finally:
            self._is_shared = False

    def _spoken(self) -> None:
        if not self._speaks:
            self._speaks = True
            if self._is_ours:
                self._write(_PUSH)

    @contextmanager
    def _taking(self, raw: AbstractContextManager[None]) -> Iterator[None]:
        with raw:
            self._take()
            try:
                yield
            finally:
                self._lend()

    @contextmanager
    def _lending(self, cooked: AbstractContextManager[None]) -> Iterator[None]:
        self._lend()
        try:
            with cooked:
                yield
        finally:
            self._take()

    def _take(self) -> None:
        self._is_ours = True
        keys = _PUSH if self._speaks else "" if self._asked else _ASK
        self._asked = True
        self._write(keys + (_OTHER_KEYS if self._in_xterm else ""))

    def _lend(self) -> None:
        self._is_ours = False
        self._lent()
        keys = _POP if self._speaks else ""
        self._write(keys + (_USUAL_KEYS if self._in_xterm else ""))

    def _write(self, text: str) -> None:
        self._screen.write_raw(text)
        self._screen.flush()
