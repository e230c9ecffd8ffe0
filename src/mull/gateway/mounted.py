"""The gateway as part of another ASGI application."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mull.gateway.http import Receive, Scope, Send
from mull.store.serve import ServeConfig

if TYPE_CHECKING:
    from mull.agent.engine import Engine
    from mull.gateway.app import GatewayApp

__all__ = ["ServeApp", "serve_app"]


class ServeApp:
    """An ASGI application that serves models, created by `serve_app`.

    Mount it under a path of another application, or run it with an ASGI server. It closes its
    connections on the shutdown event of the ASGI lifespan; if there is none, call `close`.
    """

    def __init__(self, app: GatewayApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI request."""
        await self._app(scope, receive, send)

    async def close(self) -> None:
        """Write pending records, and close the connections to providers."""
        await self._app.close()


def serve_app(
    config: str | Path | None = None,
    *,
    model: str | None = None,
    hosts: Sequence[str] = (),
    engine: Engine | None = None,
) -> ServeApp:
    """The gateway of `mull serve` as an ASGI application.

    `config` is a file to read instead of config.toml; `model` is served under every name. `hosts`
    are the host names of the surrounding application: requests for any other host are refused,
    because a page in a browser can point any host name at a local server (DNS rebinding). The
    surrounding application decides who may send requests.

    Raises:
        LocalError: the configuration cannot be used. The message says where and why.
    """
    from mull.agent.engine import Engine
    from mull.agent.setup import load_setup
    from mull.gateway.serve import build_app

    if engine is None:
        engine = Engine(load_setup(config=Path(config) if config is not None else None))
    settings = engine.setup.config.serve or ServeConfig()
    settings = replace(settings, hosts=(*settings.hosts, *hosts))
    return ServeApp(build_app(engine, settings, only=model))
