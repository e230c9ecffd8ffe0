"""A terminal for tests: runs the real program in a pseudo-terminal, with a screen that can be read.

It answers what programs ask of terminals, as a dark one, a light one, or one that says nothing.
Waiting reads what comes until the screen is as wanted; nothing sleeps. What a program draws in one
step (mode 2026) is seen in one step, so no test reads a screen that is half drawn.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping

import pyte

PATIENCE = 30
_MOST = 1 << 16
"""Bytes that are taken in before anybody looks."""
_STEP = 2026 << 5
"""How pyte names the mode of a screen that is being drawn."""
MULL = (sys.executable, "-m", "mull")
# a terminal that answers may take its time where everything does
_PATIENT = f"""
import sys
from mull.agent import discover
from mull.tui.screen import terminal
terminal.PATIENCE = discover._PATIENCE = {PATIENCE}
from mull.cli.main import main
sys.exit(main())
"""
DARK, LIGHT = "1e1e/1e1e/2e2e", "ffff/fafa/f0f0"
_LAUNCH = """
import fcntl, os, sys, termios
os.setsid()
terminal = os.open(sys.argv[1], os.O_RDWR)
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
for place in (0, 1, 2):
    os.dup2(terminal, place)
os.execv(sys.argv[2], sys.argv[2:])
"""
_KEYS = {
    "enter": "\r",
    "esc": "\x1b",
    "tab": "\t",
    "s-tab": "\x1b[Z",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "backspace": "\x7f",
    "alt-enter": "\x1b\r",
}
_QUESTION = re.compile(rb"\x1b\[6n|\x1b\[c|\x1b\]11;\?(?:\x1b\\|\x07)")
_WORKING = re.compile(r"· Esc interrupts$|Thinking…", re.MULTILINE)
_UNSET = ("NO_COLOR", "FORCE_COLOR", "TMUX", "STY", "COLORFGBG", "EDITOR", "VISUAL", "DEBUG")


class Terminal:
    """A running program and what its terminal shows."""

    def __init__(
        self,
        *words: str,
        columns: int = 90,
        rows: int = 30,
        background: str | None = DARK,
        silent: bool = False,
        env: Mapping[str, str] | None = None,
        program: tuple[str, ...] | None = None,
    ) -> None:
        self.raw = b""
        self.answers_cursor = True
        self._background = background
        self._drawn = -1
        self._rows: list[str] = []
        self._gone: list[str] = []
        self._silent = silent
        self._unanswered = 0
        patient = (sys.executable, "-c", _PATIENT)
        program = program or (MULL if silent else patient)
        self._screen = _Screen(columns, rows, history=100_000, ratio=0.5)
        self._stream = pyte.ByteStream(self._screen)
        self._master, self._slave = pty.openpty()
        self._before = termios.tcgetattr(self._slave)
        self._set_size(columns, rows)
        around = {name: value for name, value in os.environ.items() if name not in _UNSET}
        around |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8"}
        self.process = subprocess.Popen(
            [sys.executable, "-ISc", _LAUNCH, os.ttyname(self._slave), *program, *words],
            env={**around, **(env or {})},
        )

    # What is seen

    @property
    def screen(self) -> list[str]:
        """The rows of the screen, without blanks at their ends."""
        self._read(0)
        if self._drawn != len(self.raw):
            self._drawn = len(self.raw)
            self._rows = [line.rstrip() for line in self._screen.display]
        return list(self._rows)

    @property
    def text(self) -> str:
        """The screen as one text, without empty rows at its end."""
        return "\n".join(self.screen).rstrip("\n")

    @property
    def history(self) -> list[str]:
        """The rows that have gone up from the screen."""
        self._read(0)
        gone = self._screen.history.top
        for at in range(len(self._gone), len(gone)):
            cells = gone[at]
            self._gone.append("".join(cells[x].data for x in range(len(cells))).rstrip())
        return list(self._gone)

    @property
    def everything(self) -> str:
        """The scrollback and the screen."""
        return "\n".join([*self.history, *self.screen])

    @property
    def cursor(self) -> tuple[int, int]:
        """The row and the column of the cursor."""
        return self._screen.cursor.y, self._screen.cursor.x

    def cell(self, words: str) -> pyte.screens.Char:
        """The cell where these words begin, in the last row that has them."""
        for row in reversed(range(self._screen.lines)):
            line = self._screen.display[row]
            if words in line:
                cells = self._screen.buffer[row]
                return _cells_before(cells, line.index(words))
        raise AssertionError(f"{words!r} is not on the screen:\n{self.text}")

    def wait_for(
        self,
        wanted: str | re.Pattern[str] | Callable[[Terminal], object],
        timeout: float = PATIENCE,
    ) -> None:
        """Read until the screen holds this text, or the condition is true."""
        until = time.monotonic() + timeout
        while not self._holds(wanted):
            assert time.monotonic() < until, f"{wanted!r} did not come:\n{self.everything}"
            alive = self.process.poll() is None
            if not self._read(0.5) and not alive and not self._holds(wanted):
                raise AssertionError(f"ended without {wanted!r}:\n{self.everything}")

    def wait_gone(self, words: str) -> None:
        """Read until these words are not on the screen any more."""
        self.wait_for(lambda terminal: words not in terminal.text)

    def wait_idle(self) -> None:
        """Read until the model works no more."""
        self.wait_for(lambda terminal: not _WORKING.search(terminal.text))

    # What is done

    def type(self, text: str) -> None:
        """Type text; a newline is no key, press enter."""
        os.write(self._master, text.encode())

    def press(self, *keys: str) -> None:
        """Press keys: `enter`, `esc`, `c-t`."""
        for key in keys:
            known = _KEYS.get(key)
            self.type(known if known is not None else chr(ord(key.removeprefix("c-")) & 0x1F))

    def say(self, text: str) -> None:
        """Type a line and send it, once it stands there."""
        self.type(text)
        self.wait_for(lambda terminal: text[-20:] in terminal.text)
        self.press("enter")

    def choose(self, row: int) -> None:
        """Answer a question with the row of this number, once the list is there."""
        self.wait_for(re.compile(r"^❯ \d\. ", re.MULTILINE))
        self.type(str(row))
        self.wait_for(f"❯ {row}. ")
        self.press("enter")

    def paste(self, text: str) -> None:
        """Put text in as a terminal does that tells pasting from typing."""
        self.type(f"\x1b[200~{text}\x1b[201~")

    def scribble(self, text: str) -> None:
        """Write as another program on the same terminal does."""
        os.write(self._slave, text.encode())

    def resize(self, columns: int, rows: int) -> None:
        """Change the window, as a window manager would."""
        self._read(0)
        self._drawn = -1
        self._screen.resize(rows, columns)
        self._set_size(columns, rows)
        self.process.send_signal(signal.SIGWINCH)

    def end(self) -> int:
        """The exit status, once all is read."""
        until = time.monotonic() + PATIENCE
        while self.process.poll() is None or self._read(0):
            assert time.monotonic() < until, f"it does not end:\n{self.everything}"
            self._read(0.2)
        return self.process.returncode

    def is_restored(self) -> bool:
        """Whether the terminal's own mode is as it was."""
        return termios.tcgetattr(self._slave) == self._before

    def close(self) -> None:
        """End the program, however it is."""
        self.process.kill()
        self.process.wait()
        os.close(self._master)
        os.close(self._slave)

    def _holds(self, wanted: str | re.Pattern[str] | Callable[[Terminal], object]) -> bool:
        if isinstance(wanted, str):
            return wanted in self.text
        if isinstance(wanted, re.Pattern):
            return wanted.search(self.text) is not None
        return bool(wanted(self))

    def _read(self, patience: float) -> bool:
        """Take in what has come, waiting for it at most so long; and the rest of a drawing."""
        came = self._take(patience)
        until = time.monotonic() + PATIENCE
        while _STEP in self._screen.mode and self.process.poll() is None:
            assert time.monotonic() < until, f"a drawing does not end:\n{self._screen.display}"
            self._take(0.5)
        return came

    def _take(self, patience: float) -> bool:
        piece = b""
        while len(piece) < _MOST and select.select([self._master], [], [], patience)[0]:
            piece += os.read(self._master, _MOST)
            patience = 0
        self.raw += piece
        self._answer()
        self._stream.feed(piece)
        return bool(piece)

    def _answer(self) -> None:
        """Say what is asked, once all of a question is there."""
        while not self._silent and (asked := _QUESTION.search(self.raw, self._unanswered)):
            self._unanswered = asked.end()
            if asked.group() == b"\x1b[c":
                self.type("\x1b[?62;22c")
            elif asked.group() == b"\x1b[6n":
                if self.answers_cursor:
                    self.type("\x1b[1;1R")
            elif self._background is not None:
                self.type(f"\x1b]11;rgb:{self._background}\x1b\\")

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class _Screen(pyte.HistoryScreen):
    """A screen with an alternate one, whose rows go up into the scrollback when it is made lower.

    As in xterm, rows below the cursor go first, and lines are cut off where it is made narrower.
    """

    _main: tuple[object, ...] | None = None

    def set_mode(self, *modes: int, **how: bool) -> None:
        if how.get("private") and 1049 in modes and self._main is None:
            self._main = (self.buffer, self.cursor.x, self.cursor.y)
            self.buffer = type(self.buffer)(
                lambda: pyte.screens.StaticDefaultDict(self.default_char)
            )
        super().set_mode(*modes, **how)

    def reset_mode(self, *modes: int, **how: bool) -> None:
        if how.get("private") and 1049 in modes and self._main is not None:
            (self.buffer, self.cursor.x, self.cursor.y), self._main = self._main, None
            self.dirty.update(range(self.lines))
        super().reset_mode(*modes, **how)

    def index(self) -> None:
        if self._main is None:
            super().index()
        else:  # what scrolls on the alternate screen is gone
            pyte.Screen.index(self)

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        lines, columns = lines or self.lines, columns or self.columns
        for _ in range(self.cursor.y + 1 - lines):
            self.history.top.append(self.buffer[0])
            for row in range(self.lines - 1):
                self.buffer[row] = self.buffer[row + 1]
            self.buffer.pop(self.lines - 1, None)
            self.cursor.y -= 1
        for row in range(lines, self.lines):
            self.buffer.pop(row, None)
        self.lines = lines
        super().resize(lines, columns)


def _cells_before(cells: Mapping[int, pyte.screens.Char], characters: int) -> pyte.screens.Char:
    """The cell of the character of this number: wide ones have an empty cell behind them."""
    column = 0
    while characters > 0 or not cells[column].data:
        characters -= len(cells[column].data)
        column += 1
    return cells[column]
