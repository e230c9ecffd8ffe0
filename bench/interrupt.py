"""From the key to the end of an answer: Esc at a fast terminal and over a line of 1 kB/s.

An endpoint sends 200 deltas a second, more than the slow line can show. Measured are how long
after Esc the endpoint sees the connection closed, how long until the terminal no longer says that
the model works, and, before that, how long letters take to be seen: on the slow line a
letter waits for what is on its way, so it matters when it is typed. The terminal shows what is
drawn in one step (synchronized output) in one step. mull waits 25 ms after an Esc byte because a
key may begin with it; a terminal with the kitty keyboard protocol saves that.
"""

from __future__ import annotations

import os
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tools.pictures.screen import TerminalScreen
from tools.pseudo_terminal import PseudoTerminal

from bench.report import QUICK, Figure
from mull.testing import Pause, Recorded, Reply, ScriptedServer

ROUNDS = 1 if QUICK else 4
LINES = {"a fast line": None, "a line of 1 kB/s": 1000}
SIZE = (100, 32)
_READY = "thinker · "
_WORKS = "Esc interrupts"
_LETTERS = "\u0101\u0103\u0105\u0107\u0109\u010b"[: 3 if QUICK else None]
_REST = 1 if QUICK else 2
"""Seconds in which what was started comes to rest."""
_APART = 0.63
"""Seconds between two letters: no multiple of what a redraw takes on the slow line."""


class Stop(NamedTuple):
    """Milliseconds until each letter is seen, the endpoint is left, and that is seen."""

    letters: list[float]
    left: float
    seen: float


def _reply(recorded: Recorded) -> Reply:
    if recorded.method == "GET":
        return Reply.json({"object": "list", "data": [{"id": "thinker"}]})
    said = [{"content": f"word{n} " if n % 12 else "\n\n"} for n in range(4000)]
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in said]
    return Reply.events(*(step for chunk in chunks for step in (chunk, Pause(0.005))))


def stop(home: Path, rate: int | None) -> Stop:
    """Ask, type letters, press Esc."""
    screen = TerminalScreen(*SIZE)
    looks = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
    program = str(Path(sys.executable).with_name("mull"))
    with ScriptedServer(_reply) as server:
        terminal = PseudoTerminal(
            [program, "-m", "openai-compatible/thinker", "--base-url", f"{server.url}/v1"],
            environment={"PATH": os.environ["PATH"], "HOME": str(home), **looks},
            folder=home,
            size=SIZE,
            seen=screen.feed,
            cursor=screen.cursor,
            rate=rate,
        )
        with terminal:
            terminal.read_until(lambda _: _READY in screen.text)
            terminal.rest(_REST)
            terminal.press("go\r")
            terminal.read_until(lambda _: _WORKS in screen.text)
            terminal.rest(2 * _REST)
            letters = []
            for letter in _LETTERS:
                letters.append(_seen(terminal, letter, lambda one=letter: one in screen.text))
                terminal.rest(_APART)
            asked = next(one for one in server.requests if one.method == "POST")
            ended: list[float] = []
            watch = threading.Thread(
                target=lambda: ended.append(time.perf_counter() if asked.wait_left() else 0.0)
            )
            watch.start()
            began = time.perf_counter()
            seen = _seen(terminal, "\x1b", lambda: _is_idle(screen))
            watch.join()
    return Stop(letters, (ended[0] - began) * 1e3, seen)


def _is_idle(screen: TerminalScreen) -> bool:
    return not screen.is_drawing and _WORKS not in screen.text and _READY in screen.text


def _seen(terminal: PseudoTerminal, key: str, reached: Callable[[], bool]) -> float:
    pressed = time.perf_counter()
    terminal.press(key)
    terminal.read_until(lambda _: reached())
    return (time.perf_counter() - pressed) * 1e3


def run() -> list[Figure]:
    """Both lines in every round."""
    taken: dict[str, list[Stop]] = {name: [] for name in LINES}
    with TemporaryDirectory() as home:
        for _ in range(ROUNDS):
            for name, rate in LINES.items():
                taken[name].append(stop(Path(home), rate))
    figures = []
    for name, stops in taken.items():
        times = {
            "a letter is seen": [letter for one in stops for letter in one.letters],
            "Esc until the endpoint is left": [one.left for one in stops],
            "Esc until that is seen": [one.seen for one in stops],
        }
        for part, each in times.items():
            figures.append(Figure(f"{part}, {name}", statistics.median(each), "ms"))
            if len(each) > 1:
                figures.append(Figure(f"{part}, {name}, longest", max(each), "ms"))
    return figures
