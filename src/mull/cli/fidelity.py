"""`mull fidelity`: how faithfully a client or a gateway keeps reasoning."""

from __future__ import annotations

import socket
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from mull.cli.ask import EXIT
from mull.neutral.errors import ConfigError
from mull.settings.words import closest
from mull.testing.fidelity import (
    KINDS,
    AdapterFailed,
    AdapterProcess,
    Case,
    Judge,
    Outcome,
    load_cases,
    load_pairs,
    run_cases,
)
from mull.testing.fidelity.case import Reply, find_suite
from mull.testing.fidelity.peers import Peer, PeerUnavailable, cache_folder, find_peer, load_peers
from mull.testing.fidelity.runner import PATIENCE, SLOW_START, command_of
from mull.testing.fidelity.verdict import Mark
from mull.tui.text.safe import one_line

__all__ = ["arguments", "run"]

EXIT_LOST = 1
DEFAULT_PORT = 8765
_LONGEST = 2000
_LONGEST_SHOWN = 20_000
_MOST_LINES = 3
_STEP = 50
_CONNECT_LIMIT = 10.0
_UNCOUNTED: Sequence[Mark] = ("not claimed", "not measured")
_TEXT = """\
Holds conversations with a client, plays the providers on loopback, and reports what became
of the model's reasoning: kept, lost, leaked, refused, not claimed (the target does not offer
this), or not measured (the run itself failed). TARGET is one of

  a name     a library or gateway that the suite knows (--list): it is installed into a cache
             of its own, in its newest version or in the one of NAME==VERSION
  a file     your own adapter: a program that reads a case per line of standard input and
             reports a line; .py and .mjs files are started with Python and Node
  a URL      a gateway, asked by clients of each API; it must forward its requests to
             http://127.0.0.1:PORT. The environment variable FIDELITY_KEY is its key

fidelity/README.md in the repository describes the cases and the lines of an adapter.

exit status: 0 every case that the target claims is kept, 1 not every one, 2 usage error, or
nothing could be measured, 130 interrupted.
"""
_EXAMPLES = """\
examples:
  mull fidelity mull
  mull fidelity litellm --kind signature --kind order
  mull fidelity litellm==1.106.2
  mull fidelity ./my_adapter.py --json
  mull fidelity http://localhost:4000 --port 8765
  mull fidelity litellm-proxy --kind crossing
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
        help="run this case, and show its requests and answers",
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
    parser.add_argument(
        "--header",
        action="append",
        default=[],
        type=_header,
        metavar="'NAME: VALUE'",
        help="send this header to a gateway",
    )
    parser.add_argument(
        "--fresh", action="store_true", help="renew the installed packages of a name first"
    )


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) >= 1 << 16:
        raise ArgumentTypeError(f"not a port: {text}")
    return int(text)


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not (colon and name.strip().isascii() and name.strip() and text.isprintable()):
        raise ArgumentTypeError("a header is written NAME: VALUE")
    return name.strip().lower(), value.strip()


class _Target(NamedTuple):
    """What is judged: how its adapter is started, the judge's port, its name and version."""

    command: Sequence[str]
    environ: Mapping[str, str]
    port: int = 0
    start: float = PATIENCE
    label: str = ""


def run(options: Namespace) -> int:
    """Judge the target, and report.

    Raises:
        ConfigError: the target or a case is unknown, or nothing can be measured.
    """
    if options.list:
        return _list()
    if options.target is None:
        raise ConfigError("name a client, an adapter's file or a gateway's URL; --list lists names")
    try:
        peer = find_peer(options.target)
        cases = _chosen(options, peer)
        target = _target(options, peer)
    except PeerUnavailable as error:
        raise ConfigError(f"cannot install {options.target}: {error}") from None
    outcomes: dict[str, Outcome] = {}
    try:
        is_reached = _play(cases, target, outcomes, shows=bool(options.case) and not options.json)
    except KeyboardInterrupt:
        _tell(f"stopped after {len(outcomes)} of {len(cases)} cases")
        if outcomes:
            _print(options, cases, outcomes, target.label)
        return EXIT["interrupted"]
    if _is_address(options.target) and not is_reached:
        raise ConfigError(_unreached(outcomes, options.port))
    _print(options, cases, outcomes, target.label)
    marks = Counter(outcome.mark for outcome in outcomes.values())
    return 0 if marks["kept"] + marks["not claimed"] == len(outcomes) else EXIT_LOST


