"""The user's config.toml: model, settings, providers, quirks of servers, tool servers, themes,
keys.

Every table and key is checked, because a misspelt one would do nothing in silence. Values of
settings are checked by the registry, compat rows by the catalog, the styles of a theme and the keys
by who uses them; what only this file knows is where each of them stands in the TOML. No file is the
same as an empty one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from msgspec import Struct

from mull.neutral.errors import CatalogError, ConfigError, SettingError
from mull.neutral.messages import Dialect
from mull.neutral.patterns import pattern
from mull.settings.addresses import without_secrets
from mull.settings.model import parse_model
from mull.settings.registry import SettingValue, parse_all
from mull.settings.words import join_or, quote, quote_value
from mull.store.files import read_bytes
from mull.store.tables import (
    VARIABLE,
    check_keys,
    decode_toml,
    is_address,
    read_headers,
    refused,
    table_of,
)

if TYPE_CHECKING:
    from mull.store.mcp import McpConfig
    from mull.store.serve import ServeConfig

__all__ = ["CONFIG_FILE", "Config", "ProviderConfig", "load_config", "read_config"]

CONFIG_FILE = "config.toml"


class ProviderConfig(Struct, frozen=True):
    """A provider that the user added, or what they changed of one that the catalog has."""

    base_url: str | None = None
    key_env: tuple[str, ...] = ()
    headers: Mapping[str, str] = {}
    query: Mapping[str, str] = {}
    dialect: Dialect | None = None
    name: str | None = None


class Config(Struct, frozen=True):
    """All that config.toml says."""

    model: str | None = None
    """The default model, as `-m` takes it."""
    settings: Mapping[str, SettingValue] = {}
    """The values in `[settings]`, by key."""
    providers: Mapping[str, ProviderConfig] = {}
    """The tables `[providers.NAME]`, by name in lower case."""
    models: Mapping[str, Mapping[str, Any]] = {}
    """Facts about models by `provider/model`, in the catalog's keys."""
    compat: tuple[Mapping[str, Any], ...] = ()
    """The rows of `[[compat]]`, in the order of the file."""
    mcp: Mapping[str, McpConfig] = {}
    """The MCP servers in `[mcp.NAME]`, by name."""
    themes: Mapping[str, Mapping[str, Any]] = {}
    """The colours in `[themes.NAME]`, by name; the terminal reads them."""
    serve: ServeConfig | None = None
    """The gateway's configuration; None without a table `[serve]`."""
    keys: Mapping[str, tuple[str, ...]] = {}
    """The keys of the terminal in `[keys]`, by the action that they start."""
    connection: Mapping[str, Any] = {}
    """How connections are made: the values in `[connection]`, such as `proxy`."""

    @property
    def overlay(self) -> dict[str, Any]:
        """The providers and models in the catalog's own shape, to go over the catalog."""
        layer: dict[str, Any] = {}
        for name, own in self.providers.items():
            address = without_secrets(own.base_url) if own.base_url else None
            said = {"name": own.name, "api": address, "env": list(own.key_env) or None}
            layer[name] = {key: value for key, value in said.items() if value is not None}
        for name, facts in self.models.items():
            provider, _, model = name.partition("/")
            entry = {"source": "your config.toml", **facts}
            if "reasoning" in facts:
                entry["own_reasoning"] = facts["reasoning"] is True
            layer.setdefault(provider, {}).setdefault("models", {})[model] = entry
        return layer

    @property
    def compat_rows(self) -> tuple[Mapping[str, Any], ...]:
        """The compat rows, with the providers' dialects as rows that all others outweigh."""
        dialects = (
            {"match": {"provider": name}, "dialect": own.dialect}
            for name, own in self.providers.items()
            if own.dialect
        )
        return (*dialects, *self.compat)


def load_config(path: Path) -> Config:
    """Read a config file; a missing one is empty.

    Raises:
        ConfigError: it cannot be read, is not TOML, or holds what is unknown; says where.
    """
    data = read_bytes(path)
    return Config() if data is None else read_config(data, path.name)


def read_config(data: bytes, file: str) -> Config:
    """Read the content of a config file.

    Raises:
        ConfigError: it is not TOML, or holds what is unknown; says where.
    """
    tables = decode_toml(data, file)
    check_keys(tables, Config.__struct_fields__, file)
    try:
        return _read(tables, file)
    except SettingError as error:
        raise ConfigError(f"{file}: {error}") from None


def _servers(tables: Mapping[str, Any], file: str) -> Mapping[str, McpConfig]:
    if "mcp" not in tables:
        return {}
    from mull.store.mcp import read_servers

    return read_servers(table_of(tables, "mcp", file), file)


def _serve(tables: Mapping[str, Any], file: str) -> ServeConfig | None:
    if "serve" not in tables:
        return None
    from mull.store.serve import read_serve

    return read_serve(table_of(tables, "serve", file), file)


def _connection(tables: Mapping[str, Any], file: str) -> Mapping[str, Any]:
    if "connection" not in tables:
        return {}
    from mull.store.connection import read_connection

    return read_connection(table_of(tables, "connection", file), file)


