"""`mull serve`: serves any reasoning model to any client without losing its thinking."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from mull.cli.serve_reach import print_setup
from mull.cli.serve_setup import load_gateway
from mull.gateway.setups import SETUPS
from mull.logs import logging_to_stderr
from mull.neutral.errors import ConfigError, MullError
from mull.store.config import CONFIG_FILE
from mull.store.keys import KEYS_FILE
from mull.store.paths import config_dir, data_dir
from mull.store.serve import MOST_WORKERS, ServeConfig, socket_path

__all__ = ["ACTIONS", "address_of", "arguments", "run"]

if TYPE_CHECKING:
    from mull.agent.engine import Engine
    from mull.gateway.observing import Observer
    from mull.gateway.reload import Files

ACTIONS: dict[str, tuple[str, str]] = {
    "token": ("mull.cli.serve_token", "add, list, change and revoke client tokens"),
    "usage": ("mull.cli.serve_usage", "show the usage of each client and model"),
    "run": ("mull.cli.serve_run", "start a client that uses this gateway"),
    "repair": ("mull.cli.serve_repair", "save what can be read of a damaged serve.db"),
}
"""Subcommands: a module with `arguments(parser)` and `run(options)`, and a line of help. Without a
subcommand the gateway itself runs."""

_TEXT = """\
Serves models to clients of OpenAI's Chat Completions or Responses API, Anthropic's
Messages API or Gemini's generateContent, whichever API the model's provider offers.
If a client drops a model's reasoning, mull restores it before it sends the next
request.

Models are configured in config.toml:

  [serve.models.kimi]
  model = "moonshotai/kimi-k2-thinking/high"

Without such a table mull serves every model it has a key for under the name
provider/model, those of local servers at their usual addresses, and the embedded model.
With -m it serves one model under every name.
"""
_EXAMPLES = """\
examples:
  mull serve
  mull serve -m moonshotai/kimi-k2-thinking
  mull serve --check
  mull serve --print-setup claude-code
  mull serve run claude-code
