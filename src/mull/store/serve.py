"""The gateway's section of config.toml: the settings in `[serve]`.

`mull.store.served` reads `[serve.models.NAME]`. All errors are reported together, so that fixing a
file does not take one start of the server for each mistake.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from mull.neutral.errors import ConfigError
from mull.neutral.patterns import pattern
from mull.settings.words import join_or, quote
from mull.store.served import ServedModel, ServedTarget, read_models
from mull.store.tables import Problems, refused, table_of

__all__ = [
    "DEFAULT_LISTEN",
    "LOOPBACK",
    "MOST_WORKERS",
    "ServeConfig",
    "ServedModel",
    "ServedTarget",
    "is_local",
    "read_listen",
    "read_serve",
    "socket_path",
]

DEFAULT_LISTEN = "127.0.0.1:8484"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""Hosts that only this machine can reach."""
_LISTEN = pattern(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+):(\d{1,5})", re.ASCII)
_HIGHEST_PORT = 65_535
_UNIX = "unix:"
_ALLOWED_LISTEN = f"HOST:PORT, such as {DEFAULT_LISTEN}, or unix:/path/to/a.sock"
MOST_WORKERS, MOST_CONNECTIONS = 256, 1_000_000
_SERVERS = {
    "store": (
        ("postgresql", "postgres"),
        'a URL such as postgresql://USER@HOST/NAME, "$VARIABLE", or "none"',
    ),
    "cache": (
        ("valkey", "valkeys", "redis", "rediss"),
        'a URL such as valkey://HOST:6379, or "$VARIABLE"',
    ),
}


class ServeConfig(Struct, frozen=True):
    """The settings in `[serve]`."""

    listen: str = DEFAULT_LISTEN
    """The address: `HOST:PORT`, or `unix:` and the path of a socket."""
    models: Mapping[str, ServedModel] = {}
    """The served models, by the name that clients use."""
    default: str | None = None
    """The model name that serves requests for any name not listed; None rejects them, unless no
    name is listed at all.
    """
    hosts: tuple[str, ...] = ()
    """Additional host names of this server."""
    origins: tuple[str, ...] = ()
    """Origins of web pages that may call it from a browser."""
    store: str | None = None
    """The URL of a database to use instead of a file; `none` keeps records in memory only."""
    cache: str | None = None
    """The URL of a cache in front of the database; None for none."""
    store_timeout: float = 0.25
    """The most seconds that a request waits for the store."""
    keep_days: float = 30.0
    """The days that the store keeps records."""
    keep_mb: float = 2_000.0
    """The megabytes of records that the store keeps."""
    watch: bool | None = None
    """Whether the latest requests are kept in memory for the page at `/`; None does so if there are
    no client tokens.
    """
    workers: int = 1
    """The number of processes that share the address."""
    connections: int = 4_096
    """The most clients of each process."""
    grace: float = 30.0
    """The seconds that answers in progress have to finish on shutdown."""
    cert: Path | None = None
    """The file of the HTTPS certificate; None serves HTTP."""
    key: Path | None = None
    """The file of that certificate's private key."""


def read_serve(table: Mapping[str, Any], file: str) -> ServeConfig:
    """The gateway's configuration.

    Raises:
        ConfigError: a key is unknown or a value invalid; the message has one line for each, with
            its place and the allowed values.
    """
    where = f"{file}: serve"
    problems = Problems()
    problems.check_keys(table, ServeConfig.__struct_fields__, where)
    read = problems.read
    usual = ServeConfig()
    empty: dict[str, ServedModel] = {}
    config = ServeConfig(
        listen=read(lambda: _listen(table.get("listen", usual.listen), where), usual.listen),
        models=read(lambda: read_models(table_of(table, "models", where), where), empty),
        default=read(lambda: _default(table, where), None),
        hosts=read(lambda: _texts(table, "hosts", where), usual.hosts),
        origins=read(lambda: _texts(table, "origins", where), usual.origins),
        store=read(lambda: _url(table, "store", where), None),
        cache=read(lambda: _url(table, "cache", where), None),
        store_timeout=read(lambda: _number(table, "store_timeout", where), usual.store_timeout),
        keep_days=read(lambda: _number(table, "keep_days", where), usual.keep_days),
        keep_mb=read(lambda: _number(table, "keep_mb", where), usual.keep_mb),
        watch=read(lambda: _switch(table, "watch", where), None),
        workers=read(lambda: _count(table, "workers", where, MOST_WORKERS), usual.workers),
        connections=read(
            lambda: _count(table, "connections", where, MOST_CONNECTIONS), usual.connections
        ),
        grace=read(lambda: _number(table, "grace", where), usual.grace),
        cert=read(lambda: _file(table, "cert", where), None),
        key=read(lambda: _file(table, "key", where), None),
    )
    if ("cert" in table) != ("key" in table):
        problems.add(f"{where}: cert and key belong together: set both or neither")
    problems.end()
    return config


