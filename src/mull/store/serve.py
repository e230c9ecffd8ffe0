"""The gateway in config.toml: what may stand in `[serve]` and `[serve.models.NAME]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mull.neutral.errors import ConfigError
from mull.neutral.patterns import pattern
from mull.settings.model import parse_model
from mull.settings.registry import SettingValue, parse_all
from mull.settings.words import join_or, quote
from mull.store.tables import VARIABLE, check_keys, is_address, refused, table_of

__all__ = ["DEFAULT_LISTEN", "ServeConfig", "ServedModel", "read_listen", "read_serve"]

DEFAULT_LISTEN = "127.0.0.1:8484"
_NAME = pattern(r"[^\s:?#\x00-\x1f]{1,200}")
_LISTEN = pattern(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+):(\d{1,5})", re.ASCII)
_HIGHEST_PORT = 65_535


class ServedModel(Struct, frozen=True):
    """What stands behind one name: a model, perhaps at another address than the catalog's."""

    model: str
    base_url: str | None = None
    key_env: str | None = None
    settings: Mapping[str, SettingValue] = {}


class ServeConfig(Struct, frozen=True):
    """All that `[serve]` says. `default` is the name that stands for every name not listed,
    `hosts` are further names that this server may be called by, `origins` pages that may call it
    from a browser. `store` is a URL, `keep_days` and `keep_mb` bound the file that it is by
    default. `watch` keeps the latest requests in memory for the page at `/`; without a word it does
    so where there are no client tokens."""

    listen: str = DEFAULT_LISTEN
    models: Mapping[str, ServedModel] = {}
    default: str | None = None
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    store: str | None = None
    keep_days: float = 30
    keep_mb: float = 2_000
    watch: bool | None = None


def read_serve(table: Mapping[str, Any], file: str) -> ServeConfig:
    """The gateway's configuration.

    Raises:
        ConfigError: something in it is unknown or cannot be; says where and what may stand there.
    """
    where = f"{file}: serve"
    check_keys(table, ServeConfig.__struct_fields__, where)
    named = table_of(table, "models", file)
    models = {name: _model(table_of(named, name, file), name, where) for name in named}
    default = table.get("default")
    if default is not None and default not in models:
        raise refused(where, "default", default, join_or(models) or "a name of [serve.models]")
    return ServeConfig(
        listen=_listen(table.get("listen", DEFAULT_LISTEN), where),
        models=models,
        default=default,
        hosts=_texts(table, "hosts", where),
        origins=_texts(table, "origins", where),
        store=_store(table.get("store"), where),
        keep_days=_number(table, "keep_days", where, 30),
        keep_mb=_number(table, "keep_mb", where, 2_000),
        watch=_switch(table, "watch", where),
    )


def read_listen(text: str) -> tuple[str, int]:
    """The host and the port in `HOST:PORT`.

    Raises:
        ConfigError: it is not of this form.
    """
    found = _LISTEN.fullmatch(text)
    if found is None or int(found[2]) > _HIGHEST_PORT:
        raise ConfigError(
            f"listen cannot be {quote(text)}: use HOST:PORT, such as {DEFAULT_LISTEN}"
        )
    return found[1].strip("[]"), int(found[2])


def _listen(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise refused(where, "listen", value, f"HOST:PORT, such as {DEFAULT_LISTEN}")
    read_listen(value)
    return value


def _model(table: Mapping[str, Any], name: str, where: str) -> ServedModel:
    place = f"{where}.models.{name}"
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{place}: a name has no blanks and none of ':', '?' and '#'")
    check_keys(table, ServedModel.__struct_fields__, place)
    if "model" not in table:
        raise ConfigError(f'{place}: model is missing: say model = "provider/model"')
    base_url, key_env = table.get("base_url"), table.get("key_env")
    if base_url is not None and not is_address(base_url):
        raise refused(place, "base_url", base_url, "an address such as https://host/v1")
    if key_env is not None and not (isinstance(key_env, str) and VARIABLE.fullmatch(key_env)):
        raise refused(place, "key_env", key_env, "the name of a variable")
    model = parse_model(table["model"])
    assert model is not None
    return ServedModel(
        model=model,
        base_url=base_url,
        key_env=key_env,
        settings=parse_all(table_of(table, "settings", place)),
    )


def _texts(table: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise refused(where, key, value, "a list of texts")
    return tuple(value)


def _number(table: Mapping[str, Any], key: str, where: str, usual: float) -> float:
    value = table.get(key, usual)
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise refused(where, key, value, "a number above 0")
    return float(value)


def _switch(table: Mapping[str, Any], key: str, where: str) -> bool | None:
    value = table.get(key)
    if value is not None and not isinstance(value, bool):
        raise refused(where, key, value, "true or false")
    return value


def _store(value: object, where: str) -> str | None:
    if value is None or value == "none":
        return None if value is None else "none"
    if isinstance(value, str) and value.startswith(("postgresql://", "postgres://")):
        return value
    raise refused(where, "store", value, 'a URL such as postgresql://host/name, or "none"')
