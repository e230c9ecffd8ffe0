"""`make fidelity`: installs each peer, runs the suite through it, and writes docs/fidelity.md.

    python -m tools.fidelity [--peers a,b] [--only PREFIX] [--write]

Outcomes are kept in fidelity/results/, a file per peer, so that one peer can be measured anew
without the others, and with `--only` some cases without the rest. `--write` only renews the page.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from mull.testing.fidelity import AdapterProcess, Judge, Outcome, load_cases, run_case
from mull.testing.fidelity.peers import Peer, PeerUnavailable, cache_folder, load_peers
from tools.fidelity_page import render, render_picture

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "fidelity" / "results"
PAGE = ROOT / "docs" / "fidelity.md"
PICTURE = ROOT / "docs" / "images" / "fidelity.svg"


class Result(msgspec.Struct, frozen=True):
    """What a peer did with each case."""

    version: str
    outcomes: Mapping[str, tuple[str, str]]


def main(words: Sequence[str] | None = None) -> int:
    """Measure the chosen peers, then write the page."""
    parser = argparse.ArgumentParser(prog="python -m tools.fidelity", description=__doc__)
    parser.add_argument("--peers", default="", help="names, separated by commas; all if not given")
    parser.add_argument("--only", default="", metavar="PREFIX", help="only cases that start so")
    parser.add_argument("--write", action="store_true", help="measure nothing")
    options = parser.parse_args(words)
    peers = load_peers()
    chosen = [name for name in options.peers.split(",") if name] or [*peers]
    if unknown := [name for name in chosen if name not in peers]:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(peers)}")
    measured = [] if options.write else chosen
    missing = [one for one in measured if not measure(one, peers[one], options.only)]
    write()
    for name in missing:
        print(f"{name} could not be run: its last results are kept", file=sys.stderr)
    return bool(missing)


def measure(name: str, peer: Peer, only: str = "") -> bool:
    """Run the suite through a peer; returns whether it could be run."""
    cache = cache_folder()
    print(f"{name}: ", end="", flush=True)
    try:
        command = peer.install(name, cache)
    except PeerUnavailable as error:
        print(error)
        return False
    before = results().get(name)
    known = before.outcomes if before is not None and only else {}
    outcomes: dict[str, tuple[str, str]] = {}
    environ = {**peer.environ, "HOME": str(cache / "home"), "PYTHONWARNINGS": "ignore"}
    os.makedirs(environ["HOME"], exist_ok=True)
    with Judge() as judge, AdapterProcess(command, environ=environ) as adapter:
        for case in load_cases():
            if case.id in known and not case.id.startswith(only):
                outcomes[case.id] = known[case.id]
                continue
            outcome = run_case(case, judge, adapter)
            outcomes[case.id] = outcome.mark, plain(outcome, judge)
            if len(outcomes) == 1 and outcome.reason.startswith("the adapter ended"):
                print(outcome.reason)
                return False
    result = Result(peer.installed(name, cache), outcomes)
    RESULTS.mkdir(exist_ok=True)
    data = msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n"
    (RESULTS / f"{name}.json").write_bytes(data)
    kept = sum(mark == "kept" for mark, _ in outcomes.values())
    print(f"{result.version}: {kept} of {len(outcomes)} kept")
    return True


def plain(outcome: Outcome, judge: Judge) -> str:
    """The reason in a line, without what changes from run to run."""
    return " ".join(outcome.reason.replace(judge.url, "URL").split())[:200]


def results() -> dict[str, Result]:
    """The results that are kept, in the order of the peers."""
    decode = msgspec.json.Decoder(Result).decode
    files = {name: RESULTS / f"{name}.json" for name in load_peers()}
    return {name: decode(file.read_bytes()) for name, file in files.items() if file.exists()}


def write() -> None:
    """Write the page and its picture."""
    for path, text in pages().items():
        path.write_text(text, "utf-8")


def pages() -> dict[Path, str]:
    """The page and its picture, as they must be."""
    found = {name: (one.version, one.outcomes) for name, one in results().items()}
    cases, peers = load_cases(), load_peers()
    return {PAGE: render(cases, peers, found), PICTURE: render_picture(cases, found)}


if __name__ == "__main__":
    sys.exit(main())
