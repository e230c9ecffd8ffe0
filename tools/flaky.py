"""Runs the tests again and again, quietly and under load, and counts what does not always hold.

`python -m tools.flaky [--runs N] [--loaded N] [PYTEST WORDS]`; `make flaky` is the same for all
default tests. A test that fails once in so many runs is a failure: whatever it waits for, it must
wait for what happens and not for a while.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

__all__ = ["failures", "main"]

_BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(100_000))"
_BUSY_PROCESSES = 2
_PYTEST = (sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "--color=no")
_FAILURE = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", re.MULTILINE)


@contextmanager
def _load() -> Iterator[None]:
    """Two processes that take whatever the machine has."""
    busy = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(_BUSY_PROCESSES)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def failures(output: str, status: int) -> list[str]:
    """The tests that failed, from what pytest said; a run that broke down is one of them."""
    failed = _FAILURE.findall(output)
    return failed or ([f"pytest itself (status {status})"] if status else [])


def _run(words: Sequence[str], title: str) -> list[str]:
    began = time.monotonic()
    done = subprocess.run(
        [*_PYTEST, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    failed = failures(done.stdout, done.returncode)
    said = f"{len(failed)} failed" if failed else "all passed"
    if failed:
        print(done.stdout)
    print(f"{title}: {said}, {time.monotonic() - began:.0f} s", flush=True)
    return failed


def main(argv: Sequence[str] | None = None) -> int:
    """Run them, and say how often what failed; 1 if anything did."""
    parser = ArgumentParser(prog="python -m tools.flaky", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="runs on a machine of their own")
    parser.add_argument("--loaded", type=int, default=5, help="runs beside two busy processes")
    options, words = parser.parse_known_args(argv)
    counted: Counter[str] = Counter()
    bad = 0
    for number in range(1, options.runs + 1):
        failed = _run(words, f"run {number} of {options.runs}")
        counted.update(failed)
        bad += bool(failed)
    for number in range(1, options.loaded + 1):
        with _load():
            failed = _run(words, f"run {number} of {options.loaded} under load")
        counted.update(failed)
        bad += bool(failed)
    total = options.runs + options.loaded
    print(f"{total} runs, {bad} with failures" + (":" if bad else ""))
    for name, times in counted.most_common():
        print(f"  {times} of {total}  {name}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
