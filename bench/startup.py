"""Cold start: fresh processes, interleaved, compiled files warm, beside Python that does nothing.

Measured are CPU time (user and system) and time on the clock: importing, `mull --version` and `mull
--help`, `mull ask` until the first byte of its request is on the wire and to its end (asked,
answered over loopback, stored), and `mull` until its prompt is usable: drawn in a pseudo-terminal,
and a letter that is typed then is seen; and once more until the whole editor shows it, because the
first prompt is a small one that hands over what was typed. What is not run to its end is killed at
that moment, so its CPU time ends there. Targets are of CPU time, which is steadier than the clock.
`import mull` is lazy: a name is loaded when it is first used, as by `from mull import
Conversation`. Instructions are counted by valgrind, where it is installed: they do not depend on
what else the machine does. Libraries and assistants beside mull have an environment of their own,
assistants the newer Python that they want; the limit of the prompt is a program of 60 lines without
style or history.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bench.assistants import Assistant, assistants, limit, ours
from bench.peers import leave_out, peer_python
from bench.report import QUICK, Figure, median_ratio
from bench.terminal import PATIENCE, Sitting, Timeout, speaker
from mull.testing.server import Reply, ScriptedServer

ROUNDS = 5 if QUICK else 11
MULL = str(Path(sys.executable).with_name("mull"))
PYTHON = "python"
_ANSWER = Reply.events(
    {"choices": [{"index": 0, "delta": {"reasoning_content": "hm"}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {"content": "hello"}, "finish_reason": "stop"}]},
    "[DONE]",
)
_LETTER = "\u0101"
"""One that no assistant writes by itself."""
_EDITOR = re.compile(rb"\x1b\[\?u")
"""What mull's editor asks the terminal when it takes over from the first prompt."""
_INSTRUCTIONS = re.compile(r"I\s+refs:\s+([\d,]+)")


class Spent(NamedTuple):
    """Milliseconds on the clock and of the CPU."""

    wall: float
    cpu: float


class Case(NamedTuple):
    """Something that is started; `against` is what it is compared with."""

    start: Callable[[], Spent]
    against: str = PYTHON
    target: str = ""
    command: list[str] | None = None
    """What valgrind counts."""


def _commands() -> dict[str, tuple[list[str], str, str]]:
    """What is run to its end: the command, what it is compared with, and the target."""
    found = {
        PYTHON: ([sys.executable, "-c", "pass"], "", ""),
        "import msgspec": ([sys.executable, "-c", "import msgspec"], PYTHON, ""),
        "import mull": ([sys.executable, "-c", "import mull"], "import msgspec", "≤ 1.5"),
        "from mull import Conversation": (
            [sys.executable, "-c", "from mull import Conversation"],
            PYTHON,
            "",
        ),
        "mull --version": ([MULL, "--version"], PYTHON, "≤ 2"),
        "mull --help": ([MULL, "--help"], PYTHON, ""),
    }
    for name, code in () if QUICK else _PEERS:
        python = peer_python(name)
        if python is not None:
            found[f"{name}: {code}"] = ([python, "-c", code], "from mull import Conversation", "")
    python = None if QUICK else peer_python("llm")
    if python is not None:
        program = str(Path(python).with_name("llm"))
        found["llm --version"] = ([program, "--version"], "mull --version", "")
        found["llm --help"] = ([program, "--help"], "mull --help", "")
    return found


_PEERS = (
    ("openai", "from openai import OpenAI"),
    ("litellm", "from litellm import completion"),
    ("pydantic-ai", "from pydantic_ai import Agent"),
    ("langchain", "from langchain_openai import ChatOpenAI"),
)


