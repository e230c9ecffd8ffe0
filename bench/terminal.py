"""Terminal assistants at work, in pseudo-terminals against one scripted endpoint, interleaved.

Measured are how long a pressed key takes to be seen while an answer streams in (200 deltas a
second; 60 keys in each of three rounds), and the CPU that an answer takes (2,000 deltas a second,
half of them thinking): of the process and of those it starts, less what it takes when nothing
happens. All have their tools on, telemetry and update checks off, and show thinking as they do
unless told otherwise. mull and kimi-cli run on the same Python and write into the scrollback;
mistral-vibe has the whole screen, and is a compiled program that Python only starts. The limit is a
program of 60 lines that has a prompt, decodes JSON and writes what comes: no style, no wrapping, no
history.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tools.pseudo_terminal import PseudoTerminal, Timeout

from bench.assistants import Assistant, assistants, limit
from bench.helper import endpoint
from bench.peers import leave_out, say
from bench.report import QUICK, Figure, median_ratio

ROUNDS = 1 if QUICK else 3
KEYS = 10 if QUICK else 60
TYPED = "say:700x4@200" if QUICK else "say:2600x4@200"
"""Somewhat faster than most models, for as long as keys are pressed."""
STREAMS = {2_000: "say:2000x4@2000"} if QUICK else {5_000: "say:5000x4@2000"}
LONG = 20_000 if QUICK else 200_000
PATIENCE = 120.0
_TICKS = os.sysconf("SC_CLK_TCK")
_SETTLED = 0.4
"""Seconds after the last word in which what was put off is drawn."""


class Drawn(NamedTuple):
    """What an answer took: CPU milliseconds per 1,000 deltas, and seconds until its last word."""

    cpu: float
    seconds: float


class Sitting:
    """One assistant, started and at its prompt."""

    def __init__(self, one: Assistant, home: Path) -> None:
        folder = home / one.name / "work"
        folder.mkdir(parents=True, exist_ok=True)
        looks = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
        around = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), **looks}
        environment = {**around, **one.environment}
        self._one = one
        self.terminal = PseudoTerminal(one.command, environment=environment, folder=folder)
        try:
            self.wait_for(one.prompt)
        except BaseException:
            self.end()
            raise

    def wait_for(self, shown: re.Pattern[bytes]) -> None:
        """Read until this is written.

        Raises:
            Timeout: it never is.
        """
        tail, until = b"", time.perf_counter() + PATIENCE
        while not shown.search(tail):
            if time.perf_counter() > until:
                raise Timeout(f"{self._one.name} never shows {shown.pattern!r}: {tail[-200:]!r}")
            tail = tail[-200:] + self.terminal.read(1)

    def ask(self, text: str) -> None:
        """Type a question, and send it."""
        self.terminal.press(text)
        self.terminal.rest(0.5)
        self.terminal.press("\r")

    def cpu(self) -> float:
        """CPU seconds of this process and all that it has started."""
        return sum(_cpu(pid) for pid in _family(self.terminal.pid))

    def end(self) -> float:
        """End it, and what it has started; CPU milliseconds that all of them took."""
        others = _family(self.terminal.pid)[1:]
        spent = sum(_cpu(pid) for pid in others)
        for pid in others:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        usage = self.terminal.kill()
        return (spent + usage.ru_utime + usage.ru_stime) * 1e3

    def __enter__(self) -> Sitting:
        self.terminal.rest(self._one.settle)
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def _family(pid: int) -> list[int]:
    """A process, its children and theirs."""
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += map(int, task.read_text().split())
    return found


def _cpu(pid: int) -> float:
    """CPU seconds of a process, and of children that have ended."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / _TICKS
    return 0.0


def keystrokes(one: Assistant, home: Path) -> list[float]:
    """Milliseconds until each key is seen; nothing for those that are not within two seconds."""
    seen = []
    with Sitting(one, home) as sitting:
        sitting.ask(TYPED)
        sitting.terminal.rest(1.5)
        for number in range(KEYS):
            key = chr(0x100 + number)  # a letter that the answer does not have
            pressed = time.perf_counter()
            sitting.terminal.press(key)
            tail = b""
            while key.encode() not in tail and time.perf_counter() < pressed + 2:
                tail = tail[-8:] + sitting.terminal.read(0.5)
            if key.encode() in tail:
                seen.append((time.perf_counter() - pressed) * 1e3)
            sitting.terminal.rest(0.07 + number % 7 * 0.011)
    return seen


