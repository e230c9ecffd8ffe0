"""Cold start: fresh interpreters, interleaved, compiled files warm."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.report import Figure, median_ratio

ROUNDS = 25
_ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
"""Compiled files are kept, as everywhere else; the first run of each case writes them."""
MULL = str(Path(sys.executable).with_name("mull"))
_SAID = "from mull import Conversation, user; from mull.history.log import Entry; import asyncio"
_KEPT = f"""{_SAID}
from mull.store.sessions.sqlite import open_sessions
store = open_sessions()
store.append(store.create(folder="/bench", model="m").id, 0, Entry(user("hello")))"""
CASES = {
    "python": [sys.executable, "-c", "pass"],
    "msgspec": [sys.executable, "-c", "import msgspec"],
    "import mull": [sys.executable, "-c", "import mull"],
    "from mull import Message": [sys.executable, "-c", "from mull import Message"],
    "from mull import prepare": [sys.executable, "-c", "from mull import prepare"],
    "what a question needs": [sys.executable, "-c", _SAID],
    "... and its first message on disk in a new session": [sys.executable, "-c", _KEPT],
    "mull --version": [MULL, "--version"],
    "mull models show claude-sonnet-4-5": [MULL, "models", "show", "claude-sonnet-4-5"],
}
COMPARED = {
    "import mull": ("msgspec", "≤ 1.5"),
    "from mull import Message": ("msgspec", ""),
    "from mull import prepare": ("msgspec", ""),
    "... and its first message on disk in a new session": ("what a question needs", ""),
    "mull --version": ("python", "≤ 2"),
    "mull models show claude-sonnet-4-5": ("python", ""),
}


def cpu_ms(command: list[str], home: str) -> float:
    """User and system time of one run; steadier than the clock on a busy machine."""
    environment = {**_ENVIRONMENT, "MULL_DATA_DIR": home}
    before = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed after {time.perf_counter() - before:.1f} s")
    return (usage.ru_utime + usage.ru_stime) * 1e3


def run() -> list[Figure]:
    """CPU time of each case, and its ratio to the case it is compared with."""
    times: dict[str, list[float]] = {name: [] for name in CASES}
    with TemporaryDirectory() as home:
        for command in CASES.values():
            cpu_ms(command, home)
        for _ in range(ROUNDS):
            for name, command in CASES.items():
                times[name].append(cpu_ms(command, home))
    figures = []
    for name, values in times.items():
        base, target = COMPARED.get(name, ("", ""))
        ratio = median_ratio(values, times[base]) if base else None
        figures.append(Figure(name, statistics.median(values), "ms CPU", base, ratio, target))
    return figures
