"""The library beside openai, anthropic, litellm and pydantic-ai, each asking the same endpoint.

CPU time of fresh processes: an import; an import with a first request; then, warm, a thousand
requests at once of which each takes 100 ms (also its time on the clock, the peak of the process's
memory, and the connections that were opened), a question whose answer needs one tool, and an answer
with a schema as a checked value. The peers have an environment of their own, `library` in
`$MULL_BENCH_PEERS` or `.venv-peers`; what cannot be installed is left out, and said so.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import urllib.request
import venv
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from bench.client import ROOT, say
from bench.library_runner import LIBRARIES, REQUESTS, ROUNDS
from bench.report import Figure, median_ratio

REPEATS = 3
LONGEST = 300
"""Seconds that one process may take."""
PLACE = Path(os.environ.get("MULL_BENCH_PEERS") or ROOT / ".venv-peers") / "library"
PACKAGES = ("openai", "anthropic", "litellm", "pydantic-ai-slim[openai]")
IMPORTS = {
    "mull": "import mull; mull.ask, mull.Conversation",
    "openai": "from openai import OpenAI",
    "anthropic": "from anthropic import Anthropic",
    "litellm": "from litellm import completion",
    "pydantic-ai": "from pydantic_ai import Agent; import pydantic_ai.models.openai",
}
DELAYS = {"first": 0, "concurrent": 100, "tool": 0, "structured": 0}
_QUIET = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHONWARNINGS": "ignore"}


def run() -> list[Figure]:
    """Every library in turn, round by round."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    names: dict[str, str] = {}
    with _server() as address:
        pythons = _interpreters()
        for name, python in pythons.items():
            _import_ms(python, name)
        for _ in range(REPEATS):
            for name, python in pythons.items():
                found[name, "import"].append(_import_ms(python, name))
                for task in DELAYS:
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
    yield Figure(f"{label}: {names['mull']}", statistics.median(own), unit)
    for name, version in names.items():
        if name != "mull" and found[name, what]:
            values = found[name, what]
            ratio = median_ratio(values, own)
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
            env={**os.environ, **_QUIET},
            check=True,
        )
    except subprocess.SubprocessError as error:
        why = str(error.stderr or error).strip().splitlines()[-1]
        say(f"left out: {name}, {task} ({why})")
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
    """CPU milliseconds of a process that does nothing else."""
    command = [python, "-c", IMPORTS[name]]
    process = subprocess.Popen(command, env={**os.environ, **_QUIET})
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return (usage.ru_utime + usage.ru_stime) * 1e3


def _count(address: str) -> dict[str, int]:
    with urllib.request.urlopen(f"{address}/count") as response:
        counted: dict[str, int] = json.load(response)
    return counted


@contextlib.contextmanager
def _server() -> Iterator[str]:
    command = [sys.executable, "-m", "bench.library_server"]
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.communicate()


def _interpreters() -> dict[str, str]:
    """The Python of each library that can be had."""
    python, ready = PLACE / "bin" / "python", PLACE / ".ready"
    if not ready.exists():
        say(f"installing {', '.join(PACKAGES)} into {PLACE}, once ...")
        venv.create(PLACE, with_pip=True)
        (PLACE / ".gitignore").write_text("*\n")
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run([*install, *PACKAGES], capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            say(f"left out: they cannot be installed ({last})")
            return {"mull": sys.executable}
        ready.touch()
    return {name: sys.executable if name == "mull" else str(python) for name in LIBRARIES}
