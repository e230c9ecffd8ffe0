"""`mull models`: lists models, shows what mull knows about one, and downloads newer data.

`show` and `update` are actions rather than search words; a model of such a name is found by its
provider's name.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from mull.agent.setup import Setup
from mull.auth.clouds import CLOUDS
from mull.cli import setup
from mull.cli.model_page import page, page_json, price, steering
from mull.neutral.errors import ConfigError, RemoteError
from mull.store.paths import data_dir

if TYPE_CHECKING:
    from mull.agent.discover import Served
    from mull.catalog.update import Update
    from mull.neutral.target import ModelFacts, Target

__all__ = ["arguments", "run"]

MODELS_DEV = "https://models.dev/api.json"
_TIMEOUT = 60.0
_NAMED = 8
_FORMS = f"""\
  mull models [WORD...]            list the models whose names contain every word
  mull models show NAME            show one model, and what each thinking level becomes
  mull models update               download newer data from {MODELS_DEV}
"""


def arguments(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.epilog = _FORMS
    parser.add_argument("words", nargs="*", metavar="WORD", help="see below")
    parser.add_argument("--reasoning", action="store_true", help="list only reasoning models")
    parser.add_argument("--provider", metavar="P", help="list only this provider's models")
    parser.add_argument(
        "--local", action="store_true", help="list the models of servers on this machine"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--from", dest="source", metavar="URL|FILE", help="update: where to download from"
    )
    setup.add_arguments(parser)


def run(options: Namespace) -> int:
    """List, show or update, depending on the first word."""
    if options.local:
        return _list_local(options)
    first, *rest = options.words or [""]
    if options.source is not None and first != "update":
        raise ConfigError("--from only works with `mull models update`")
    if first == "update":
        if rest:
            raise ConfigError(f"`mull models update` takes no name, but got {' '.join(rest)!r}")
        return _update(options.source or MODELS_DEV)
    if first == "show":
        if len(rest) != 1:
            raise ConfigError("give one model: mull models show NAME")
        return _show(options, rest[0])
    return _list(options)


def _list_local(options: Namespace) -> int:
    from mull.agent.discover import discover
    from mull.agent.engine import LOCAL_PROVIDERS, Engine
    from mull.cli import interrupt

    found = interrupt.run(discover(Engine(setup.load(options))))
    if options.json:
        rows = [{**msgspec.structs.asdict(one), "models": one.models} for one in found]
        print(msgspec.json.format(msgspec.json.encode(rows)).decode())
        return 0
    for server in found:
        for one in server.served:
            print("  ".join((f"{server.provider}/{one.id}", server.base_url, *_abilities(one))))
        if server.locked:
            print(
                f"{server.provider} at {server.base_url} requires a key: store it with "
                f"`mull keys set {server.provider}`",
                file=sys.stderr,
            )
    if not any(server.models or server.locked for server in found):
        print(
            f"no model server found on this machine; looked for {', '.join(LOCAL_PROVIDERS)}",
            file=sys.stderr,
        )
    return 0


def _abilities(served: Served) -> Iterator[str]:
    """What the server says about a model, in a few words."""
    if served.window:
        yield f"{'' if served.settled else 'at most '}{served.window:,} tokens"
    told = (served.tools, "tools"), (served.images, "images"), (served.thinks, "thinking")
    if words := [word for told, word in told if told]:
        yield ", ".join(words)


def _show(options: Namespace, name: str) -> int:
    from mull.agent.engine import Engine
    from mull.cli import interrupt

    ready = setup.load(options)
    ready.settings.set_model(name)
    target = interrupt.run(Engine(ready).inspected(ready.resolve(name)))
    snapshot = ready.snapshot_for(target)
    header = ready.catalog().header
    if options.json:
        print(page_json(target, snapshot, header, ready.keys))
    else:
        lines = page(target, snapshot, header, ready.keys, _reach(ready, target))
        print("\n".join(lines))
    return 0


def _reach(ready: Setup, target: Target) -> list[tuple[str, str]]:
    """How a target is reached whose address or key is constructed on this machine."""
    if target.compat.auth not in CLOUDS and "${" not in (target.endpoint or ""):
        return []
    from mull.client.access import access, missing_key
    from mull.store.keys import Keys

    try:
        way = access(target, ready.config, Keys(data_dir(), os.environ))
    except ConfigError as error:
        return [("missing", str(error))]
    if problem := missing_key(target, way):
        return [("address", way.base_url), ("missing", problem)]
    login = [("login", way.cloud.place)] if way.cloud is not None else []
    return [("address", way.base_url), *login]


def _list(options: Namespace) -> int:
    catalog = setup.load(options).catalog()
    query = " ".join(options.words)
    found = catalog.search(query, options.provider, True if options.reasoning else None)
    models = ((f"{p}/{model}", catalog.facts(p, model)) for p, model in found)
    if options.json:
        print(_list_json(models))
    elif found:
        _print_table([_cells(name, facts) for name, facts in models])
    print(f"{len(found):,} model{'' if len(found) == 1 else 's'}", file=sys.stderr)
    return 0 if found else 1


def _list_json(models: Iterable[tuple[str, ModelFacts]]) -> str:
    import msgspec

    rows: list[dict[str, Any]] = []
    for name, facts in models:
        provider, _, model = name.partition("/")
        rows.append({"provider": provider, "model": model, **msgspec.to_builtins(facts)})
    return msgspec.json.encode(rows).decode()


def _cells(name: str, facts: ModelFacts) -> tuple[str, ...]:
    cost = facts.cost or {}
    return (
        name,
        f"{facts.limit.context:,}" if facts.limit.context else "?",
        f"{facts.limit.output:,}" if facts.limit.output else "?",
        f"{price(cost.get('input'))}/{price(cost.get('output'))}" if cost else "?",
        steering(facts),
    )


def _print_table(rows: list[tuple[str, ...]]) -> None:
    titles = ("model", "context", "output", "$ per M in/out", "thinking")
    widths = [max(len(row[i]) for row in (titles, *rows)) for i in range(len(titles))]
    width = _width()
    for name, context, output, cost, thinking in (titles, *rows):
        line = "  ".join(
            (
                name.ljust(widths[0]),
                context.rjust(widths[1]),
                output.rjust(widths[2]),
                cost.rjust(widths[3]),
                thinking,
            )
        )
        print(line if width is None or len(line) <= width else line[: width - 1] + "…")


def _width() -> int | None:
    """The terminal's width; None if the output goes to a file or a pipe."""
    if not sys.stdout.isatty():
        return None
    import shutil

    return max(20, shutil.get_terminal_size().columns)


