"""What was measured, as data: a file for each section, with the circumstances of its run.

The pages are written from the runs of everything in `FOLDER`. A quick run and one with only some of
the peers are kept apart, in `PARTIAL`, which git ignores.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import time
from pathlib import Path

import msgspec

from bench.report import QUICK, Figure

__all__ = ["FOLDER", "PARTIAL", "Result", "commit_now", "load_results", "place", "save", "stamped"]

ROOT = Path(__file__).parent.parent
FOLDER = Path(__file__).with_name("results")
PARTIAL = Path(__file__).with_name("partial")


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The figures of a section, what they are, and how they came about."""

    about: str
    date: str
    commit: str
    machine: str
    python: str
    load: tuple[float, float]
    """How busy the machine was, before and afterwards."""
    seconds: float
    quick: bool = False
    peers: str = ""
    """The peers that were asked for, if not all were."""
    left_out: tuple[str, ...] = ()
    figures: tuple[Figure, ...]

    @property
    def is_full(self) -> bool:
        """Whether it was measured with all rounds, and no peer was unwanted."""
        return not self.quick and not self.peers

    @property
    def missed(self) -> tuple[Figure, ...]:
        """The figures that miss their target."""
        return tuple(figure for figure in self.figures if figure.met is False)


def stamped(
    about: str, figures: list[Figure], began: float, before: float, left_out: list[str]
) -> Result:
    """The figures of a section that was measured since then, under that load, here."""
    rounded = (
        msgspec.structs.replace(
            one, value=_short(one.value), ratio=None if one.ratio is None else _short(one.ratio)
        )
        for one in figures
    )
    return Result(
        about=about,
        date=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        commit=commit_now(),
        machine=f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        load=(round(before, 1), round(os.getloadavg()[0], 1)),
        seconds=round(time.monotonic() - began, 1),
        quick=QUICK,
        peers=os.environ.get("PEERS", ""),
        left_out=tuple(dict.fromkeys(left_out)),
        figures=tuple(rounded),
    )


def _short(value: float) -> float:
    return float(f"{value:.5g}")


def commit_now() -> str:
    """The commit that is measured; marked if what is measured was changed since."""
    found = _git("rev-parse", "--short=8", "HEAD")
    changed = _git("status", "--porcelain", "--", "src", "bench", ":!bench/results")
    return f"{found} with changes" if found and changed else found


def _git(*words: str) -> str:
    try:
        done = subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
        )
    except OSError:  # there is no git
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


_VERSION = re.compile(r" \d[^ ,]*")


def place(result: Result, last: Result | None) -> Path:
    """Where a result belongs: it may replace the last one unless it says less."""
    if not result.is_full:
        return PARTIAL
    if last is None or not last.is_full:
        return FOLDER
    return PARTIAL if _names(result.left_out) - _names(last.left_out) else FOLDER


def _names(left_out: tuple[str, ...]) -> set[str]:
    """Who was left out: in another version it is nobody new."""
    return {_VERSION.sub("", one.partition(" (")[0]) for one in left_out}


def save(name: str, result: Result, folder: Path = FOLDER) -> None:
    """Keep the result of a section in place of its last one."""
    folder.mkdir(exist_ok=True)
    data = msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n"
    unfinished = folder / f"{name}.json.new"
    unfinished.write_bytes(data)
    unfinished.replace(folder / f"{name}.json")


def load_results(folder: Path = FOLDER) -> dict[str, Result]:
    """Every result that is kept, by its section."""
    decode = msgspec.json.Decoder(Result).decode
    return {file.stem: decode(file.read_bytes()) for file in sorted(folder.glob("*.json"))}
