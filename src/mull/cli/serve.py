"""`mull serve`: any client on any reasoning model, without losing a thought."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mull.cli import interrupt
from mull.neutral.errors import MullError
from mull.store.serve import ServeConfig, read_listen

if TYPE_CHECKING:
    from mull.gateway.observing import Observer

__all__ = ["arguments", "run"]

_TEXT = """\
Serves models to clients that speak OpenAI's Chat Completions or Responses API,
Anthropic's Messages API or Gemini's generateContent, whatever the model behind
speaks. What a client drops of a model's reasoning is put back before the
next request goes out.

Models are named in config.toml:

  [serve.models.kimi]
  model = "moonshotai/kimi-k2-thinking/high"

Without such a table every model for which there is a key, and the small model
that comes with mull, is served as provider/model. With -m one model is served
under every name.
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
    parser.add_argument("--listen", metavar="HOST:PORT", help="listen here, not on 127.0.0.1:8484")
    parser.add_argument("--config", metavar="FILE", type=Path, help="read this, not config.toml")
    parser.add_argument(
        "--check", action="store_true", help="say what would be served and what is missing, and end"
    )
    parser.add_argument(
        "--watch", action="store_true", help="print requests, thoughts and answers as they stream"
    )


def run(options: Namespace) -> int:
    """Serve until told to end.

    Raises:
        ConfigError: it cannot be served as it is configured.
    """
    from mull.agent.engine import Engine
    from mull.agent.setup import load_setup

    engine = Engine(load_setup(config=options.config))
    config = engine.setup.config.serve or ServeConfig()
    if options.listen is not None:
        read_listen(options.listen)
        config = replace(config, listen=options.listen)
    if options.check:
        return _check(engine, config, options.model)
    from mull.gateway.serve import build_app, check_listen, listen

    host, port = check_listen(config, ())
    observers: list[Observer] = []
    if options.watch:
        from mull.cli.serve_watch import Printer

        observers.append(Printer(sys.stdout))
    app = build_app(engine, config, only=options.model, observers=observers)

    def ready() -> None:
        print(f"mull serves at http://{config.listen}; Ctrl-C ends it", flush=True)

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
