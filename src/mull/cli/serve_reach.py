"""How clients reach the gateway: its address, and the name of the model to request."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from typing import TYPE_CHECKING

from mull.gateway.setups import SETUPS, TOKEN_VARIABLE, Reach, setup_lines
from mull.neutral.errors import CatalogError, ConfigError, NoModelError
from mull.store.serve import ServeConfig, read_listen, socket_path

if TYPE_CHECKING:
    from mull.agent.engine import Engine

__all__ = ["client_url", "print_setup", "reach_of", "served_model"]

_EVERYWHERE = ("0.0.0.0", "::")


def print_setup(options: Namespace, engine: Engine, config: ServeConfig) -> int:
    """Print how to point the client at this gateway.

    Raises:
        ConfigError: the gateway listens on a Unix socket, or the tokens cannot be read.
    """
    reach = asyncio.run(_reach(options, engine, config))
    print("\n".join(setup_lines(SETUPS[options.print_setup], reach)))
    return 0


async def _reach(options: Namespace, engine: Engine, config: ServeConfig) -> Reach:
    from mull.gateway.serve import has_tokens

    token = f"${TOKEN_VARIABLE}" if await has_tokens(config) else None
    async with engine:
        try:
            model = await served_model(engine, config, options.model)
        except NoModelError:
            model = "PROVIDER/MODEL"
        try:
            return await reach_of(engine, config, model, options.model, token)
        except CatalogError:  # the configuration of another machine may have it
            return Reach(client_url(config), model, token=token)


def client_url(config: ServeConfig, *, is_here: bool = False) -> str:
    """The gateway's URL for clients. If the gateway listens on all addresses, the URL has the first
    configured host name, or the loopback address for clients on this machine (`is_here`).

    Raises:
        ConfigError: the gateway listens on a Unix socket, which clients cannot use.
    """
    if socket_path(config.listen) is not None:
        raise ConfigError(f"clients cannot connect to {config.listen}: use HOST:PORT with --listen")
    host, port = read_listen(config.listen)
    if host in _EVERYWHERE:
        host = "127.0.0.1" if is_here else next(iter(config.hosts), "127.0.0.1")
    scheme = "http" if config.cert is None else "https"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


async def served_model(engine: Engine, config: ServeConfig, only: str | None) -> str:
    """The name of the model that a client requests by default.

    Raises:
        NoModelError: the gateway serves several models, and none of them is the default. The
            embedded model counts only where nothing else is served.
    """
    from mull.agent.usable import EMBEDDED_MODEL
    from mull.gateway.routes import Routes
    from mull.gateway.servers import Servers

    chosen = only or config.default or next(iter(config.models), None)
    chosen = chosen or engine.setup.settings.snapshot().model
    if chosen is not None:
        return chosen
    routes = Routes(engine, config)
    await Servers(engine).refresh(routes)
    names = [name for name in routes.names() if name != EMBEDDED_MODEL] or routes.names()
    if len(names) != 1:
        engine.target()  # its error says what to do
    return names[0]


async def reach_of(
    engine: Engine, config: ServeConfig, model: str, only: str | None, token: str | None = None
) -> Reach:
    """How clients reach a model of this gateway. A server of the user's own is asked for the
    model's window.

    Raises:
        CatalogError: there is no model with this name.
    """
    from mull.gateway.listing import listed_as
    from mull.gateway.routes import Routes
    from mull.gateway.servers import Servers

    routes = Routes(engine, config, only)
    try:
        await Servers(engine).know(routes.offer(model).routes, patiently=True)
        listed = listed_as(model, routes.offer(model))
        window, output = listed.window, listed.output
    except ConfigError:  # without its key the model is not served here, and may be elsewhere
        served = config.models.get(model)
        name = served.upstreams[0].model if served is not None else model
        limit = engine.target(name).facts.limit
        window, output = limit.context or None, limit.output or None
    return Reach(client_url(config), model, window, output, token)
