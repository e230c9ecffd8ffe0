"""The kept results of the fidelity suite: a file per peer, and per server of models."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

import msgspec

from mull.testing.fidelity.peers import load_peers

__all__ = [
    "RESULTS",
    "ROOT",
    "SERVERS",
    "Outcomes",
    "Result",
    "Served",
    "results",
    "served",
    "stamp",
]

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "fidelity" / "results"
SERVERS = RESULTS / "servers"
Outcomes: TypeAlias = Mapping[str, tuple[str, str]]
"""The verdict and the reason, by the id of a case."""


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a peer did with each case, when, and with which state of the repository."""

    version: str
    outcomes: Outcomes
    pairs: Outcomes = {}
    commit: str = ""
    date: str = ""
    machine: str = ""


class Served(msgspec.Struct, frozen=True):
    """What a server does with a thought: by template, and by what was asked."""

    version: str
    found: Mapping[str, Mapping[str, tuple[str, ...]]]
    commit: str
    date: str
    machine: str


def results() -> dict[str, Result]:
    """The results that are kept, in the order of the peers."""
    decode = msgspec.json.Decoder(Result).decode
    files = {name: RESULTS / f"{name}.json" for name in load_peers()}
    return {name: decode(file.read_bytes()) for name, file in files.items() if file.exists()}


def served() -> dict[str, Served]:
    """What the servers of models did, by name."""
    decode = msgspec.json.Decoder(Served).decode
    return {file.stem: decode(file.read_bytes()) for file in sorted(SERVERS.glob("*.json"))}


def stamp() -> tuple[str, str, str]:
    """The state of the repository, the date and the machine of a run."""
    python = platform.python_version()
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {python}"
    return _commit(), f"{datetime.now(UTC):%Y-%m-%d}", machine


def _commit() -> str:
    """The commit, with a "+" if what is measured differs from it."""
    head = _git("rev-parse", "--short=10", "HEAD")
    changed = _git("status", "--porcelain", "--", "src", "fidelity", ":!fidelity/results")
    return f"{head}+" if head and changed else head


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()
