"""Builds the gateway's application from its configuration, and serves it."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from mull.gateway.accounts import Accounts
from mull.gateway.app import GatewayApp, Page
from mull.gateway.door import Door
from mull.gateway.envelope import Envelopes
from mull.gateway.key_file import put_first, read_keys
from mull.gateway.keyring import Keyring
from mull.gateway.ledger import Ledger
from mull.gateway.listening import Listener
from mull.gateway.metrics import Metrics
from mull.gateway.pages import pages_of
from mull.gateway.reload import Files, Reloader
from mull.gateway.routes import Routes
from mull.gateway.service import Gateway
from mull.gateway.signals import Signals
from mull.gateway.stores import open_ledger, open_memory
from mull.gateway.supervise import Supervisor
from mull.gateway.watching import Watch
from mull.neutral.errors import ConfigError
from mull.store.paths import data_dir
from mull.store.serve import ServeConfig, is_local, read_listen, socket_path

if TYPE_CHECKING:
    from mull.agent.engine import Engine
    from mull.gateway.memory import Memory
    from mull.gateway.observing import Observer

__all__ = [
    "build_app",
    "check_listen",
    "has_tokens",
    "reloader_of",
    "seal_keys",
    "serve",
    "supervise",
]

KEY_FILE = "serve.key"


def build_app(
    engine: Engine,
    config: ServeConfig,
    *,
    only: str | None = None,
    memory: Memory | None = None,
    observers: Sequence[Observer] = (),
    ledger: Ledger | None = None,
) -> GatewayApp:
    """Build the application. Its store and its ledger are those that the configuration names,
    unless given; `only` is the name of the only model to serve.

    Raises:
        ConfigError: the file with the keys of envelopes cannot be read or written, or the store is
            misconfigured.
    """
    routes = Routes(engine, config, only)
    kept = memory if memory is not None else open_memory(config)
    ledger = ledger if ledger is not None else open_ledger(config)
    keyring = Keyring(ledger)
    watch = (
        None if config.watch is False else Watch(is_on=lambda: bool(config.watch) or not keyring)
    )
    metrics = Metrics()
    gateway = Gateway(
        engine,
        routes,
        kept,
        Envelopes(*seal_keys(), keep=partial(put_first, data_dir() / KEY_FILE)),
        (*observers, metrics, *((watch,) if watch is not None else ())),
        Accounts(ledger, keyring, metrics=metrics),
    )
    metrics.store_failures = lambda: gateway.store_failures
    pages = {"/metrics": Page(metrics.page)} | (pages_of(watch) if watch is not None else {})
    is_needed = not is_local(config.listen)
    door = Door(keyring, _names(config), config.origins, is_needed=is_needed)
    return GatewayApp(gateway, door, pages)


async def has_tokens(config: ServeConfig) -> bool:
    """Whether a valid client token exists.

    Raises:
        ConfigError: the ledger cannot be read.
    """
    ledger = open_ledger(config)
    try:
        now = time.time()
        return any(token.is_valid(now) for token in await ledger.tokens())
    except Exception as error:
        raise ConfigError(f"the client tokens cannot be read: {error}") from None
    finally:
        await ledger.close()


def seal_keys() -> tuple[bytes, ...]:
    """The keys of this installation's envelopes; one is generated if there is none.

    Raises:
        ConfigError: the key file cannot be read or written.
    """
    return read_keys(data_dir() / KEY_FILE)


def _names(config: ServeConfig) -> tuple[str, ...]:
    """The host names that requests to the server may use."""
    if socket_path(config.listen) is not None:
        return config.hosts
    return (*config.hosts, read_listen(config.listen)[0])


async def check_listen(config: ServeConfig) -> None:
    """Check that the gateway does not listen to other machines without requiring a token.

    Raises:
        ConfigError: it does.
    """
    if not is_local(config.listen) and not await has_tokens(config):
        raise ConfigError(
            f"{config.listen} is reachable from other machines, and without client tokens anyone"
            " there could use your API keys: create a token for each client first (mull serve"
            " token add NAME), or listen on 127.0.0.1"
        )


def reloader_of(
    app: GatewayApp,
    config: ServeConfig,
    files: Files,
    load: Callable[[], tuple[Engine, ServeConfig]],
    only: str | None = None,
) -> Reloader:
    """A reloader that applies changes of the configuration files to the application."""

    def read() -> tuple[Engine, ServeConfig]:
        engine, config = load()
        engine.setup.catalog()  # slow when first used: otherwise a request would wait for it
        return engine, config

    async def apply(engine: Engine, config: ServeConfig) -> None:
        await app.renew(engine, Routes(engine, config, only), _names(config), config.origins)

    reloader = Reloader(files, config, read, apply)

    def health_details() -> dict[str, object]:
        details: dict[str, object] = {}
        if reloader.problem is not None:
            details["config"] = "rejected: the previous configuration stays in use; see the log"
        if reloader.pending:
            details["restart_for"] = reloader.pending
        return details

    app.health_details = health_details
    return reloader


async def serve(
    app: GatewayApp,
    opened: socket.socket,
    config: ServeConfig,
    reloader: Reloader,
    signals: Signals,
) -> None:
    """Serve on a socket until a signal to stop arrives."""
    looking = asyncio.create_task(reloader.run())
    try:
        with signals.handled(reloader.ask):
            await Listener(app, opened, config).run(signals.stop, signals.at_once)
    finally:
        looking.cancel()


async def supervise(
    command: Sequence[str], sockets: Sequence[socket.socket], config: ServeConfig, signals: Signals
) -> None:
    """Serve with several processes until a signal to stop arrives. `command` starts one; the number
    of a socket is appended to it."""
    supervisor = Supervisor(command, config.workers, sockets)
    with signals.handled(supervisor.reload):
        await supervisor.run(signals.stop, signals.at_once, config.grace)
