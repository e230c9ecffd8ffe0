"""`python -m bench [NAME…]` measures everything, or the named sections, and writes the page.

Each section is measured in a process of its own and kept as soon as it is done. `--resume` leaves
out what was measured at this commit; `--page` measures nothing. QUICK=1 and PEERS=a,b measure less:
their results and their page are written to bench/partial and replace nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module

from tools import docs

from bench import page
from bench.assistants import OTHERS
from bench.peers import CHOSEN, LEFT_OUT, QUIET, say
from bench.record import FOLDER, PARTIAL, commit_now, load_results, place, save, stamped
from bench.report import QUICK
from bench.sections import SECTIONS
from mull.testing.fidelity.peers import load_peers

LONGEST = 900.0
"""Seconds that a section may take."""


def main(words: list[str] | None = None) -> int:
    """Measure, and write the page; returns whether a section failed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SECTIONS))
    parser.add_argument("--resume", action="store_true", help="leave out what this commit has")
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument("--no-page", action="store_true", help="only measure")
    options = parser.parse_args(words)
    if unknown := [name for name in options.names if name not in SECTIONS]:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(SECTIONS)}")
    if strangers := CHOSEN - {*load_peers(), *OTHERS}:
        parser.error(_unknown_peers(strangers))
    try:
        return _measure_and_write(options)
    except KeyboardInterrupt:
        say("interrupted; the sections that are done are kept, and --resume leaves them out")
        return 130


def _unknown_peers(names: Iterable[str]) -> str:
    known = sorted({*load_peers(), *OTHERS})
    near = [close for name in names for close in get_close_matches(name, known, 1)]
    meant = f"; did you mean {', '.join(near)}?" if near else f"; known: {', '.join(known)}"
    return f"PEERS names no peer: {', '.join(sorted(names))}{meant}"


def _measure_and_write(options: argparse.Namespace) -> int:
    chosen = [] if options.page else options.names or [*SECTIONS]
    if options.resume:
        chosen = [name for name in chosen if not _is_known(name)]
    if len(chosen) == 1:
        measure(chosen[0])
        failed = []
    else:
        failed = [name for name in chosen if not _apart(name)]
    if not options.no_page:
        _write(whole=options.page or not (QUICK or CHOSEN))
    for name in failed:
        say(f"{name} failed: its last results are kept; `python -m bench {name}` tries it again")
    return bool(failed)


def _write(*, whole: bool) -> None:
    """Write the pages that git tracks, or of less than a full run one beside them."""
    written = [*docs.write()] if whole else []
    if not whole:
        for path, text in page.pages(load_results(PARTIAL)).items():
            file = PARTIAL / path.removeprefix("docs/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            written.append(str(file))
    for path in written:
        say(f"wrote {path}")


def measure(name: str) -> None:
    """Measure a section here and keep its figures."""
    print(f"measuring {name} ...", file=sys.stderr, flush=True)
    os.environ.update(QUIET)
    module = import_module(f"bench.{name}")
    began, before = time.monotonic(), os.getloadavg()[0]
    figures = module.run()
    result = stamped(module.__doc__.strip(), figures, began, before, LEFT_OUT)
    folder = place(result, load_results(FOLDER).get(name))
    save(name, result, folder)
    for figure in figures:
        beside = f"  {figure.ratio:,.2f}× {figure.against}" if figure.ratio is not None else ""
        verdict = {True: "  met", False: "  MISSED", None: ""}[figure.met]
        say(f"{figure.written:>16}  {figure.name}{beside}  {figure.target}{verdict}")
    say(f"{name} took {result.seconds:,.0f} s")
    if result.is_full and folder == PARTIAL:
        say(f"peers were left out that the last run had: this one is kept in {folder}, not there")


def _apart(name: str) -> bool:
    """Measure a section in a process of its own; returns whether it succeeded."""
    command = [sys.executable, "-m", "bench", name, "--no-page"]
    process = subprocess.Popen(command, start_new_session=True)
    try:
        return process.wait(LONGEST) == 0
    except subprocess.TimeoutExpired:
        say(f"{name} took more than {LONGEST:,.0f} s and was ended")
        return False
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with all that it has started
        process.wait()


def _is_known(name: str) -> bool:
    """Whether a section was measured at this commit, as it would be now."""
    now = commit_now()
    return any(
        (result.commit, result.peers) == (now, os.environ.get("PEERS", ""))
        and result.quick <= QUICK
        and "changes" not in result.commit
        for folder in (FOLDER, PARTIAL)
        if (result := load_results(folder).get(name))
    )


if __name__ == "__main__":
    sys.exit(main())
