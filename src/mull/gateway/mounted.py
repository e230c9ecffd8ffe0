"""The gateway as a part of somebody else's application."""

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
    """An ASGI application that serves models, made by `serve_app`.

    Mount it below a path of another application, or let an ASGI server run it. It needs no
    lifespan; where there is one, its shutdown closes what is open. Elsewhere call `close`.
    """

    def __init__(self, app: GatewayApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI has it."""
        await self._app(scope, receive, send)

    async def close(self) -> None:
        """Write what is still to be written, and close the connections to models."""
        await self._app.close()


def serve_app(
    config: str | Path | None = None,
    *,
    model: str | None = None,
    hosts: Sequence[str] = (),
    engine: Engine | None = None,
) -> ServeApp:
    """The gateway of `mull serve` as an ASGI application.

    `config` is a file to read in the place of config.toml, `model` serves one model under every
    name. `hosts` are the names that the application around it is called by: requests that name
    another host are refused, because a page in a browser can have any name lead to a local server.
    Who may send requests is for that application to say.

    Raises:
        LocalError: the configuration cannot be used; says where and why.
    """
    from mull.agent.engine import Engine
    from mull.agent.setup import load_setup
    from mull.gateway.serve import build_app

    if engine is None:
        engine = Engine(load_setup(config=Path(config) if config is not None else None))
    said = engine.setup.config.serve or ServeConfig()
    said = replace(said, hosts=(*said.hosts, *hosts))
    return ServeApp(build_app(engine, said, only=model))