def _read(tables: Mapping[str, Any], file: str) -> Config:
    model = tables.get("model")
    providers, themes = table_of(tables, "providers", file), table_of(tables, "themes", file)
    config = Config(
        model=None if model is None else parse_model(model),
        settings=parse_all(dict(_flat(table_of(tables, "settings", file)))),
        providers={
            name.lower(): _provider(table_of(providers, name, file), name, file)
            for name in providers
        },
        models=_models(table_of(tables, "models", file), file),
        compat=_compat(tables.get("compat", []), file),
        mcp=_servers(tables, file),
        themes={name: table_of(themes, name, file) for name in themes},
        serve=_serve(tables, file),
        keys=_keys(table_of(tables, "keys", file), file),
        connection=_connection(tables, file),
    )
    _check_overlay(config, file)
    return config


def _keys(table: Mapping[str, Any], file: str) -> dict[str, tuple[str, ...]]:
    """Which key does what; that there are such keys and actions is checked by who binds them."""
    keys: dict[str, tuple[str, ...]] = {}
    for action, value in table.items():
        texts = [value] if isinstance(value, str) else value
        if not (isinstance(texts, list) and all(isinstance(text, str) for text in texts)):
            raise refused(f"{file}: keys", action, value, 'a key such as "ctrl-t", or a list')
        keys[action] = tuple(texts)
    return keys


def _flat(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """`[settings] reasoning.effort`, `[settings.reasoning] effort` and quoted keys alike."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


_PROVIDER_NAME = pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)


def _provider(table: Mapping[str, Any], name: str, file: str) -> ProviderConfig:
    if not _PROVIDER_NAME.fullmatch(name):
        raise ConfigError(
            f"{file}: a provider cannot be called {quote(name)}: "
            "use letters, digits, '.', '_' and '-'"
        )
    where = f"{file}: providers.{name}"
    for key in table:
        if key not in ProviderConfig.__struct_fields__ and "key" in key.lower():
            raise ConfigError(
                f"{where}: {quote(key)} is unknown: API keys do not belong in this file, "
                "name the variable that holds yours with key_env"
            )
    for key, value in table.items():
        if isinstance(value, dict) and key not in ProviderConfig.__struct_fields__:
            whole = f"{name}.{key}"
            raise ConfigError(
                f"{where}: {quote(key)} is unknown: a provider name with a dot must be quoted, "
                f'[providers."{whole}"]'
            )
    check_keys(table, ProviderConfig.__struct_fields__, where)
    return ProviderConfig(
        base_url=_base_url(table.get("base_url"), where),
        key_env=_key_env(table.get("key_env", []), where),
        headers=read_headers(table.get("headers", {}), where),
        query=_query(table.get("query", {}), where),
        dialect=_dialect(table.get("dialect"), where),
        name=_label(table.get("name"), where),
    )


def _query(value: object, where: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise refused(where, "query", value, 'a table such as { "api-version" = "2024-10-21" }')
    for name, text in value.items():
        if not (name.isprintable() and isinstance(text, str) and text.isprintable()):
            raise ConfigError(f"{where}: query.{quote(name)} cannot be that: use one line of text")
    return value


def _base_url(value: object, where: str) -> str | None:
    if isinstance(value, str) and "@" in value:  # a password in it would be shown and stored
        raise ConfigError(
            f"{where}: base_url contains a user name or password before the @: remove it, and send"
            " it as a header or as the key"
        )
    if value is None:
        return None
    if isinstance(value, str) and is_address(value):
        return value.rstrip("/")
    raise ConfigError(f"{where}: base_url cannot be that: use an address such as https://host/v1")


def _key_env(value: object, where: str) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if isinstance(names, list) and all(
        isinstance(name, str) and VARIABLE.fullmatch(name) for name in names
    ):
        return tuple(names)
    raise refused(where, "key_env", value, "the name of an environment variable, or a list")


def _dialect(value: object, where: str) -> Dialect | None:
    dialects: tuple[Dialect, ...] = get_args(Dialect)
    found = next((d for d in dialects if d == value), None)
    if value is not None and found is None:
        raise refused(where, "dialect", value, join_or(dialects))
    return found


def _label(value: object, where: str) -> str | None:
    if value is None or (isinstance(value, str) and value.strip() and value.isprintable()):
        return value
    raise refused(where, "name", value, "one line of text")


def _models(table: Mapping[str, Any], file: str) -> dict[str, Mapping[str, Any]]:
    models: dict[str, Mapping[str, Any]] = {}
    for name in table:
        provider, slash, model = name.partition("/")
        if not (provider and slash and model):
            raise ConfigError(
                f'{file}: models.{quote(name)}: write the provider too, [models."provider/model"]'
            )
        models[f"{provider.lower()}/{model}"] = table_of(table, name, file)
    return models


def _check_overlay(config: Config, file: str) -> None:
    if not config.models:
        return
    from mull.catalog.load import check_overlay

    try:
        check_overlay(config.overlay)
    except CatalogError as error:
        raise ConfigError(f"{file}: {error}") from None


def _compat(rows: object, file: str) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(rows, list):
        raise ConfigError(f"{file}: compat cannot be {quote_value(rows)}: use rows, [[compat]]")
    if rows:
        from mull.catalog.compat import read_rows

        read_rows(rows, f"{file}: compat")
    return tuple(rows)
