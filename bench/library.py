"""The library beside openai, anthropic, litellm and pydantic-ai, each asking the same endpoint.

CPU time of fresh processes: an import; an import with a first request; then, warm, a thousand
requests at once of which each takes 100 ms (also its time on the clock, the peak of the process's
memory, and the connections that were opened), a question whose answer needs one tool, and an answer
with a schema as a checked value. Each library runs in an environment of its own. `import mull`
alone loads next to nothing, so mull's import here is of the names that ask: `mull.ask` and
`mull.Conversation`.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from bench.helper import endpoint
from bench.library_runner import LIBRARIES, REQUESTS, ROUNDS
from bench.peers import leave_out, peer_python
from bench.report import QUICK, Figure, median_ratio

REPEATS = 1 if QUICK else 3
LONGEST = 300
"""Seconds that one process may take."""
IMPORTS = {
    "mull": "import mull; mull.ask, mull.Conversation",
    "openai": "from openai import OpenAI",
    "anthropic": "from anthropic import Anthropic",
    "litellm": "from litellm import completion",
    "pydantic-ai": "from pydantic_ai import Agent; import pydantic_ai.models.openai",
}
DELAYS = {"first": 0, "concurrent": 100, "tool": 0, "structured": 0}
"""The tasks, and the milliseconds that the endpoint takes for an answer."""
TASKS = ("first",) if QUICK else tuple(DELAYS)
SHOWN = ("mull", "openai", "anthropic") if QUICK else tuple(LIBRARIES)


def run() -> list[Figure]:
    """Every library in turn, round by round."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    names: dict[str, str] = {}
    with endpoint("bench.library_server") as address:
        pythons = _interpreters()
        for name, python in pythons.items():
            _import_ms(python, name)  # the first compiles everything and reads it from the disk
        for _ in range(REPEATS):
            for name, python in pythons.items():
                found[name, "import"].append(_import_ms(python, name))
                for task in TASKS:
                    label = _measure(python, name, task, address, found)
                    names[name] = max(names.get(name, name), label)  # with its version
    return [figure for what in UNITS for figure in _figures(what, names, found)]


UNITS = {
    "import": ("import", "ms CPU"),
    "first cpu": ("import and first answer", "ms CPU"),
    "concurrent wall": (f"{REQUESTS:,} requests at once", "s"),
    "concurrent cpu": ("... its CPU", "s CPU"),
    "concurrent peak": ("... its memory", "MB"),
    "concurrent connections": ("... its connections", ""),
    "tool cpu": ("a tool round trip", "ms CPU"),
    "structured cpu": ("an answer as a value", "ms CPU"),
}


def _figures(
    what: str, names: dict[str, str], found: dict[tuple[str, str], list[float]]
) -> Iterator[Figure]:
    label, unit = UNITS[what]
    own = found["mull", what]
    if not own:
        return
    yield Figure(f"{label}: {names['mull']}", statistics.median(own), unit)
    for name, version in names.items():
        if name != "mull" and found[name, what]:
            values = found[name, what]
            comparable = bool(unit) and len(values) == len(own)
            ratio = median_ratio(values, own) if comparable else None
            yield Figure(f"{label}: {version}", statistics.median(values), unit, "mull", ratio)


def _measure(
    python: str, name: str, task: str, address: str, found: dict[tuple[str, str], list[float]]
) -> str:
    """One process of one library; returns its name and version."""
    url = f"{address}/{DELAYS[task]}/v1"
    script = str(Path(__file__).with_name("library_runner.py"))
    _count(address)
    try:
        done = subprocess.run(
            [python, "-P", script, name, task, url],
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=True,
        )
    except subprocess.SubprocessError as error:
        why = str(error.stderr or error).strip().splitlines()[-1]
        leave_out(f"{name}, {task}", why)
        return name
    told = json.loads(done.stdout.splitlines()[-1])
    times = {"first": 1, "concurrent": None, "tool": ROUNDS, "structured": ROUNDS}[task]
    if times is None:
        found[name, "concurrent cpu"].append(told["cpu"])
        found[name, "concurrent wall"].append(told["wall"])
        found[name, "concurrent peak"].append(told["peak"])
        found[name, "concurrent connections"].append(_count(address)["connections"])
    else:
        found[name, f"{task} cpu"].append(told["cpu"] * 1e3 / times)
    return f"{name} {told['version']}"


def _import_ms(python: str, name: str) -> float:
    """CPU milliseconds from the start of a process until it has imported this, and nothing else."""
    command = [python, "-c", f"{IMPORTS[name]}; import time; print(time.process_time())"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout.splitlines()[-1]) * 1e3


def _count(address: str) -> dict[str, int]:
    with urllib.request.urlopen(f"{address}/count") as response:
        counted: dict[str, int] = json.load(response)
    return counted


def _interpreters() -> dict[str, str]:
    """The Python of each library that can be had."""
    pythons = {name: sys.executable if name == "mull" else peer_python(name) for name in SHOWN}
    return {name: python for name, python in pythons.items() if python}