def _print(
    options: Namespace, cases: Sequence[Case], outcomes: Mapping[str, Outcome], label: str
) -> None:
    if options.json:
        print(msgspec.json.encode(outcomes).decode())
    elif not options.case:
        _report([case for case in cases if case.id in outcomes], outcomes, label)


def _unreached(outcomes: Mapping[str, Outcome], port: int) -> str:
    """Why there is no verdict on a gateway that forwarded nothing."""
    reasons = Counter(one.reason.rpartition("never came: ")[2] for one in outcomes.values())
    told = f"nothing could be measured: the gateway forwarded no request to 127.0.0.1:{port}"
    return f"{told}; most often: {reasons.most_common(1)[0][0]}"


def _play(
    cases: Sequence[Case], target: _Target, outcomes: dict[str, Outcome], *, shows: bool
) -> bool:
    """Add the outcomes by the id of their case, with progress on standard error; returns whether
    the endpoints were ever asked.
    """
    is_reached = False
    with ExitStack() as stack:
        try:
            judge = stack.enter_context(Judge(port=target.port))
        except OSError as error:
            told = f"cannot listen on port {target.port}: {error.strerror or error}"
            raise ConfigError(f"{told}; --port names another") from None
        adapter = stack.enter_context(
            AdapterProcess(
                target.command, environ=target.environ, start=target.start, on_line=_Heard()
            )
        )
        _tell(f"waiting for the first report, at most {target.start:.0f} s")
        try:
            for case, outcome in run_cases(cases, judge, adapter):
                outcomes[case.id] = outcome
                is_reached = is_reached or bool(judge.heard)
                if shows:
                    _show(case, judge, adapter, outcome)
                elif len(outcomes) % _STEP == 0:
                    _tell(f"{len(outcomes)} of {len(cases)} cases")
        except AdapterFailed as error:
            raise ConfigError(f"nothing could be measured: {error}") from None
    return is_reached


