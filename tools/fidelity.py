"""`make fidelity`: installs each peer, runs the suite through it, and writes docs/fidelity.md.

    python -m tools.fidelity [--peers a,b] [--only PREFIX] [--fresh] [--jobs N] [--write]

Outcomes are kept in fidelity/results/, a file per peer, so that one peer can be measured anew
without the others, and with `--only` some cases without the rest. `--write` only renews the page.
Environments older than a day are renewed with the newest versions, with `--fresh` all of them.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

import msgspec

from mull.testing.fidelity import (
    AdapterFailed,
    AdapterProcess,
    Case,
    Judge,
    Outcome,
    load_cases,
    load_pairs,
    run_cases,
)
from mull.testing.fidelity.peers import Peer, PeerUnavailable, cache_folder, load_peers, using
from mull.testing.fidelity.runner import SLOW_START
from tools.fidelity_page import render, render_picture
from tools.fidelity_results import RESULTS, ROOT, Outcomes, Result, results, served, stamp

PAGE = ROOT / "docs" / "fidelity.md"
PICTURE = ROOT / "docs" / "images" / "fidelity.svg"
STEP = 50
"""Cases between two reports of progress."""
DAY = 24 * 60 * 60.0
_INSTALLING = Lock()
"""Held by who installs, because some peers share what is installed."""


def main(words: Sequence[str] | None = None) -> int:
    """Measure the chosen peers, then write the page."""
    parser = argparse.ArgumentParser(prog="python -m tools.fidelity", description=__doc__)
    parser.add_argument("--peers", default="", help="names, separated by commas; all if not given")
    parser.add_argument("--only", default="", metavar="PREFIX", help="only cases that start so")
    parser.add_argument("--fresh", action="store_true", help="renew what is installed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="peers at once")
    parser.add_argument("--write", action="store_true", help="measure nothing")
    options = parser.parse_args(words)
    peers = load_peers()
    chosen = [name for name in options.peers.split(",") if name] or [*peers]
    if unknown := [name for name in chosen if name not in peers]:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(peers)}")
    measured = [] if options.write else chosen

    def fails(name: str) -> bool:
        try:
            measure(name, peers[name], options.only, fresh=options.fresh)
        except PeerUnavailable as error:
            _tell(name, str(error))
            return True
        return False

    with ThreadPoolExecutor(options.jobs) as pool:
        try:
            failed = list(pool.map(fails, measured))
        except KeyboardInterrupt:
            os._exit(130)  # a pool would wait for its peers; they end with their input
    missing = [name for name, one in zip(measured, failed, strict=True) if one]
    write()
    for name in missing:
        print(f"{name} could not be run: its last results are kept", file=sys.stderr)
    return bool(missing)


def measure(name: str, peer: Peer, only: str = "", *, fresh: bool = False) -> None:
    """Run the suite through a peer, and keep what it did.

    Raises:
        PeerUnavailable: it cannot be installed or started.
    """
    cache = cache_folder()
    with _INSTALLING:
        command = installed(name, peer, cache, fresh=fresh)
    environ = {**peer.environ, "HOME": str(cache / "home"), "PYTHONWARNINGS": "ignore"}
    with using(cache):
        os.makedirs(environ["HOME"], exist_ok=True)
    before = results().get(name) if only else None
    process = AdapterProcess(command, environ=environ, start=SLOW_START)
    _tell(name, "running")
    with Judge() as judge, process as adapter:
        known = before.outcomes if before else {}
        outcomes = _played(name, load_cases(), judge, adapter, known, only)
        known = before.pairs if before else {}
        crossings = load_pairs() if peer.crosses_apis else []
        pairs = _played(name, crossings, judge, adapter, known, only)
    version = peer.installed(name, cache)
    commit, date, machine = stamp()
    if before and before.commit not in ("", commit):
        commit = f"{before.commit}, {commit}"
    result = Result(version, outcomes, pairs, commit, date, machine)
    RESULTS.mkdir(exist_ok=True)
    data = msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n"
    (RESULTS / f"{name}.json").write_bytes(data)
    also = f"; pairs: {_kept(pairs)}" if pairs else ""
    _tell(name, f"{version}: {_kept(outcomes)}{also}".removeprefix(": "))


def _tell(name: str, text: str) -> None:
    print(f"{name}: {text}", flush=True)


def installed(name: str, peer: Peer, cache: Path, *, fresh: bool) -> Sequence[str]:
    """The command of a peer in its newest version, or in the one that is there if it cannot be
    renewed.

    Raises:
        PeerUnavailable: it cannot be installed.
    """
    age = peer.age(name, cache)
    if not peer.packages:
        return peer.install(name, cache)
    if age is None:
        _tell(name, "installing")
        return peer.install(name, cache)
    try:
        return peer.install(name, cache, renew=fresh or age > DAY)
    except PeerUnavailable as error:
        _tell(name, f"not renewed, run as it is: {error}")
        return peer.install(name, cache)


def _kept(outcomes: Outcomes) -> str:
    kept = sum(mark == "kept" for mark, _ in outcomes.values())
    return f"{kept} of {len(outcomes)} kept"


def _played(
    name: str,
    cases: Sequence[Case],
    judge: Judge,
    adapter: AdapterProcess,
    known: Outcomes,
    only: str,
) -> dict[str, tuple[str, str]]:
    """What became of each case; those that are known and not asked for are not played again."""
    asked = [case for case in cases if case.id not in known or case.id.startswith(only)]
    found: dict[str, tuple[str, str]] = {}
    try:
        for case, outcome in run_cases(asked, judge, adapter):
            found[case.id] = outcome.mark, plain(outcome, judge)
            if len(found) % STEP == 0 or len(found) == len(asked):
                what = "pairs" if case.client else "cases"
                _tell(name, f"{len(found)} of {len(asked)} {what}")
    except AdapterFailed as error:
        raise PeerUnavailable(str(error)) from None
    return {case.id: found.get(case.id) or known[case.id] for case in cases}


def plain(outcome: Outcome, judge: Judge) -> str:
    """The reason in a line, without what changes from run to run."""
    return " ".join(outcome.reason.replace(judge.url, "URL").split())[:200]


def write() -> None:
    """Write the page and its picture."""
    for path, text in pages().items():
        path.write_text(text, "utf-8")


def pages() -> dict[Path, str]:
    """The page and its picture, as they must be."""
    found, peers = results(), load_peers()
    page = render(load_cases(), load_pairs(), peers, found, served())
    return {PAGE: page, PICTURE: render_picture(peers, found)}


if __name__ == "__main__":
    sys.exit(main())
