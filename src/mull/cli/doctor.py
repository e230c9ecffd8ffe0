"""`mull doctor`: what is set up, what is missing, and with --live whether reasoning works."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from mull._version import __version__
from mull.agent.checks import check_live
from mull.agent.discover import discover
from mull.agent.engine import Engine
from mull.cli import interrupt, setup
from mull.client.access import Access, missing_key
from mull.local import weights
from mull.neutral.errors import LocalError, RemoteError
from mull.neutral.extras import EXTRAS, install_command, is_installed
from mull.neutral.target import Target
from mull.settings.addresses import without_secrets
from mull.store.paths import config_dir, data_dir

__all__ = ["arguments", "run"]

_MARKS = {True: "✓", False: "✗", None: "–"}


def arguments(parser: ArgumentParser) -> None:
    """Add the model and whether to send requests to it."""
    parser.add_argument("model", nargs="?", metavar="PROVIDER/MODEL", help="check this model")
    parser.add_argument(
        "--live",
        action="store_true",
        help="send a few small requests to the model; they cost money",
    )
    parser.add_argument("--base-url", metavar="URL", help="base URL of the endpoint")
    setup.add_arguments(parser)


def run(options: Namespace) -> int:
    """Print the findings; 1 if something that was asked for does not work.

    Raises:
        LocalError: the model or an option is invalid.
    """
    engine = Engine(setup.load(options))
    for label, text in _configuration(engine):
        print(f"  {label:<12} {text}")
    name = options.model or engine.setup.settings.snapshot().model
    if name is None:
        print("\nNo model is configured. `mull doctor PROVIDER/MODEL` checks one.")
        return 0
    target = engine.target(name, base_url=options.base_url)
    good = _look_at(engine, target, options.base_url)
    if options.live and good:
        good = interrupt.run(_live(engine, name, options.base_url))
    elif not options.live:
        print("\nNothing was sent. --live tests the model with a few small requests.")
    return 0 if good else 1


def _configuration(engine: Engine) -> Iterator[tuple[str, str]]:
    yield "mull", f"{__version__}, Python {sys.version.split()[0]}"
    config = config_dir() / "config.toml"
    yield "config", f"{config}{'' if config.exists() else ' (not there: nothing is changed)'}"
    yield "data", str(data_dir())
    yield "profile", engine.setup.profile_name or "none"
    providers = engine.setup.catalog().providers
    with_key = [p.id for p in providers.values() if engine.keys.places(p.id, p.env)]
    yield "keys", ", ".join(with_key) or "none (`mull keys set PROVIDER`)"
    servers = [
        f"{found.provider} ({len(found.models)})" for found in interrupt.run(discover(engine))
    ]
    yield "local", ", ".join(servers) or "no model server found on this machine"
    has_model = weights.is_installed()
    told = "installed (local/smollm2)" if has_model else "not installed (`mull local install`)"
    yield "embedded", told
    yield from _extras()
    yield from _sandbox(str(engine.setup.settings.snapshot()["tools.sandbox"]))


def _sandbox(wish: str) -> Iterator[tuple[str, str]]:
    """The sandbox for commands that nobody approves, and what it lacks."""
    from mull.agent.sandbox.cage import find_tier

    verdict = find_tier()
    if verdict.tier is None:
        yield "sandbox", f"none: {verdict.words}"
        return
    yield "sandbox", f"{verdict.tier.words} (tools.sandbox is {wish})"
    for reason in verdict.reasons:
        yield "", f"not {reason}"
    for gap in verdict.tier.gaps:
        yield "", f"but {gap}"


def _extras() -> Iterator[tuple[str, str]]:
    extras = [name for name in EXTRAS if name != "local"]  # the row of the embedded model says it
    yield "extras", ", ".join(filter(is_installed, extras)) or "none"
    if absent := [name for name in extras if not is_installed(name)]:
        yield "missing", f"{', '.join(absent)} (`{install_command('NAME')}`)"


def _look_at(engine: Engine, target: Target, base_url: str | None) -> bool:
    print(f"\n{target.name}")
    for note in target.notes:
        print(f"  – {note}")
    try:
        way = engine.way_to(target, base_url=base_url)
    except LocalError as error:
        print(f"  ✗ {error}")
        return False
    key = "key found" if way.key else "no key"
    if way.cloud is not None:
        key = f"login found ({way.cloud.place})"
    needed = "" if missing_key(target, way) is None else ", and it may not need one"
    where = _address(engine, target, base_url, way) or "starts on this machine on first use"
    print(f"  ✓ {where}, {target.dialect}, {key}{needed}")
    return True


def _address(engine: Engine, target: Target, base_url: str | None, way: Access) -> str:
    """The address as written: the value of a variable, or a part that looks like a key, may be a
    secret.
    """
    own = engine.setup.config.providers.get(target.provider.lower())
    written = base_url or (own and own.base_url) or target.endpoint or ""
    return without_secrets(written) if "${" in written else without_secrets(way.base_url)


async def _live(engine: Engine, name: str, base_url: str | None) -> bool:
    good = True
    try:
        async for check in check_live(engine, name, base_url):
            print(f"  {_MARKS[check.good]} {check.name}: {check.said}", flush=True)
            good = good and check.good is not False
    except RemoteError as error:
        print(f"  ✗ {error}")
        return False
    finally:
        await engine.close()
    return good
