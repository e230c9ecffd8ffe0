"""The terminal assistants that are measured, each in an environment and a home of its own.

All are started by the same Python, ask the same endpoint for the same model, and have their tools
on, their telemetry and update checks off. What cannot be installed is left out, and said so.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.peers import ROOT, is_chosen, leave_out, say
from bench.report import QUICK
from bench.speaker import LAST
from mull.testing.fidelity.peers import cache_folder
from mull.testing.pythons import find_python

__all__ = ["OTHERS", "Assistant", "assistants", "limit", "ours"]

PLACE = cache_folder() / "assistants"
PYTHONS = ("3.13", "3.14")
"""kimi-cli does not start on older ones."""


@dataclass(frozen=True)
class Assistant:
    """How one is started, and how it is seen to be ready."""

    name: str
    command: list[str]
    prompt: re.Pattern[bytes]
    """What it writes when it waits for a question."""
    done: re.Pattern[bytes] = re.compile(LAST.encode())
    """What it writes when the answer is drawn."""
    environment: dict[str, str] = field(default_factory=dict)
    settle: float = 1.0
    """Seconds from its prompt until it takes keys."""


@dataclass(frozen=True)
class _Kind:
    name: str
    version: str
    """What pip installs of it; without one it is this repository's own."""
    make: Callable[[Path, str, Path], Assistant]

    @property
    def label(self) -> str:
        return f"{self.name} {self.version}".strip()

    @property
    def wanted(self) -> str:
        return f"{self.name}=={self.version}" if self.version else f"--editable={ROOT}[terminal]"


_KIMI = """\
default_model = "thinker"
default_thinking = true
telemetry = false

[models.thinker]
provider = "bench"
model = "thinker"
max_context_size = 262144
capabilities = ["thinking"]

[providers.bench]
type = "openai_legacy"
base_url = "{url}"
api_key = "none"
"""
_VIBE = """\
active_model = "thinker"
enable_telemetry = false
enable_update_checks = false
enable_auto_update = false

[[providers]]
name = "bench"
api_base = "{url}"
api_key_env_var = "BENCH_KEY"

[[models]]
name = "thinker"
provider = "bench"
alias = "thinker"
"""


def _mull(programs: Path, url: str, home: Path) -> Assistant:
    command = [str(programs / "mull"), "-m", "openai-compatible/thinker", "--base-url", url]
    return Assistant(home.name, command, re.compile("❯".encode()))


def _kimi(programs: Path, url: str, home: Path) -> Assistant:
    _write(home / ".kimi" / "config.toml", _KIMI.format(url=url))
    return Assistant(
        home.name,
        [str(programs / "kimi")],
        re.compile(rb"context:"),
        re.compile(rb"context: (?!0\.0%)\d"),  # it may leave out the last lines of an answer
        {"KIMI_CLI_NO_AUTO_UPDATE": "1"},
    )


def _vibe(programs: Path, url: str, home: Path) -> Assistant:
    _write(home / ".vibe" / "config.toml", _VIBE.format(url=url))
    command, key = [str(programs / "vibe")], {"BENCH_KEY": "none"}
    # it writes only the letters of a line that change: a part of the last word must do
    ready, done = re.compile(rb"tokens \("), re.compile(rb"zz|iza|zac")
    return Assistant(home.name, command, ready, done, key)


_KINDS = (
    _Kind("mull", "", _mull),
    # the last that is an assistant: 1.52.0 fetches and runs the installer of its successor
    _Kind("kimi-cli", "1.51.0", _kimi),
    _Kind("mistral-vibe", "3.0.2", _vibe),
)
OTHERS = tuple(kind.name for kind in _KINDS if kind.version)


def limit(url: str) -> Assistant:
    """The least that can be called an assistant."""
    script = str(Path(__file__).with_name("minimal.py"))
    python = interpreter() or sys.executable
    return Assistant("limit", [python, "-P", "-S", script, url], re.compile(rb"> "), settle=0.1)


def ours(url: str, home: Path) -> Assistant:
    """mull as it is installed here."""
    return _mull(Path(sys.executable).parent, url, home / "mull")


def assistants(url: str, home: Path) -> Iterator[Assistant]:
    """Everyone who can take part; the home of each is `home` and its name."""
    python = interpreter()
    if python is None:
        leave_out("kimi-cli and mistral-vibe", f"they want Python {' or '.join(PYTHONS)}")
    for kind in _KINDS:
        if kind.name in OTHERS and not is_chosen(kind.name):
            continue
        if QUICK and kind.name in OTHERS:
            leave_out(kind.name, "it is slow to start, and this was a quick run")
            continue
        if QUICK or python is None:
            if kind.name == "mull":
                yield ours(url, home)
            continue
        programs = _installed(kind, python)
        if programs is not None:
            yield kind.make(programs, url, home / kind.label)


def interpreter() -> str | None:
    """A Python that all of them run on."""
    return os.environ.get("MULL_BENCH_PYTHON") or find_python(*PYTHONS)


def _installed(kind: _Kind, python: str) -> Path | None:
    """Where its programs are, once it is installed."""
    place = PLACE / kind.name
    ready = place / ".ready"
    if not ready.exists() or ready.read_text() != kind.wanted:
        say(f"installing {kind.name} into {place}, once ...")
        pip = [str(place / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        for command in ([python, "-m", "venv", "--clear", str(place)], [*pip, kind.wanted]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
                leave_out(kind.name, last)
                return None
        ready.write_text(kind.wanted)
    return place / "bin"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
