"""`mull fidelity`: how faithfully a client or a gateway keeps reasoning."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mull.neutral.errors import ConfigError
from mull.testing.fidelity import KINDS, AdapterProcess, Case, Judge, Outcome, load_cases, run_case
from mull.testing.fidelity.peers import PeerUnavailable, cache_folder, load_peers
from mull.tui.text.safe import one_line

__all__ = ["arguments", "run"]

EXIT_LOST = 1
DEFAULT_PORT = 8765
_LONGEST = 2000
_TEXT = """\
Holds conversations with a client, plays the providers on loopback, and reports what became
of the model's reasoning: kept, lost, leaked, refused, or not claimed. TARGET is one of

  a name     a library that the suite knows: it is installed into a cache of its own (--list)
  a file     your own adapter: a program that reads a case per line of standard input and
             reports a line; .py and .mjs files are started with Python and Node
  a URL      a gateway, asked by a client that forgets nothing; the gateway must forward its
             requests to http://127.0.0.1:PORT

fidelity/README.md in the repository describes the cases and the lines of an adapter.

exit status: 0 every case that the target claims is kept, 1 not every one, 2 usage error.
"""
_EXAMPLES = """\
examples:
  mull fidelity mull
  mull fidelity litellm --kind signature --kind order
  mull fidelity ./my_adapter.py --json
  mull fidelity http://localhost:4000 --port 8765
  mull fidelity litellm --case anthropic/interleaved/blocking
"""


def arguments(parser: ArgumentParser) -> None:
    """Add the target and the choice of cases."""
    parser.description, parser.epilog = _TEXT, _EXAMPLES
    parser.add_argument("target", metavar="TARGET", nargs="?", help="a name, a file or a URL")
    parser.add_argument("--list", action="store_true", help="list the known names and all cases")
    parser.add_argument(
        "--case",
        action="append",
        default=[],
        metavar="ID",
        help="run this case, and show its requests",
    )
    parser.add_argument(
        "--kind",
        action="append",
        default=[],
        choices=[*KINDS],
        metavar="KIND",
        help=f"run this kind: {', '.join(KINDS)}",
    )
    parser.add_argument("--json", action="store_true", help="print the outcomes as JSON")
    parser.add_argument(
        "--port",
        type=_port,
        default=DEFAULT_PORT,
        metavar="N",
        help=f"where a gateway's upstream listens (default {DEFAULT_PORT})",
    )


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) >= 1 << 16:
        raise ArgumentTypeError(f"not a port: {text}")
    return int(text)


def run(options: Namespace) -> int:
    """Judge the target, and report.

    Raises:
        ConfigError: the target or a case is unknown, or cannot be started.
    """
    if options.list:
        return _list()
    if options.target is None:
        raise ConfigError("name a client, an adapter's file or a gateway's URL; --list lists names")
    cases = _chosen(options)
    command, environ, port = _target(options)
    outcomes: dict[str, Outcome] = {}
    try:
        with Judge(port=port) as judge, AdapterProcess(command, environ=environ) as adapter:
            for case in cases:
                outcomes[case.id] = run_case(case, judge, adapter)
                if options.case and not options.json:
                    _show(case, judge, outcomes[case.id])
    except OSError as error:
        raise ConfigError(f"cannot start {command[0]} or listen on port {port}: {error}") from None
    if options.json:
        print(msgspec.json.encode(outcomes).decode())
    elif not options.case:
        _report(cases, outcomes)
    marks = Counter(outcome.mark for outcome in outcomes.values())
    return 0 if marks["kept"] + marks["not claimed"] == len(outcomes) else EXIT_LOST


def _list() -> int:
    for name, peer in load_peers().items():
        print(f"{name:15} {peer.kind:8} {peer.settings}")
    print()
    for case in load_cases():
        print(f"{case.id:40} {case.kind:12} {case.title}")
    return 0


def _chosen(options: Namespace) -> Sequence[Case]:
    cases = load_cases()
    if unknown := set(options.case) - {case.id for case in cases}:
        raise ConfigError(f"unknown case {min(unknown)}: `mull fidelity --list` lists them")
    return [
        case
        for case in cases
        if (not options.case or case.id in options.case)
        and (not options.kind or case.kind in options.kind)
    ]


def _target(options: Namespace) -> tuple[Sequence[str], Mapping[str, str], int]:
    """The command of the adapter, its environment, and the judge's port."""
    target, peers = options.target, load_peers()
    if target.startswith(("http://", "https://")):
        faithful = peers["mull"].script.with_name("faithful_adapter.py")
        reach = {"FIDELITY_GATEWAY": target.rstrip("/").removesuffix("/v1")}
        return [sys.executable, str(faithful)], reach, options.port
    if target in peers:
        peer = peers[target]
        if peer.packages:
            print(f"mull: installing {target}, once, if it is not there", file=sys.stderr)
        try:
            return peer.install(target, cache_folder()), peer.environ, 0
        except PeerUnavailable as error:
            raise ConfigError(f"cannot install {target}: {error}") from None
    file = Path(target)
    if not file.is_file():
        raise ConfigError(f"{target} is neither a file nor a known name; --list lists the names")
    starts = {".py": [sys.executable], ".mjs": ["node"], ".js": ["node"]}
    return [*starts.get(file.suffix, []), str(file.resolve())], {}, 0


def _show(case: Case, judge: Judge, outcome: Outcome) -> None:
    """One case in full: its reports, every request, the verdict."""
    _say(f"{case.id}: {case.title}")
    for source in case.sources:
        _say(f"  reported at {source}")
    for heard in judge.heard:
        body: Any = msgspec.json.encode(heard.body).decode()
        _say(f"  → {heard.endpoint} {body}")
        _say(f"  ← {'refused: ' + heard.refusal if heard.refusal else 'answered'}")
    _say(f"{outcome.mark}: {outcome.reason}" if outcome.reason else outcome.mark)


def _report(cases: Sequence[Case], outcomes: Mapping[str, Outcome]) -> None:
    """What was not kept, and a line for each kind."""
    for case in cases:
        outcome = outcomes[case.id]
        if outcome.mark not in ("kept", "not claimed"):
            _say(f"{outcome.mark:8} {case.id}: {outcome.reason}")
    print()
    for kind in KINDS:
        marks = Counter(outcomes[case.id].mark for case in cases if case.kind == kind)
        claimed = sum(marks.values()) - marks["not claimed"]
        if claimed:
            _say(f"{kind:12} {marks['kept']:3} of {claimed:3} kept")
    marks = Counter(outcome.mark for outcome in outcomes.values())
    _say(", ".join(f"{count} {mark}" for mark, count in marks.most_common()))


def _say(line: str) -> None:
    """A line; text from a client is neutralised."""
    print(one_line(line, _LONGEST))