class _Heard:
    """Tells the first lines of an adapter that are no reports."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, line: str) -> None:
        self._count += 1
        if self._count <= _MOST_LINES:
            more = "; more lines are passed over" if self._count == _MOST_LINES else ""
            _tell(f"the adapter printed a line that is no report: {line}{more}")


def _tell(line: str) -> None:
    print(f"mull: {one_line(line, _LONGEST)}", file=sys.stderr, flush=True)


def _list() -> int:
    for name, peer in load_peers().items():
        print(f"{name:15} {peer.kind:8} {peer.settings}")
    print()
    for case in [*load_cases(), *load_pairs()]:
        print(f"{case.id:40} {case.kind:12} {case.title}")
    return 0


def _chosen(options: Namespace, peer: Peer | None) -> Sequence[Case]:
    """The cases that are asked for. Pairs are for gateways, and for adapters when named."""
    cases, pairs = load_cases(), load_pairs()
    if unknown := set(options.case) - {case.id for case in (*cases, *pairs)}:
        raise ConfigError(f"unknown case {min(unknown)}: `mull fidelity --list` lists them")
    if _is_address(options.target) or (peer and peer.crosses_apis):
        cases += pairs
    elif {"crossing", *(pair.id for pair in pairs)} & {*options.kind, *options.case}:
        if peer:
            raise ConfigError(f"{options.target} is no gateway: it speaks no API to clients")
        cases += pairs
    chosen = [
        case
        for case in cases
        if (not options.case or case.id in options.case)
        and (not options.kind or case.kind in options.kind)
    ]
    if not chosen:
        kinds = {case.id: case.kind for case in cases if case.id in options.case}
        told = ", ".join(f"{name} is of kind {kind}" for name, kind in kinds.items())
        raise ConfigError(f"no case is left: {told or 'none is of that kind'}")
    return chosen


def _is_address(target: str) -> bool:
    return target.startswith(("http://", "https://"))


def _target(options: Namespace, peer: Peer | None) -> _Target:
    """How the target is started. A name is installed first."""
    target = options.target
    if _is_address(target):
        return _gateway(target, options)
    if options.header:
        raise ConfigError(f"--header is for the URL of a gateway, which {target} is not")
    if peer is not None:
        return _installed(target, peer, renew=options.fresh)
    if options.fresh:
        raise ConfigError(f"--fresh is for known names, which {target} is not")
    file = Path(target)
    if not file.is_file():
        near = closest(target.partition("==")[0], load_peers())
        hint = f"did you mean {near}?" if near else "--list lists the names"
        raise ConfigError(f"{target} is neither a file nor a known name; {hint}")
    return _Target(*command_of(file))


def _gateway(target: str, options: Namespace) -> _Target:
    """A gateway that is running: it must at least accept connections."""
    try:
        parts = urlsplit(target)
        host, port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise ConfigError(f"not the URL of a gateway: {error}") from None
    if not host:
        raise ConfigError(f"not the URL of a gateway: {target} has no host")
    if parts.username is not None or parts.query or parts.fragment:
        raise ConfigError("the URL of a gateway is scheme, host, port and path; --header adds keys")
    try:
        socket.create_connection((host, port), _CONNECT_LIMIT).close()
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot connect to {host}, port {port}: {why}") from None
    faithful = find_suite() / "adapters" / "faithful_adapter.py"
    environ = {
        "FIDELITY_GATEWAY": target.rstrip("/").removesuffix("/v1"),
        "FIDELITY_HEADERS": msgspec.json.encode(dict(options.header)).decode(),
    }
    return _Target([sys.executable, str(faithful)], environ, options.port)


def _installed(target: str, peer: Peer, *, renew: bool) -> _Target:
    cache, name = cache_folder(), target.partition("==")[0]
    if peer.packages and (renew or peer.age(name, cache) is None):
        _tell(f"installing {target} into {cache}; this can take minutes")
    command = peer.install(name, cache, renew=renew)
    label = f"{name} {peer.installed(name, cache)}".strip()
    _tell(f"running {label}")
    return _Target(command, peer.environ, start=SLOW_START, label=label)


def _show(case: Case, judge: Judge, adapter: AdapterProcess, outcome: Outcome) -> None:
    """One case in full: its reports, every request and answer, what the client made of it."""
    _say(f"{case.id}: {case.title}")
    for source in case.sources:
        _say(f"  reported at {source}")
    for heard in judge.heard:
        _say(f"  → {heard.endpoint} {_json(heard.body)}", _LONGEST_SHOWN)
        if heard.reply is None:
            _say(f"  ← refused: {heard.refusal}")
        else:
            _say(f"  ← answered {_answer(case, heard.reply)}", _LONGEST_SHOWN)
    _say(f"  the client reported {_json(adapter.report)}", _LONGEST_SHOWN)
    _say(f"{outcome.mark}: {outcome.reason}" if outcome.reason else outcome.mark)


def _answer(case: Case, reply: Reply) -> str:
    """The bytes of an answer, as one line."""
    pieces = reply.pieces()
    if pieces is None or (case.call == "blocking" and reply.document is not None):
        return _json(reply.document)
    return b"".join(pieces).decode(errors="replace").replace("\r", "").replace("\n", " ")


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _report(cases: Sequence[Case], outcomes: Mapping[str, Outcome], label: str) -> None:
    """What was not kept, why the rest does not count, and a line for each kind."""
    for case in cases:
        outcome = outcomes[case.id]
        if outcome.mark not in ("kept", *_UNCOUNTED):
            _say(f"{outcome.mark:8} {case.id}: {outcome.reason}")
    for mark in _UNCOUNTED:
        reasons = Counter(one.reason for one in outcomes.values() if one.mark == mark)
        for reason, count in reasons.most_common():
            _say(f"{mark}, {count} case{'s' * (count > 1)}: {reason}")
    print()
    for kind in KINDS:
        marks = Counter(outcomes[case.id].mark for case in cases if case.kind == kind)
        claimed = sum(marks.values()) - sum(marks[mark] for mark in _UNCOUNTED)
        if claimed:
            _say(f"{kind:12} {marks['kept']:3} of {claimed:3} kept")
    marks = Counter(outcome.mark for outcome in outcomes.values())
    told = ", ".join(f"{count} {mark}" for mark, count in marks.most_common())
    _say(f"{label}: {told}" if label else told)


def _say(line: str, longest: int = _LONGEST) -> None:
    """A line; text from a client is neutralised."""
    print(one_line(line, longest))