def read_listen(text: str) -> tuple[str, int]:
    """The host and the port in `HOST:PORT`.

    Raises:
        ConfigError: it does not have this form.
    """
    found = _LISTEN.fullmatch(text)
    if found is None or int(found[2]) > _HIGHEST_PORT:
        raise ConfigError(f"listen cannot be {quote(text)}: use {_ALLOWED_LISTEN}")
    return found[1].strip("[]"), int(found[2])


def socket_path(listen: str) -> Path | None:
    """The path in `unix:/path`; None if it is a network address.

    Raises:
        ConfigError: the path is not absolute, or too long for a socket.
    """
    if not listen.startswith(_UNIX):
        return None
    path = Path(listen.removeprefix(_UNIX))
    # The system's limit is 108 on Linux, and less elsewhere.
    if not path.is_absolute() or len(bytes(path)) > 100:
        raise ConfigError(
            f"listen cannot be {quote(listen)}: use an absolute path of at most 100 bytes"
        )
    return path


def is_local(listen: str) -> bool:
    """Whether only this machine can reach it."""
    return socket_path(listen) is not None or read_listen(listen)[0] in LOOPBACK


def _listen(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise refused(where, "listen", value, _ALLOWED_LISTEN)
    if socket_path(value) is None:
        read_listen(value)
    return value


def _default(table: Mapping[str, Any], where: str) -> str | None:
    value, named = table.get("default"), table_of(table, "models", where)
    if value is None or (isinstance(value, str) and value in named):
        return value
    allowed = join_or(named) if named else "a name from [serve.models]"
    raise refused(where, "default", value, allowed)


def _texts(table: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise refused(where, key, value, "a list of strings")
    return tuple(value)


def _number(table: Mapping[str, Any], key: str, where: str) -> float:
    value = table.get(key, getattr(ServeConfig(), key))
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise refused(where, key, value, "a number above 0")
    return float(value)


def _switch(table: Mapping[str, Any], key: str, where: str) -> bool | None:
    value = table.get(key)
    if value is not None and not isinstance(value, bool):
        raise refused(where, key, value, "true or false")
    return value


def _count(table: Mapping[str, Any], key: str, where: str, most: int) -> int:
    value = table.get(key, getattr(ServeConfig(), key))
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise refused(where, key, value, f"a whole number from 1 to {most:,}")
    return value


def _file(table: Mapping[str, Any], key: str, where: str) -> Path | None:
    value = table.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise refused(where, key, value, "the path of a PEM file")
    path = Path(value).expanduser()
    if not path.is_file():
        raise ConfigError(f"{where}: {key}: the file {quote(str(path))} does not exist")
    return path


def _url(table: Mapping[str, Any], key: str, where: str) -> str | None:
    """The URL of a server, or a variable that contains it. Errors do not show the value, because it
    may contain a password."""
    value, (schemes, usual) = table.get(key), _SERVERS[key]
    if value is None or (key == "store" and value == "none"):
        return value
    if isinstance(value, str) and (value.startswith("$") or value.partition("://")[0] in schemes):
        return value
    raise ConfigError(f"{where}: {key} is not valid: use {usual}")
