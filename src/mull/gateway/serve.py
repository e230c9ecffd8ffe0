"""Serves the gateway: reads what was configured, opens the store, and listens.

granian is the server underneath. It is imported here alone, and only when something is served.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mull.gateway.app import GatewayApp
from mull.gateway.door import Door, Token
from mull.gateway.envelope import Envelopes
from mull.gateway.memory import InProcess, Memory
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

__all__ = ["build_app", "check_listen", "listen"]

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_SECRET_BYTES = 32
_MOST_HEAD = 64 << 10


def build_app(
    engine: Engine,
    config: ServeConfig,
    *,
    only: str | None = None,
    tokens: tuple[Token, ...] = (),
    memory: Memory | None = None,
    observers: Sequence[Observer] = (),
) -> GatewayApp:
    """The application, with its store in the data folder unless another is given.

    Raises:
        ConfigError: the key that seals envelopes cannot be read or written.
    """
    folder = data_dir()
    routes = Routes(engine, config, only)
    kept = memory if memory is not None else _memory(config, folder)
    host, _ = read_listen(config.listen)
    watch = Watch() if _is_watched(config, tokens) else None
    watching = (*observers, watch) if watch is not None else observers
    envelopes = Envelopes(_secret(folder / "serve.key"))
    gateway = Gateway(engine, routes, kept, envelopes, watching)
    pages = pages_of(watch) if watch is not None else {}
    return GatewayApp(gateway, Door(tokens, (*config.hosts, host)), pages)


def _is_watched(config: ServeConfig, tokens: tuple[Token, ...]) -> bool:
    """Whether requests are kept for the page: on one's own machine, unless told otherwise."""
    return config.watch if config.watch is not None else not tokens


def _memory(config: ServeConfig, folder: Path) -> Memory:
    if config.store == "none":
        return InProcess()
    from mull.gateway.sqlite import SqliteMemory

    return SqliteMemory(folder / "serve.db", days=config.keep_days, megabytes=config.keep_mb)


def _secret(path: Path) -> bytes:
    """The key of this installation's envelopes; it is made once."""
    held = read_bytes(path)
    if held is not None and len(held) == _SECRET_BYTES:
        return held
    made = secrets.token_bytes(_SECRET_BYTES)
    write_atomic(path, made)
    return read_bytes(path) or made


def check_listen(config: ServeConfig, tokens: tuple[Token, ...]) -> tuple[str, int]:
    """Where to listen.

    Raises:
        ConfigError: others could reach it there, and no token keeps them out.
    """
    host, port = read_listen(config.listen)
    if host not in _LOOPBACK and not tokens:
        raise ConfigError(
            f"{config.listen} can be reached from other machines, and anybody there could use your"
            " keys: make tokens for your clients first, or listen on 127.0.0.1"
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
