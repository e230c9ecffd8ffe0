"""Opens the store, cache and ledger that the configuration names."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import urlsplit

from mull.agent.mcp.settled import filled
from mull.gateway.damage import MARK_FILE, TokenMark, mark_of
from mull.gateway.guard import Guarded
from mull.gateway.ledger import Ledger
from mull.gateway.memory import OK, InProcess, Memory
from mull.neutral.errors import ConfigError
from mull.store.paths import data_dir
from mull.store.serve import ServeConfig

__all__ = ["STORE_FILE", "check_stores", "mark_in", "open_ledger", "open_memory"]

STORE_FILE = "serve.db"
"""The file in the data folder that holds answers, tokens and usage."""
_CHECK_PATIENCE = 5.0
_SCHEMES = ("postgresql", "postgres")


def open_memory(config: ServeConfig) -> Memory:
    """The store, behind a cache if one is configured. This does not connect yet.

    Raises:
        ConfigError: a URL is invalid, a variable in it is not set, or a package is missing.
    """
    memory = _store(config)
    if config.cache is None:
        return memory
    from mull.gateway.valkey import Cached

    return Cached(filled(config.cache, os.environ, "serve: cache"), memory)


def _store(config: ServeConfig) -> Memory:
    if config.store == "none":
        return InProcess()
    return Guarded(_database(config), patience=config.store_timeout)


def _database(config: ServeConfig) -> Memory:
    days, megabytes = config.keep_days, config.keep_mb
    url = _url(config)
    if url is None:
        from mull.gateway.sqlite import SqliteMemory

        return SqliteMemory(data_dir() / STORE_FILE, days=days, megabytes=megabytes)
    from mull.gateway.postgres import PostgresMemory

    return PostgresMemory(url, days=days, megabytes=megabytes)


def open_ledger(config: ServeConfig) -> Ledger:
    """The ledger, in the same database as the store. This does not connect yet.

    Raises:
        ConfigError: the URL is invalid, a variable in it is not set, or a package is missing.
    """
    url = _url(config)
    if url is None:
        from mull.gateway.ledger_sqlite import SqliteLedger

        return SqliteLedger(data_dir() / STORE_FILE)
    from mull.gateway.ledger_postgres import PostgresLedger

    return PostgresLedger(url, mark=mark_in(config))


def mark_in(config: ServeConfig) -> TokenMark:
    """Where it is noted whether the ledger of this configuration has tokens. A password is no part
    of a ledger's name.

    Raises:
        ConfigError: the URL is invalid, or a variable in it is not set.
    """
    url = _url(config)
    if url is None:
        return mark_of(data_dir() / STORE_FILE)
    parts = urlsplit(url)
    return TokenMark(data_dir() / MARK_FILE, f"{parts.hostname}:{parts.port or 5432}{parts.path}")


async def check_stores(config: ServeConfig) -> Mapping[str, str]:
    """The state of each server that the configuration names: `OK`, or why it cannot be used.

    Raises:
        ConfigError: a URL is invalid, a variable in it is not set, or a package is missing.
    """
    states = {}
    if _url(config) is not None:
        memory = _database(config)
        states["store"] = await _tried(memory.find("", ("probe",)), memory.close)
    if config.cache is not None:
        from mull.gateway.resp import RespClient, read_address

        url = filled(config.cache, os.environ, "serve: cache")
        client = RespClient(read_address(url), patience=_CHECK_PATIENCE)
        states["cache"] = await _tried(client.ask([("PING",)]), client.close)
    return states


async def _tried(work: Awaitable[object], close: Callable[[], Awaitable[None]]) -> str:
    try:
        async with asyncio.timeout(_CHECK_PATIENCE):
            await work
    except Exception as error:
        return str(error) or "the server does not respond"
    finally:
        await close()
    return OK


def _url(config: ServeConfig) -> str | None:
    """The URL of the shared database; None if none is configured."""
    if config.store in (None, "none"):
        return None
    url = filled(config.store or "", os.environ, "serve: store")
    try:
        parts = urlsplit(url)
        sound = parts.scheme in _SCHEMES and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise ConfigError("serve: store is not a valid URL: use postgresql://USER@HOST:PORT/NAME")
    return url
