"""`make pythons`: the core tests under every Python that mull supports and this machine has.

The classifiers of pyproject.toml name the versions. An interpreter is looked for on the PATH, among
those of pyenv and those of uv; uv downloads none. Each has an environment of its own in
`.venv/pythons`, which is kept.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from mull.testing.pythons import find_python

__all__ = ["Verdict", "main", "run_core", "versions"]

ROOT = Path(__file__).parents[1]
_PLACE = ROOT / ".venv/pythons"
_VERSION = re.compile(r"Programming Language :: Python :: (3\.\d+)")
_CORE = ("auth", "dialects", "history", "markdown", "neutral", "policy", "settings")
_LIBRARY = "tests/test_bare.py"
"""What it runs besides: the library and the commands as a user has them without any extra."""


def versions() -> list[str]:
    """The versions that the classifiers name, oldest first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [found[1] for line in project["classifiers"] if (found := _VERSION.fullmatch(line))]


class Verdict(NamedTuple):
    """Whether the tests pass, the last line of each run, and the output of the one that failed."""

    good: bool
    summaries: list[str]
    output: str


def run_core(version: str, interpreter: str) -> Verdict:
    """Run the tests under an interpreter; its environment is made first, if there is none."""
    home = _PLACE / version
    python = home / "bin/python"
    if not python.exists():
        _must(interpreter, "-m", "venv", str(home))
    _must(
        str(python),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "-e",
        ".[dev]",
    )
    summaries: list[str] = []
    folders = [f"tests/{name}" for name in _CORE]
    tests = ["-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "-W", "error"]
    for chosen in (["-m", "core", *folders], [_LIBRARY]):
        done = subprocess.run(
            [str(python), *tests, *chosen], cwd=ROOT, capture_output=True, text=True, check=False
        )
        summaries.append(done.stdout.strip().rpartition("\n")[2])
        if done.returncode:
            return Verdict(False, summaries, done.stdout + done.stderr)
    return Verdict(True, summaries, "")


def _must(*command: str) -> None:
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tests under each version, or those named; 1 if they fail under one."""
    failed = False
    for version in (sys.argv[1:] if argv is None else argv) or versions():
        interpreter = find_python(version)
        if interpreter is None:
            print(f"{version}  not tested: no such Python here", flush=True)
            continue
        done = run_core(version, interpreter)
        failed = failed or not done.good
        print(f"{version}  {'; '.join(done.summaries)}{done.output[-6000:]}", flush=True)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
