"""Serves the gateway: reads what was configured, opens the store, and listens.

granian is the server underneath. It is imported here alone, and only when something is served.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mull.gateway.accounts import Accounts
from mull.gateway.app import GatewayApp, Page
from mull.gateway.door import Door
from mull.gateway.envelope import Envelopes
from mull.gateway.keyring import Keyring
from mull.gateway.ledger import Ledger
from mull.gateway.memory import InProcess, Memory
from mull.gateway.metrics import Metrics
from mull.gateway.pages import pages_of
from mull.gateway.routes import Routes
from mull.gateway.service import Gateway
from mull.gateway.watching import Watch
from mull.neutral.errors import ConfigError
from mull.store.files import read_bytes, write_atomic
from mull.store.paths import data_dir
from mull.store.serve import ServeConfig, read_listen

if TYPE_CHECKING:
    from mull.agent.engine import Engine
    from mull.gateway.observing import Observer

__all__ = ["STORE_FILE", "build_app", "check_listen", "has_tokens", "listen", "open_ledger"]

STORE_FILE = "serve.db"
"""Answers, tokens and usage, in the data folder."""

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_SECRET_BYTES = 32
_MOST_HEAD = 64 << 10


def build_app(
    engine: Engine,
    config: ServeConfig,
    *,
    only: str | None = None,
    memory: Memory | None = None,
    observers: Sequence[Observer] = (),
    ledger: Ledger | None = None,
) -> GatewayApp:
    """The application, with its store and its ledger in the data folder unless others are given.

    Raises:
        ConfigError: the key that seals envelopes cannot be read or written.
    """
    folder = data_dir()
    routes = Routes(engine, config, only)
    kept = memory if memory is not None else _memory(config, folder)
    ledger = ledger if ledger is not None else open_ledger(config)
    keyring = Keyring(ledger)
    host, _ = read_listen(config.listen)
    hosts, is_own = (*config.hosts, host), host in _LOOPBACK
    watch = (
        None if config.watch is False else Watch(is_on=lambda: bool(config.watch) or not keyring)
    )
    metrics = Metrics()
    gateway = Gateway(
        engine,
        routes,
        kept,
        Envelopes(_secret(folder / "serve.key")),
        (*observers, metrics, *((watch,) if watch is not None else ())),
        Accounts(ledger, keyring, metrics=metrics),
    )
    metrics.store_failures = lambda: gateway.store_failures
    pages = {"/metrics": Page(metrics.page)} | (pages_of(watch) if watch is not None else {})
    return GatewayApp(gateway, Door(keyring, hosts, config.origins, is_needed=not is_own), pages)


async def has_tokens(config: ServeConfig) -> bool:
    """Whether there is a client token that lets anybody in.

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


def open_ledger(config: ServeConfig) -> Ledger:
    """The ledger that the configuration names."""
    from mull.gateway.ledger_sqlite import SqliteLedger

    return SqliteLedger(data_dir() / STORE_FILE)


def _memory(config: ServeConfig, folder: Path) -> Memory:
    if config.store == "none":
        return InProcess()
    from mull.gateway.sqlite import SqliteMemory

    return SqliteMemory(folder / STORE_FILE, days=config.keep_days, megabytes=config.keep_mb)


def _secret(path: Path) -> bytes:
    """The key of this installation's envelopes; it is made once."""
    held = read_bytes(path)
    if held is not None and len(held) == _SECRET_BYTES:
        return held
    made = secrets.token_bytes(_SECRET_BYTES)
    write_atomic(path, made)
    return read_bytes(path) or made


async def check_listen(config: ServeConfig) -> tuple[str, int]:
    """Where to listen.

    Raises:
        ConfigError: others could reach it there, and no token keeps them out.
    """
    host, port = read_listen(config.listen)
    if host not in _LOOPBACK and not await has_tokens(config):
        raise ConfigError(
            f"{config.listen} can be reached from other machines, and anybody there could use your"
            " keys: make a token for each client first (mull serve token add NAME), or listen on"
            " 127.0.0.1"
        )
    return host, port


async def listen(app: GatewayApp, host: str, port: int, ready: Callable[[], None]) -> None:
    """Serve until cancelled.

    Raises:
        ConfigError: granian is missing, or the port is taken.
    """
    try:
        from granian.constants import Interfaces
        from granian.http import HTTP1Settings
        from granian.server.embed import Server
    except ImportError:
        raise ConfigError(
            "mull serve needs granian: install it with pip install 'mull[serve]'"
        ) from None
    _check_port(host, port)
    server = Server(
        app,
        address=host,
        port=port,
        interface=Interfaces.ASGI,
        log_enabled=bool(os.environ.get("DEBUG")),
        http1_settings=HTTP1Settings(max_buffer_size=_MOST_HEAD),
    )
    ready()
    await server.serve()


def _check_port(host: str, port: int) -> None:
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((host, port))
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {host}:{port} ({error.strerror}): choose another with --listen"
            ) from None