def ended(command: list[str], environment: Mapping[str, str]) -> Spent:
    """A command that is run to its end."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment
    )
    cpu = _cpu_ms(process)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed with status {process.returncode}")
    return Spent((time.perf_counter() - began) * 1e3, cpu)


def until_asked(listening: socket.socket, environment: Mapping[str, str]) -> Spent:
    """`mull ask` until the first byte of its request is here."""
    host, port = listening.getsockname()
    command = _asking(f"http://{host}:{port}/v1")
    began = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment)
    client, _ = listening.accept()
    with client:
        client.recv(1)
        wall = time.perf_counter() - began
        process.kill()
        return Spent(wall * 1e3, _cpu_ms(process))


def until_usable(one: Assistant, home: Path) -> Spent:
    """An assistant until a letter that is typed at its prompt is seen."""
    sitting = Sitting(one, home)
    try:
        until, tail = time.perf_counter() + PATIENCE, b""
        while _LETTER.encode() not in tail:
            if time.perf_counter() > until:
                raise Timeout(f"{one.name} does not show what is typed")
            sitting.terminal.press(_LETTER)  # again: some drop what comes before they are ready
            pressed = time.perf_counter()
            while _LETTER.encode() not in tail and time.perf_counter() < pressed + 2:
                tail = tail[-8:] + sitting.terminal.read(0.5)
        wall = (time.perf_counter() - sitting.terminal.started) * 1e3
    finally:
        cpu = sitting.end()
    return Spent(wall, cpu)


def _asking(url: str) -> list[str]:
    return [MULL, "ask", "-m", "openai-compatible/m", "--base-url", url, "hello"]


def _cpu_ms(process: subprocess.Popen[bytes]) -> float:
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return (usage.ru_utime + usage.ru_stime) * 1e3


def instructions(command: list[str], environment: Mapping[str, str]) -> float | None:
    """Millions of instructions that a command executes; none without valgrind."""
    if QUICK or not shutil.which("valgrind"):
        return None
    script = [] if command[0] == sys.executable else [sys.executable]
    valgrind = ["valgrind", "--tool=cachegrind", "--cachegrind-out-file=/dev/null"]
    counted = subprocess.run(
        [*valgrind, *script, *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    found = _INSTRUCTIONS.search(counted.stderr)
    return int(found[1].replace(",", "")) / 1e6 if found else None


def run() -> list[Figure]:
    """Everything, once in every round."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        listening.settimeout(PATIENCE)
        server = stack.enter_context(ScriptedServer([_ANSWER] * (ROUNDS + 3)))
        url = stack.enter_context(speaker())
        environment = {
            **os.environ,
            **dict.fromkeys(("HOME", "MULL_CONFIG_DIR", "MULL_DATA_DIR"), str(folder)),
            "PYTHONPYCACHEPREFIX": f"{folder}/compiled",
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        cases = {
            name: Case(
                partial(ended, command, environment),
                against,
                target,
                command if command[0] in (sys.executable, MULL) else None,  # others take minutes
            )
            for name, (command, against, target) in _commands().items()
        }
        asking = _asking(server.url)
        cases["mull ask, first byte"] = Case(partial(until_asked, listening, environment))
        whole = partial(ended, asking, environment)
        cases["mull ask, whole"] = Case(whole, target="≤ 9", command=asking)
        others = () if QUICK else (a for a in assistants(url, folder) if a.name != "mull")
        for one in (limit(url), ours(url, folder), *others):
            start = partial(until_usable, one, folder)
            against, target = (PYTHON, "≤ 8") if one.name == "mull" else ("prompt: mull", "")
            cases[f"prompt: {one.name}"] = Case(start, against, target)
            if one.name == "mull":
                start = partial(until_usable, replace(one, prompt=_EDITOR), folder)
                cases["prompt: mull, editor loaded"] = Case(start)
        return _figures(_measured(_able(cases)), environment)


def _able(cases: dict[str, Case]) -> dict[str, Case]:
    """Those that start here; this first start compiles and writes files."""
    able = {}
    for name, case in cases.items():
        try:
            case.start()
        except Timeout as error:
            leave_out(name, str(error))
        else:
            able[name] = case
    return able


def _measured(cases: dict[str, Case]) -> dict[str, tuple[Case, list[Spent]]]:
    spent: dict[str, list[Spent]] = {name: [] for name in cases}
    for _ in range(ROUNDS):
        for name, case in cases.items():
            spent[name].append(case.start())
    return {name: (cases[name], times) for name, times in spent.items()}


def _figures(
    measured: dict[str, tuple[Case, list[Spent]]], environment: Mapping[str, str]
) -> list[Figure]:
    figures = []
    for at, unit in ((1, "ms CPU"), (0, "ms")):
        for name, (case, spent) in measured.items():
            mine, against = [one[at] for one in spent], case.against
            base = [one[at] for one in measured[against][1]] if against in measured else []
            ratio = median_ratio(mine, base) if base else None
            target = case.target if unit == "ms CPU" else ""
            figures.append(
                Figure(f"{name}, {unit}", statistics.median(mine), unit, against, ratio, target)
            )
    counts: dict[str, float] = {}
    for name, (case, _) in measured.items():
        count = instructions(case.command, environment) if case.command else None
        if count is not None:
            counts[name] = count
            ratio = count / counts[case.against] if case.against in counts else None
            told = f"{name}, instructions"
            figures.append(Figure(told, count, "million", case.against, ratio))
    return figures
