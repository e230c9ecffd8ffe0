"""Runs the tests again and again, quietly and under load, and counts what does not always hold.

`python -m tools.flaky [--runs N] [--loaded N] [PYTEST WORDS]`; `make flaky` is the same for all
default tests. A test that fails once in so many runs is a failure: whatever it waits for, it must
wait for what happens and not for a while. So is a run that does not end: each test has its own time
limit (`tests/time_limits.py`), and a run that hangs all the same is ended, and shows where it was.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile

__all__ = ["failures", "main"]

_BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(100_000))"
_BUSY_PROCESSES = 2
_LAST_WORDS = 5
"""Seconds in which a run that hangs may say where."""
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


def failures(output: str, status: int | None) -> list[str]:
    """The tests that failed, from what pytest said; a run that broke down is one of them, and so is
    one that had no end, whose status is None.
    """
    failed = _FAILURE.findall(output)
    if status is None:
        return [*failed, "pytest itself (hung)"]
    return failed or ([f"pytest itself (status {status})"] if status else [])


def _run(words: Sequence[str], title: str, limit: float) -> list[str]:
    began = time.monotonic()
    # a file, not a pipe: what a test left running would keep a pipe open
    with TemporaryFile("w+", encoding="utf-8", errors="replace") as written:
        run = subprocess.Popen(
            [*_PYTEST, *words],
            stdout=written,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that its workers can be ended with it
        )
        status = _wait(run, limit)
        written.seek(0)
        output = written.read()
    failed = failures(output, status)
    said = f"{len(failed)} failed" if failed else "all passed"
    if failed:
        print(output)
    print(f"{title}: {said}, {time.monotonic() - began:.0f} s", flush=True)
    return failed


def _wait(run: subprocess.Popen[bytes], limit: float) -> int | None:
    """The status of a run, or None if it had to be ended; it says where it was then."""
    try:
        return run.wait(limit)
    except subprocess.TimeoutExpired:
        with suppress(subprocess.TimeoutExpired):
            os.killpg(run.pid, signal.SIGABRT)  # pytest and its workers write their stacks then
            run.wait(_LAST_WORDS)
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        return None


def main(argv: Sequence[str] | None = None) -> int:
    """Run them, and say how often what failed; 1 if anything did."""
    parser = ArgumentParser(prog="python -m tools.flaky", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="runs on a machine of their own")
    parser.add_argument("--loaded", type=int, default=5, help="runs beside two busy processes")
    parser.add_argument("--limit", type=float, default=1200, help="seconds that one run may take")
    options, words = parser.parse_known_args(argv)
    counted: Counter[str] = Counter()
    bad = 0
    for number in range(1, options.runs + 1):
        failed = _run(words, f"run {number} of {options.runs}", options.limit)
        counted.update(failed)
        bad += bool(failed)
    for number in range(1, options.loaded + 1):
        with _load():
            title = f"run {number} of {options.loaded} under load"
            failed = _run(words, title, options.limit)
        counted.update(failed)
        bad += bool(failed)
    total = options.runs + options.loaded
    print(f"{total} runs, {bad} with failures" + (":" if bad else ""))
    for name, times in counted.most_common():
        print(f"  {times} of {total}  {name}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