def _update(source: str) -> int:
    from datetime import date

    from mull.catalog.load import load, shipped
    from mull.catalog.update import check_update
    from mull.store.catalog import load_base, save_update

    current = load_base(data_dir(), setup.tell)
    try:
        document = _fetch(source)
    except RemoteError as error:
        print(f"mull: {error}; the catalog is unchanged", file=sys.stderr)
        return 1
    update = check_update(document, current, date.today().isoformat(), shipped())
    path = save_update(data_dir(), update.data)
    have = sum(1 for _ in load(base=update.data).pairs())
    had = sum(1 for _ in current.pairs())
    print(f"{have:,} models (before: {had:,}), stored in {path}")
    for line in _told(update):
        print(f"mull: {line}", file=sys.stderr)
    return 0


def _told(update: Update) -> Iterator[str]:
    """What was left out of the document, or changed."""
    if update.added:
        yield (
            f"new providers: {_some(update.added)}; none of them is sent a key until "
            "you store one with `mull keys set NAME`"
        )
    if update.pinned:
        yield f"addresses and key variables left unchanged: {_some(update.pinned)}"
    if update.left_out:
        yield f"{len(update.left_out)} unusable entries: {_some(update.left_out, '; ')}"


def _some(names: Sequence[str], between: str = ", ") -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return between.join(names[:_NAMED]) + more


def _fetch(source: str) -> bytes:
    from mull.catalog.update import MAX_BYTES, is_private

    if "://" in source:
        if not is_private(source):
            raise ConfigError(f"{source!r} is not encrypted: anyone on the way could change it")
        from mull.client.download import download

        return download(source, MAX_BYTES, _TIMEOUT)
    from mull.store.files import read_bytes

    data = read_bytes(Path(source))
    if data is None:
        raise ConfigError(f"no such file: {source!r}")
    return data