def draw(one: Assistant, home: Path, wish: str) -> Drawn:
    """What one answer takes."""
    count = int(re.findall(r"\d+", wish)[0])
    with Sitting(one, home) as sitting:
        sitting.terminal.rest(1)
        before = sitting.cpu()
        sitting.terminal.rest(2)
        idle = (sitting.cpu() - before) / 2
        sitting.ask(wish)
        began, before = time.perf_counter(), sitting.cpu()
        sitting.wait_for(one.done)
        seconds = time.perf_counter() - began
        sitting.terminal.rest(_SETTLED)
        spent = sitting.cpu() - before - idle * (seconds + _SETTLED)
    return Drawn(spent * 1e6 / count, seconds)


@contextlib.contextmanager
def speaker() -> Iterator[str]:
    """The base URL of the endpoint, which runs meanwhile."""
    with endpoint("bench.speaker") as address:
        yield f"{address}/v1"


def _latencies(people: list[Assistant], home: Path) -> list[Figure]:
    seen: dict[str, list[float]] = {one.name: [] for one in people}
    for _ in range(ROUNDS):
        for one in people:
            seen[one.name] += keystrokes(one, home)
    figures = []
    for share, word in ((0.5, "median"), (0.95, "95th percentile")):
        values = {name: [_quantile(times, share)] for name, times in seen.items() if times}
        figures += _compared(f"a key is seen, {word}", values, "ms")
    lost = {name: ROUNDS * KEYS - len(times) for name, times in seen.items()}
    for name in (name for name, count in lost.items() if count):
        say(f"{name}: {lost[name]} of {ROUNDS * KEYS} keys were not seen within two seconds")
    return figures


def _quantile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def _drawings(people: list[Assistant], home: Path) -> list[Figure]:
    figures = []
    for count, wish in STREAMS.items():
        taken: dict[str, list[Drawn]] = {one.name: [] for one in people}
        for _ in range(ROUNDS):
            for one in people:
                taken[one.name].append(draw(one, home, wish))
        cpu = {name: [one.cpu for one in drawn] for name, drawn in taken.items()}
        figures += _compared(f"{count:,} deltas", cpu, "ms CPU per 1,000")
        seconds = {name: [one.seconds for one in drawn] for name, drawn in taken.items()}
        figures += _compared(f"{count:,} deltas, until the last is drawn", seconds, "s")
    first, ours = people[0], next(one for one in people if one.name == "mull")
    wish = f"say:{LONG}x1@0"
    drawn = [(draw(first, home, wish).cpu, draw(ours, home, wish).cpu) for _ in range(ROUNDS)]
    values = {"limit": [one for one, _ in drawn], "mull": [one for _, one in drawn]}
    return [*figures, *_compared(f"{LONG:,} deltas of one character", values, "ms CPU per 1,000")]


def _compared(what: str, values: dict[str, list[float]], unit: str) -> list[Figure]:
    """mull against the limit, the others against mull."""
    figures = []
    for name, times in values.items():
        base = {"limit": None, "mull": "limit"}.get(name, "mull")
        ratio = median_ratio(times, values[base]) if base in values else None
        middle = statistics.median(times)
        figures.append(Figure(f"{what}: {name}", middle, unit, base or "", ratio))
    return figures


def run() -> list[Figure]:
    """Typing and drawing; everyone in every round."""
    with speaker() as url, TemporaryDirectory() as folder:
        home = Path(folder)
        people = [limit(url), *_able(list(assistants(url, home)), home)]
        parts = (_latencies, _drawings)
        return [figure for part in parts for figure in part(people, home)]


def _able(people: list[Assistant], home: Path) -> list[Assistant]:
    """Those who draw a short answer here."""
    able = []
    for one in people:
        try:
            draw(one, home, "say:100x4@100")
        except Timeout as error:
            leave_out(one.name, str(error))
        else:
            able.append(one)
    return able
