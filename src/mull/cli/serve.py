"""`mull serve`: any client on any reasoning model, without losing a thought."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from mull.cli import interrupt
from mull.cli.serve_setup import load_gateway
from mull.neutral.errors import MullError
from mull.store.serve import ServeConfig

__all__ = ["ACTIONS", "arguments", "run"]

if TYPE_CHECKING:
    from mull.gateway.observing import Observer

ACTIONS: dict[str, tuple[str, str]] = {
    "token": ("mull.cli.serve_token", "make, list, change and revoke the tokens of clients"),
    "usage": ("mull.cli.serve_usage", "see what clients used of which models"),
}
"""Subcommands: a module with `arguments(parser)` and `run(options)`, and its one line of help.
Without a subcommand the gateway is served."""

_TEXT = """\
Serves models to clients that speak OpenAI's Chat Completions or Responses API,
Anthropic's Messages API or Gemini's generateContent, whichever API the model itself
has. If a client drops a model's reasoning, mull restores it before it sends the
next request.

Models are configured in config.toml:

  [serve.models.kimi]
  model = "moonshotai/kimi-k2-thinking/high"

Without such a table mull serves, as provider/model, every model it has a key for,
and the embedded model. With -m it serves one model under every name.
"""
_EXAMPLES = """\
examples:
  mull serve
  mull serve -m moonshotai/kimi-k2-thinking
  mull serve --check
  ANTHROPIC_BASE_URL=http://127.0.0.1:8484 ANTHROPIC_API_KEY=none claude
"""


def arguments(parser: ArgumentParser) -> None:
    """Add where to listen, what to serve, and the check."""
    parser.description, parser.epilog = _TEXT, _EXAMPLES
    parser.add_argument("-m", "--model", metavar="MODEL", help="serve this model under every name")
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
        "--watch", action="store_true", help="print requests, thoughts and answers as they stream"
    )
    parser.set_defaults(action=_serve)
    if not ACTIONS:
        return
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
        LocalError: it cannot be done as it is configured.
    """
    status: int = options.action(options)
    return status


def _serve(options: Namespace) -> int:
    """Serve until told to end."""
    engine, config = load_gateway(options)
    if options.check:
        return _check(engine, config, options.model)
    from mull.gateway.serve import build_app, check_listen, listen
    from mull.gateway.tracing import set_up_tracing

    if missing := set_up_tracing(os.environ):
        print(f"mull: {missing}", file=sys.stderr)
    host, port = interrupt.run(check_listen(config))
    observers: list[Observer] = []
    if options.watch:
        from mull.cli.serve_watch import Printer

        observers.append(Printer(sys.stdout))
    app = build_app(engine, config, only=options.model, observers=observers)

    def ready() -> None:
        print(f"mull serves at http://{config.listen}; press Ctrl-C to stop", flush=True)

    with suppress(KeyboardInterrupt):
        interrupt.run(listen(app, host, port, ready))
    return 0


def _check(engine: object, config: ServeConfig, only: str | None) -> int:
    """Say of every model whether it can be reached as it is configured."""
    from mull.agent.engine import Engine
    from mull.gateway.routes import Routes

    assert isinstance(engine, Engine)
    routes = Routes(engine, config, only)
    failed = 0
    for name in routes.names():
        try:
            target = routes.find(name).target
        except MullError as error:
            failed += 1
            print(f"✗ {name}: {error}", file=sys.stderr)
        else:
            print(f"✓ {name}: {target.provider}/{target.model}")
    return 2 if failed else 0
