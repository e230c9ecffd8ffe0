"""`mull sessions context`: what the next request of a stored session would contain, and what the
session has cost. Nothing is sent, and the session may be running elsewhere.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import asdict, replace

from mull.cli import interrupt, setup
from mull.cli.setup import tell
from mull.neutral.errors import SessionError

if TYPE_CHECKING:
    from mull.agent.engine import Engine
    from mull.history.log import Record
    from mull.neutral.target import Target
    from mull.policy.cost import CostSum
    from mull.policy.meter import Meter
    from mull.policy.prepare import Prepared
    from mull.settings.layers import Snapshot
    from mull.store.sessions.values import SessionInfo, SessionStore

__all__ = ["add_context", "add_session_command", "engine_for", "stored_session"]


def add_context(actions: _SubParsersAction[ArgumentParser]) -> None:
    """Add the subcommand `context`."""
    line = "show what the next request would contain and what the session cost; sends nothing"
    parser = add_session_command(actions, "context", line)
    setup.add_model_argument(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(action=_context)


def add_session_command(
    actions: _SubParsersAction[ArgumentParser], name: str, line: str
) -> ArgumentParser:
    """A subcommand about one session that accepts settings."""
    parser = actions.add_parser(name, help=line, description=line)
    parser.add_argument(
        "session",
        metavar="SESSION",
        nargs="?",
        help="id or name (default: this folder's last session)",
    )
    setup.add_arguments(parser)
    return parser


def stored_session(reference: str | None) -> tuple[SessionStore, SessionInfo]:
    """The store and the requested session: by id or name, or the last one of this folder.

    Raises:
        SessionError: it does not exist.
    """
    from mull.store.sessions.sqlite import open_sessions, this_folder

    store, folder = open_sessions(tell), this_folder()
    found = store.last(folder) if reference is None else store.find(reference, folder)
    if found is None:
        raise SessionError("no session is stored for this folder: see `mull sessions list --all`")
    return store, found


def engine_for(options: Namespace, info: SessionInfo) -> Engine:
    """The engine for a session, its settings restored below those of the command line.

    Raises:
        LocalError: a setting or the model is invalid.
    """
    from mull.agent.engine import Engine
    from mull.agent.session import restored

    engine = Engine(setup.load(options))
    engine.setup.settings = restored(engine.setup.settings, info, tell)
    return engine


def _context(options: Namespace) -> int:
    from mull.agent.exports import pricing
    from mull.policy.cost import add_costs
    from mull.policy.meter import meter_of
    from mull.transcripts.transcript import turn_rows

    store, found = stored_session(options.session)
    info, records = store.load(found.id)
    if options.model is not None:
        info = replace(info, model=options.model)
    engine = engine_for(options, info)
    target = engine.target(info.model, base_url=info.base_url)
    target = interrupt.run(engine.inspected(target, base_url=info.base_url))
    snapshot = engine.setup.snapshot_for(target)
    prepared = _prepared(engine, info, records, target, snapshot)
    meter = meter_of(prepared)
    cost = add_costs(row.cost for row in turn_rows(records, pricing(engine.setup)))
    if options.json:
        _print_json(meter, cost)
        return 0
    for line in _lines(meter, cost, snapshot["compression.threshold"]):
        print(line)
    for note in prepared.notes:
        if note.requested is None:
            print(f"{'Warning: ' if note.warning else ''}{note.text}")
    return 0


def _prepared(
    engine: Engine,
    info: SessionInfo,
    records: Sequence[Record],
    target: Target,
    snapshot: Snapshot,
) -> Prepared:
    """The request that would be sent now, without tools: those depend on how it is continued."""
    from mull.history.log import Log
    from mull.neutral.request import RequestOptions
    from mull.policy.prepare import prepare

    usual = engine.setup.parameters
    options = RequestOptions(
        system=info.system, max_tokens=usual.max_tokens, temperature=usual.temperature
    )
    counter = engine.counter_for(target)
    return prepare(Log(records=records), snapshot, target, options, counter=counter)


def _lines(meter: Meter, cost: CostSum, threshold: float) -> Iterator[str]:
    share = "" if meter.share is None else f" ({meter.share:.0%} of the usable window)"
    yield f"{meter}{share}"
    yield from (f"  {name:<22}{tokens:>11,}" for name, tokens in meter.rows)
    left = (meter.thinking_left_out, "thinking"), (meter.other_left_out, "other content")
    told = " and ".join(f"{tokens:,} of {what}" for tokens, what in left if tokens)
    not_sent = f"; not sent: {told}" if told else ""
    yield f"Stored: {meter.raw:,} tokens by mull's own count{not_sent}."
    said = f"Counted by {meter.counter}, {'exact' if meter.exact else 'an estimate'}."
    if meter.reported is not None:
        said += f" The provider counted {meter.reported:,} tokens in the last request."
    yield said
    yield "Tool definitions are not counted here: they depend on how you continue the session."
    if meter.usable is None:
        yield "Context window: unknown; set it with context.limit."
    else:
        yield f"Compresses automatically above {round(meter.usable * threshold):,} tokens."
    yield f"Cost so far: {cost}."


def _print_json(meter: Meter, cost: CostSum) -> None:
    import msgspec

    value = {
        "meter": str(meter),
        **asdict(meter),
        "parts": asdict(meter.parts),
        "counted": asdict(meter.counted),
        "stored": asdict(meter.stored),
        "thinkingLeftOut": meter.thinking_left_out,
        "otherLeftOut": meter.other_left_out,
        "cost": None if cost.unknown else cost.known,
    }
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