"""


def arguments(parser: ArgumentParser) -> None:
    """Add the options and subcommands of `mull serve`."""
    parser.description, parser.epilog = _TEXT, _EXAMPLES
    parser.add_argument("-m", "--model", metavar="MODEL", help="serve this model under every name")
    parser.add_argument("--workers", metavar="N", type=_workers, help="serve with N processes")
    parser.add_argument("--worker", type=int, help=SUPPRESS)
    parser.add_argument(
        "--listen", metavar="HOST:PORT", help="listen here instead of on 127.0.0.1:8484"
    )
    parser.add_argument(
        "--config", metavar="FILE", type=Path, help="use this file instead of config.toml"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="print what would be served and what is missing, then exit",
    )
    parser.add_argument(
        "--watch", action="store_true", help="print requests, thinking and answers as they stream"
    )
    parser.add_argument(
        "--print-setup",
        metavar="CLIENT",
        choices=SETUPS,
        help=f"print how to set up a client for this gateway: {', '.join(SETUPS)}",
    )
    parser.set_defaults(action=_serve)
    actions = parser.add_subparsers(metavar="ACTION")
    for name, (module, line) in ACTIONS.items():
        action = import_module(module)
        command = actions.add_parser(name, help=line, description=line)
        command.formatter_class = parser.formatter_class
        action.arguments(command)
        command.set_defaults(action=action.run)


def run(options: Namespace) -> int:
    """Serve, or run the chosen subcommand.

    Raises:
        LocalError: the configuration cannot be used.
    """
    status: int = options.action(options)
    return status


def _workers(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST_WORKERS:
        raise ArgumentTypeError(f"use a whole number from 1 to {MOST_WORKERS}")
    return int(text)


def _serve(options: Namespace) -> int:
    """Serve until stopped."""
    from mull.gateway.reload import Files

    files = Files(options.config or config_dir() / CONFIG_FILE, data_dir() / KEYS_FILE)
    engine, config = load_gateway(options)
    if options.check:
        return _check(engine, config, options.model)
    if options.print_setup is not None:
        return print_setup(options, engine, config)
    with logging_to_stderr():
        return _serve_on(options, files, engine, config)


def _serve_on(options: Namespace, files: Files, engine: Engine, config: ServeConfig) -> int:
    """Open the sockets and serve until stopped."""
    from mull.gateway.listening import open_sockets, run_fast
    from mull.gateway.serve import check_listen
    from mull.gateway.tracing import set_up_tracing

    if missing := set_up_tracing(os.environ):
        print(f"mull: {missing}", file=sys.stderr)
    if options.worker is not None:
        opened = [socket.socket(fileno=options.worker)]
        run_fast(_run(options, files, engine, config, opened))
        return 0
    asyncio.run(check_listen(config))
    opened, at = open_sockets(config), socket_path(config.listen)
    try:
        with suppress(KeyboardInterrupt):  # where the event loop cannot handle signals
            run_fast(_run(options, files, engine, config, opened))
    finally:
        for one in opened:
            one.close()
        if at is not None:
            at.unlink(missing_ok=True)
    return 0


def address_of(config: ServeConfig) -> str:
    """The address of the gateway for clients."""
    if socket_path(config.listen) is not None:
        return config.listen
    return f"{'http' if config.cert is None else 'https'}://{config.listen}"


async def _run(
    options: Namespace,
    files: Files,
    engine: Engine,
    config: ServeConfig,
    opened: Sequence[socket.socket],
) -> None:
    from mull.gateway.serve import build_app, reloader_of, seal_keys, serve, supervise
    from mull.gateway.signals import Signals

    def ready() -> None:
        print(f"mull serves at {address_of(config)}; press Ctrl-C to stop", flush=True)

    if config.workers > 1 and options.worker is None:
        if sys.platform == "win32":
            raise ConfigError(
                "Windows cannot share a socket among several workers: use --workers 1"
            )
        seal_keys()  # before any worker starts, so that only one is generated
        command = [sys.executable, "-P", "-m", "mull", *sys.argv[1:], "--worker"]
        await supervise(command, opened, config, Signals(ready))
        return
    observers: list[Observer] = []
    if options.watch:
        from mull.cli.serve_watch import Printer

        observers.append(Printer(sys.stdout))
    app = build_app(engine, config, only=options.model, observers=observers)
    reloader = reloader_of(app, config, files, partial(load_gateway, options), options.model)
    signals = Signals(lifeline=True) if options.worker is not None else Signals(ready)
    await serve(app, opened[0], config, reloader, signals)


def _check(engine: Engine, config: ServeConfig, only: str | None) -> int:
    """Print for each model and each shared store whether it can be used as configured."""
    from mull.gateway.memory import OK
    from mull.gateway.routes import Routes
    from mull.gateway.serve import check_listen
    from mull.gateway.servers import Servers
    from mull.gateway.stores import check_stores

    routes = Routes(engine, config, only)
    asyncio.run(Servers(engine).refresh(routes))
    failed = 0
    for name in config.models or routes.names():
        if problems := routes.problems(name):
            failed += 1
            print(*(f"✗ {name}: {problem}" for problem in problems), sep="\n", file=sys.stderr)
        else:
            found = dict.fromkeys(route.target.name for route in routes.offer(name).routes)
            print(f"✓ {name}: {', '.join(found)}")
    try:
        asyncio.run(check_listen(config))
    except MullError as error:
        failed += 1
        print(f"✗ listen: {error}", file=sys.stderr)
    for part, state in asyncio.run(check_stores(config)).items():
        failed += state != OK
        sign, stream = ("✓", sys.stdout) if state == OK else ("✗", sys.stderr)
        print(f"{sign} {part}: {state}", file=stream)
    return 2 if failed else 0
