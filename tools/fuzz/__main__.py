"""Fuzz every reader of foreign bytes, guided by coverage: `python -m tools.fuzz [READER …]`.

Each reader runs in a process of its own under atheris, which watches the branches of mull that an
input takes and goes on from those that take a new one. It starts from the corpus, and answers from
the fixtures too. The time is shared out, so a run has an end; or each reader gets a number of
inputs (`--runs`), and then the same code is tried with the same ones on every machine: the seed
is fixed. An input that breaks a reader is put into the corpus; every run of the tests replays it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple

__all__ = ["main"]

ROOT = Path(__file__).resolve().parents[2]
_SEED = 15
_LONGEST = 4096
_KEPT = 8
"""New inputs that `--keep` takes into the corpus of one reader."""
_START = 600
"""Seconds that a process may take beside its fuzzing: instrumenting mull, reading the corpus."""
_STAT = re.compile(r"^stat::(\w+):\s+(\d+)$", re.MULTILINE)
_COVERED = re.compile(r"cov: (\d+) ft: (\d+)")


class Outcome(NamedTuple):
    """What came of one reader: inputs tried, those that took a new path, branches seen."""

    name: str
    tried: int
    new: int
    covered: int
    problem: str = ""


def _one(name: str, flags: Sequence[str]) -> None:
    """Fuzz one reader in this process, which libFuzzer ends."""
    import atheris

    with atheris.instrument_imports(include=["mull"], enable_loader_override=False):
        from tools.fuzz.readers import try_reader

    def read(data: bytes) -> None:
        try_reader(name, data)

    atheris.Setup([sys.argv[0], *flags], read)
    atheris.Fuzz()


def _fuzz(name: str, seconds: float, runs: int | None, seed: int, keep: bool) -> Outcome:
    from tools.fuzz.readers import CORPUS

    with tempfile.TemporaryDirectory(prefix="mull-fuzz-") as found:
        flags = [
            f"-seed={seed}",
            f"-max_total_time={max(1, round(seconds))}" if runs is None else f"-runs={runs}",
            f"-max_len={_LONGEST}",
            "-timeout=60",
            "-rss_limit_mb=2048",
            "-print_final_stats=1",
            "-reload=0",  # otherwise time decides when a new input is taken up
            f"-artifact_prefix={found}/broke-",
            # in this order: a folder lists its files in another one on each machine
            f"-seed_inputs={','.join(_seeds(name))}",
            found,
        ]
        command = [*_steady(), sys.executable, "-m", "tools.fuzz", "--one", name, "--", *flags]
        try:
            done = subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, errors="replace",
                timeout=seconds + _START, check=False, env={**os.environ, "PYTHONHASHSEED": "0"},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Outcome(name, 0, 0, 0, "it did not end in time")
        broke = sorted(Path(found).glob("broke-*"))
        for path in broke:
            shutil.copy(path, CORPUS / name / path.name)
        if keep:
            _keep(Path(found), CORPUS / name)
        return _outcome(name, done, broke)


@cache
def _steady() -> tuple[str, ...]:
    """What keeps addresses in memory the same in every run, where the system allows it: the
    fuzzer's choices depend on them.
    """
    steady = ("setarch", "-R")
    try:
        subprocess.run((*steady, "true"), check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return ()
    return steady


def _seeds(name: str) -> list[str]:
    from tools.fuzz.readers import CORPUS

    fixtures = ROOT / "tests/fixtures" / name.removeprefix("answer-").replace("-", "_")
    folders = [CORPUS / name, *([fixtures] if name.startswith("answer-") else [])]
    return [str(path) for folder in folders for path in sorted(folder.iterdir())]


def _keep(found: Path, corpus: Path) -> None:
    """Take the shortest of the inputs that took a new path into the corpus."""
    new = [path for path in found.iterdir() if not path.name.startswith("broke-")]
    for path in sorted(new, key=lambda path: (path.stat().st_size, path.name))[-_KEPT:]:
        if path.stat().st_size <= 512:
            shutil.copy(path, corpus / path.name[:12])


def _outcome(name: str, done: subprocess.CompletedProcess[str], broke: Sequence[Path]) -> Outcome:
    said = done.stdout + done.stderr
    stats = {key: int(value) for key, value in _STAT.findall(said)}
    covered = [int(branches) for branches, _ in _COVERED.findall(said)]
    problem = ""
    if done.returncode or broke:
        # with the input, since its machine may be gone; the traceback is at the end of stdout
        inputs = "".join(f"{path.name}: {path.read_bytes()!r}\n" for path in broke)
        what = inputs or f"exit status {done.returncode}\n"
        problem = f"{what}{done.stdout[-3000:]}\n{done.stderr[-500:]}"
    return Outcome(
        name,
        stats.get("number_of_executed_units", 0),
        stats.get("new_units_added", 0),
        max(covered, default=0),
        problem,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Fuzz the readers and print what was tried; 1 if one of them broke."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=main.__doc__)
    parser.add_argument("readers", nargs="*", help="some of them only")
    parser.add_argument("--seconds", type=float, default=180, help="for all of them together")
    parser.add_argument("--runs", type=int, help="inputs for each of them, instead of a time")
    parser.add_argument("--seed", type=int, default=_SEED, help="another one tries other inputs")
    parser.add_argument("--keep", action="store_true", help="take new paths into the corpus")
    parser.add_argument("--one", metavar="READER", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.one:
        _one(options.one, options.readers)
        return 0

    from tools.fuzz.readers import READERS

    if unknown := [name for name in options.readers if name not in READERS]:
        parser.error(f"no reader is called {unknown[0]!r}: {', '.join(READERS)}")
    names = options.readers or list(READERS)
    workers = min(len(names), os.cpu_count() or 1)
    share = options.seconds * workers / len(names)
    print(f"{'reader':<26}{'tried':>10}{'new paths':>11}{'branches':>10}")
    with ThreadPoolExecutor(workers) as pool:
        outcomes = []
        for one in pool.map(
            lambda name: _fuzz(name, share, options.runs, options.seed, options.keep), names
        ):
            outcomes.append(one)
            print(f"{one.name:<26}{one.tried:>10,}{one.new:>11,}{one.covered:>10,}", flush=True)
    broke = [one for one in outcomes if one.problem or not one.tried]
    tried, new = sum(one.tried for one in outcomes), sum(one.new for one in outcomes)
    print(f"{'all':<26}{tried:>10,}{new:>11,}")
    for one in broke:
        print(f"\n{one.name} broke: {one.problem or 'nothing was tried'}", file=sys.stderr)
    return 1 if broke else 0


if __name__ == "__main__":
    sys.exit(main())
